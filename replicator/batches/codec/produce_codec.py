"""Produce requests and responses, versions 9 to 12.

https://kafka.apache.org/protocol#The_Messages_Produce. A request is a list of pieces: the batches in it
are slices of the buffers they were received into and are never copied. One batch per partition, as
brokers demand.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from replicator.batches.codec import fields
from replicator.batches.codec.fields import Answer

API_KEY = 0
OLDEST, NEWEST = 9, 12
ADDS_PARTITIONS = 12
"""From this version on a broker adds the partition to the transaction by itself (KIP-890)."""

_HEAD = struct.Struct(">hi")
_NUMBER = struct.Struct(">i")
_ALL_REPLICAS = -1


@dataclass(slots=True)
class Produced:
    """What a response says of one partition; ``base_offset`` is -1 where the broker does not say."""

    topic: str
    partition: int
    error: int
    base_offset: int
    message: str


def encode_produce(
    *,
    version: int,
    correlation: int,
    client_id: str,
    transactional_id: str | None,
    timeout_ms: int,
    batches: Mapping[str, Mapping[int, memoryview]],
) -> list[bytes | memoryview]:
    """The pieces of the whole frame, in order."""
    pieces: list[bytes | memoryview] = []
    text = bytearray(fields.request_header(API_KEY, version, correlation, client_id))
    text += fields.text(transactional_id)
    text += _HEAD.pack(_ALL_REPLICAS, timeout_ms)
    text += fields.count(len(batches))
    size = 0
    for topic, partitions in batches.items():
        text += fields.text(topic) + fields.count(len(partitions))
        for number, batch in partitions.items():
            text += _NUMBER.pack(number) + fields.uvarint(len(batch) + 1)
            pieces += (bytes(text), batch)
            size += len(text) + len(batch)
            text = bytearray(b"\x00")
        text += b"\x00"
    text += b"\x00"
    pieces.append(bytes(text))
    pieces.insert(0, _NUMBER.pack(size + len(text)))
    return pieces


def decode_produce(data: memoryview) -> tuple[list[Produced], int]:
    """Reads a response from behind its correlation id: what it says, and for how many ms the client is held back.

    Raises:
        StoredFormatError: it is cut off, or no produce response.
    """
    answer = Answer(data)
    answer.tags()
    found: list[Produced] = []
    for _ in range(answer.count()):
        topic = answer.text()
        for _ in range(answer.count()):
            number, error, base = answer.int32(), answer.int16(), answer.int64()
            answer.take(16)  # append time and log start
            reasons: list[str] = []
            for _ in range(answer.count()):
                answer.int32()
                reasons.append(answer.text())
                answer.tags()
            message = answer.text() or next(filter(None, reasons), "")
            answer.tags()
            found.append(Produced(topic, number, error, base, message))
        answer.tags()
    throttle_ms = answer.int32()
    answer.tags()
    return found, throttle_ms
