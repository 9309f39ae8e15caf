"""Rewriting the header of a record batch in place, so that it becomes a batch of our producer.

https://kafka.apache.org/documentation/#recordbatch. 61 bytes, big endian; the CRC-32C covers everything
from the attributes on. The records behind the header are not touched: keys, values, headers,
timestamps and compression stay byte for byte.
"""

import struct

from crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_FROM = 12
"""The batch's own length counts what follows it."""

CRC_FROM = 21
MAGIC = 2
CODEC_MASK, LOG_APPEND, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
SEQUENCES = 1 << 31
"""Sequence numbers begin again at 0 after this many."""

_START = struct.Struct(">qiib")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
_CRC_AT, _ATTRIBUTES_AT, _PRODUCER_AT = 17, 21, 43


def codec_of(batch: memoryview) -> int:
    """The number of its codec."""
    return batch[_ATTRIBUTES_AT + 1] & CODEC_MASK


def checksum_holds(batch: memoryview) -> bool:
    """Whether the batch is what its writer wrote."""
    said: int = _CRC.unpack_from(batch, _CRC_AT)[0]
    return bool(crc32c(batch[CRC_FROM:]) == said)


def claim(
    batch: memoryview,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
) -> None:
    """Makes the batch one of this producer; only its header changes, and the checksum with it.

    Base offset and leader epoch are the target's to give. Only a batch that may pass as it is can be
    claimed: its timestamps are create times, and every offset in it has a record.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    attributes &= CODEC_MASK
    if transactional:
        attributes |= TRANSACTIONAL
    _START.pack_into(batch, 0, 0, len(batch) - LENGTH_FROM, -1, MAGIC)
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes)
    _PRODUCER.pack_into(batch, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(batch, _CRC_AT, crc32c(batch[CRC_FROM:]))


def next_sequence(base_sequence: int, count: int) -> int:
    """The sequence number behind a batch of so many records."""
    return (base_sequence + count) % SEQUENCES
