"""Record batches of format 2: bytes to records and back; no input, no output, no client.

https://kafka.apache.org/documentation/#recordbatch. The header is 61 bytes, big endian; CRC-32C
covers everything from the attributes on, so base offset and leader epoch can change freely. A fetch
may end inside a batch, and may begin with a batch that starts before the asked offset.
"""

import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import crc32c

from replicator.errors import StoredFormatError
from replicator.wire.records.codecs import CODECS, Codec, compress, decompress
from replicator.wire.records.varint import append_varint, read_varint

HEADER = struct.Struct(">qiibIhiqqqhii")
MAGIC = 2
_LENGTH_FROM = 12  # batchLength counts what follows it
_CRC_FROM = 21
_CODEC_MASK, _LOG_APPEND, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20

TimestampType = Literal["CreateTime", "LogAppendTime"]
RawHeader = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record, byte for byte; ``timestamp`` in milliseconds. Header names are bytes."""

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[RawHeader, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The 61 bytes before the records, in their order."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + _LENGTH_FROM

    @property
    def last_offset(self) -> int:
        """Offset of the last record, also where compaction has taken that record away."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> Codec:
        """How the records are compressed.

        Raises:
            StoredFormatError: a codec that does not exist.
        """
        number = self.attributes & _CODEC_MASK
        if number >= len(CODECS):
            raise StoredFormatError(f"a record batch has the unknown codec {number}")
        return CODECS[number]

    @property
    def is_control(self) -> bool:
        """Whether it holds transaction markers instead of records."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether it was written in a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker's time replaces the writer's."""
        return bool(self.attributes & _LOG_APPEND)


def read_header(data: bytes | memoryview, position: int = 0) -> BatchHeader:
    """Reads a batch header.

    Raises:
        StoredFormatError: too few bytes, or not of format 2.
    """
    if len(data) - position < HEADER.size:
        raise StoredFormatError("a record batch is shorter than its header")
    header = BatchHeader(*HEADER.unpack_from(data, position))
    if header.magic != MAGIC:
        raise StoredFormatError(f"a record batch has format {header.magic}; only format 2 is known")
    if header.size < HEADER.size or header.count < 0 or header.last_offset_delta < 0:
        raise StoredFormatError("a record batch has an impossible header")
    return header


def split_batches(data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """The whole batches of a fetch, with their headers; a cut-off one at the end is left out.

    Raises:
        StoredFormatError: something in between is no batch.
    """
    position = 0
    while len(data) - position >= HEADER.size:
        header = read_header(data, position)
        if len(data) - position < header.size:
            return
        yield header, data[position : position + header.size]
        position += header.size


def decode_batch(batch: bytes) -> tuple[RawRecord, ...]:
    """The records of one batch; none for a control batch.

    Raises:
        StoredFormatError: it is damaged: wrong checksum, wrong lengths.
    """
    header = read_header(batch)
    if len(batch) != header.size:
        raise StoredFormatError("a record batch is not as long as it says")
    if crc32c.crc32c(memoryview(batch)[_CRC_FROM:]) != header.crc:
        raise StoredFormatError("a record batch has a wrong checksum")
    if header.is_control:
        return ()
    return tuple(_records(header, decompress(header.codec, batch[HEADER.size :])))


def encode_batch(
    records: Sequence[RawRecord],
    *,
    base_offset: int | None = None,
    codec: Codec = "none",
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """One batch of records whose offsets rise; the base offset is the first one's if not given.

    Raises:
        ValueError: no records, or offsets that do not rise.
    """
    if not records:
        raise ValueError("a batch has at least one record")
    first = records[0]
    if any(after.offset <= before.offset for before, after in itertools.pairwise(records)):
        raise ValueError("offsets in a batch rise")
    body = bytearray()
    for record in records:
        encoded = _encode_record(record, first.offset, first.timestamp)
        append_varint(body, len(encoded))
        body += encoded
    attributes = CODECS.index(codec)
    attributes |= _LOG_APPEND if first.timestamp_type == "LogAppendTime" else 0
    attributes |= _TRANSACTIONAL if transactional else 0
    packed = compress(codec, bytes(body))
    batch = bytearray(HEADER.size)
    batch += packed
    HEADER.pack_into(
        batch,
        0,
        first.offset if base_offset is None else base_offset,
        len(batch) - _LENGTH_FROM,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        records[-1].offset - first.offset,
        first.timestamp,
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    struct.pack_into(">I", batch, 17, crc32c.crc32c(memoryview(batch)[_CRC_FROM:]))
    return bytes(batch)


def _records(header: BatchHeader, data: bytes) -> Iterator[RawRecord]:
    position = 0
    kind: TimestampType = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    for _ in range(header.count):
        size, position = read_varint(data, position)
        end = position + size
        if size < 0 or end > len(data):
            raise StoredFormatError("a record is cut off")
        position += 1  # attributes of a record: not used by the format
        timestamp_delta, position = read_varint(data, position)
        offset_delta, position = read_varint(data, position)
        key, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        headers, position = _read_headers(data, position)
        if position != end:
            raise StoredFormatError("a record is not as long as it says")
        own = header.base_timestamp + timestamp_delta
        yield RawRecord(
            offset=header.base_offset + offset_delta,
            timestamp=header.max_timestamp if header.is_log_append_time else own,
            timestamp_type=kind,
            key=key,
            value=value,
            headers=headers,
        )
    if position != len(data):
        raise StoredFormatError("a record batch has bytes behind its last record")


def _read_headers(data: bytes, position: int) -> tuple[tuple[RawHeader, ...], int]:
    count, position = read_varint(data, position)
    if count < 0:
        raise StoredFormatError("a record has an impossible number of headers")
    headers: list[RawHeader] = []
    for _ in range(count):
        name, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        if name is None:
            raise StoredFormatError("a header has no name")
        headers.append((name, value))
    return tuple(headers), position


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    if size == -1:
        return None, position
    end = position + size
    if size < 0 or end > len(data):
        raise StoredFormatError("a field of a record is cut off")
    return data[position:end], end


def _encode_record(record: RawRecord, base_offset: int, base_timestamp: int) -> bytes:
    out = bytearray(b"\x00")
    append_varint(out, record.timestamp - base_timestamp)
    append_varint(out, record.offset - base_offset)
    _append_bytes(out, record.key)
    _append_bytes(out, record.value)
    append_varint(out, len(record.headers))
    for name, value in record.headers:
        _append_bytes(out, name)
        _append_bytes(out, value)
    return bytes(out)


def _append_bytes(out: bytearray, data: bytes | None) -> None:
    append_varint(out, -1 if data is None else len(data))
    if data is not None:
        out += data
