"""Packing the records of a batch anew, where the batch cannot pass as it is.

So one session carries every batch: a batch thinned by compaction, one with append times, one of an old
format, one that starts before the position. Records stay byte for byte, times keep their values, and
the codec stays; only the batch around them is another one. It costs about ten microseconds a record.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from replicator.batches.codec.found_batches import DamagedBatchError, FoundBatch
from replicator.batches.codec.header import CODEC_MASK, MAGIC
from replicator.errors import StoredFormatError
from replicator.wire.records.codecs import CODECS, Codec
from replicator.wire.records.record_batch import RawRecord, decode_batch, encode_batch

_MAGIC_AT = 16
_ATTRIBUTES_AT = 21
_OLD_ATTRIBUTES_AT = 17


@dataclass(slots=True)
class PackedBatch:
    """A batch of ours: ``data`` may be claimed; offsets are those of its first and last source record."""

    data: memoryview
    first_offset: int
    last_offset: int
    count: int
    base_timestamp: int
    max_timestamp: int


def packed_anew(
    found: FoundBatch,
    *,
    position: int,
    most_bytes: int,
    place: str,
    without: Collection[int] = (),
) -> list[PackedBatch]:
    """The records of a batch from ``position`` on, in batches no larger than the target takes.

    Those at offsets ``without`` are left out. A single record that is larger stands alone: whether it is too large is the target's to say.

    Raises:
        DamagedBatchError: its records cannot be read.
    """
    try:
        records, codec = _read(found)
    except StoredFormatError as error:
        raise DamagedBatchError(error.message, place=place, offset=found.base_offset) from error
    kept = [
        record for record in records if record.offset >= position and record.offset not in without
    ]
    return _fitting(kept, codec, most_bytes) if kept else []


def _read(found: FoundBatch) -> tuple[Sequence[RawRecord], Codec]:
    if found.data[_MAGIC_AT] == MAGIC:
        codec = CODECS[found.data[_ATTRIBUTES_AT + 1] & CODEC_MASK]
        return decode_batch(bytes(found.data)), codec
    return _old_records(bytes(found.data)), CODECS[found.data[_OLD_ATTRIBUTES_AT] & 0x03]


def _old_records(data: bytes) -> list[RawRecord]:
    from replicator.wire.connection.protocol import MemoryRecords, ProtocolError

    found: list[Any] = []
    try:
        messages = MemoryRecords(data)
        while messages.has_next():
            batch = messages.next_batch()
            if not batch.validate_crc():
                raise StoredFormatError("a message has a wrong checksum")
            found.extend(batch)
    except (ProtocolError, ValueError, IndexError, AssertionError, RuntimeError) as error:
        raise StoredFormatError(f"a message of an old format cannot be read: {error}") from error
    return [
        RawRecord(
            each.offset,
            -1 if each.timestamp is None else each.timestamp,
            "CreateTime",
            None if each.key is None else bytes(each.key),
            None if each.value is None else bytes(each.value),
        )
        for each in found
    ]


def _fitting(records: Sequence[RawRecord], codec: Codec, most_bytes: int) -> list[PackedBatch]:
    packed = _packed(records, codec)
    if len(packed.data) <= most_bytes or len(records) == 1:
        return [packed]
    middle = len(records) // 2
    return [
        *_fitting(records[:middle], codec, most_bytes),
        *_fitting(records[middle:], codec, most_bytes),
    ]


def _packed(records: Sequence[RawRecord], codec: Codec) -> PackedBatch:
    renumbered = [
        RawRecord(at, each.timestamp, "CreateTime", each.key, each.value, each.headers)
        for at, each in enumerate(records)
    ]
    return PackedBatch(
        memoryview(bytearray(encode_batch(renumbered, codec=codec))),
        records[0].offset,
        records[-1].offset,
        len(records),
        records[0].timestamp,
        max(each.timestamp for each in records),
    )
