"""Fetch requests and responses, versions 12 (topic names) and 13 (topic ids).

https://kafka.apache.org/protocol#The_Messages_Fetch. Written by hand because this is the hot path: the
record sets of a response are slices of the buffer it was received into.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replicator.batches.codec import fields
from replicator.batches.codec.fields import Answer
from replicator.errors import StoredFormatError

API_KEY = 1
WITH_NAMES, WITH_IDS = 12, 13

_HEAD = struct.Struct(">iiiibii")
_PARTITION = struct.Struct(">iiqiqi")
_NUMBER = struct.Struct(">i")
_READ_COMMITTED = 1
_DIVERGING, _LEADER = 0, 1

TopicKey = str | bytes
"""A topic in a request: its name in version 12, its id of 16 bytes in version 13."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of one partition; epochs are -1 where they are not known."""

    offset: int
    leader_epoch: int
    last_epoch: int
    most_bytes: int


@dataclass(slots=True)
class Fetched:
    """What a response says of one partition.

    ``aborted`` are producer ids and first offsets. ``diverging`` is (epoch, end offset) where the log
    went another way than the asked position says; ``leader`` is (broker id, epoch) where the broker
    names another leader; ``preferred_replica`` is the broker to read from instead, -1 for none.
    """

    topic: TopicKey
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    preferred_replica: int
    aborted: list[tuple[int, int]] = field(default_factory=list)
    records: memoryview | None = None
    diverging: tuple[int, int] | None = None
    leader: tuple[int, int] | None = None


@dataclass(slots=True)
class FetchAnswer:
    """A response; only partitions about which there is something to say."""

    throttle_ms: int
    error: int
    session_id: int
    parts: list[Fetched]


def encode_fetch(
    *,
    version: int,
    correlation: int,
    client_id: str,
    wait_ms: int,
    min_bytes: int,
    most_bytes: int,
    session: tuple[int, int],
    wanted: Mapping[TopicKey, Mapping[int, Wanted]],
    forgotten: Mapping[TopicKey, Sequence[int]],
    rack: str = "",
) -> bytes:
    """The whole frame; ``session`` is id and epoch (KIP-227), ``most_bytes`` bounds the response."""
    parts = [
        fields.request_header(API_KEY, version, correlation, client_id),
        _HEAD.pack(-1, wait_ms, min_bytes, most_bytes, _READ_COMMITTED, *session),
        fields.count(len(wanted)),
    ]
    for topic, partitions in wanted.items():
        parts += (_topic(topic, version), fields.count(len(partitions)))
        for number, each in partitions.items():
            parts.append(
                _PARTITION.pack(
                    number, each.leader_epoch, each.offset, each.last_epoch, -1, each.most_bytes
                )
            )
            parts.append(b"\x00")
        parts.append(b"\x00")
    parts.append(fields.count(len(forgotten)))
    for topic, numbers in forgotten.items():
        parts += (_topic(topic, version), fields.count(len(numbers)))
        parts += (_NUMBER.pack(number) for number in numbers)
        parts.append(b"\x00")
    parts += (fields.text(rack), b"\x00")
    body = b"".join(parts)
    return _NUMBER.pack(len(body)) + body


def decode_fetch(data: memoryview, *, version: int) -> FetchAnswer:
    """Reads a response from behind its correlation id.

    Raises:
        StoredFormatError: it is cut off, or no fetch response.
    """
    answer = Answer(data)
    answer.tags()
    throttle, error, session_id = answer.int32(), answer.int16(), answer.int32()
    parts: list[Fetched] = []
    for _ in range(answer.count()):
        topic: TopicKey = bytes(answer.take(16)) if version >= WITH_IDS else answer.text()
        parts += [_partition(answer, topic) for _ in range(answer.count())]
        answer.tags()
    answer.tags()
    return FetchAnswer(throttle, error, session_id, parts)


def _partition(answer: Answer, topic: TopicKey) -> Fetched:
    number, error = answer.int32(), answer.int16()
    high, stable = answer.int64(), answer.int64()
    answer.int64()  # where the log begins
    aborted: list[tuple[int, int]] = []
    for _ in range(answer.count()):
        aborted.append((answer.int64(), answer.int64()))
        answer.tags()
    preferred, records, tags = answer.int32(), answer.data(), answer.tags()
    found = Fetched(topic, number, error, high, stable, preferred, aborted, records)
    if tags:
        if _DIVERGING in tags:
            diverging = Answer(tags[_DIVERGING])
            found.diverging = (diverging.int32(), diverging.int64())
        if _LEADER in tags:
            leader = Answer(tags[_LEADER])
            found.leader = (leader.int32(), leader.int32())
    return found


def _topic(topic: TopicKey, version: int) -> bytes:
    if isinstance(topic, bytes) != (version >= WITH_IDS):
        raise StoredFormatError(f"fetch version {version} does not name topics like that")
    return topic if isinstance(topic, bytes) else fields.text(topic)
