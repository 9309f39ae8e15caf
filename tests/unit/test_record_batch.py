"""Record batches against bytes that others have written, and the edges of the format."""

import importlib
import random
import struct

import cramjam
import crc32c
import pytest

from replicator.errors import StoredFormatError
from replicator.wire.connection import protocol
from replicator.wire.records.codecs import compress, decompress
from replicator.wire.records.record_batch import (
    HEADER,
    RawRecord,
    decode_batch,
    encode_batch,
    read_header,
)

# The other implementation. Its import warns, which `protocol` has kept quiet by importing it first.
theirs = importlib.import_module("kafka.record.default_records", protocol.__package__)

RECORD = RawRecord(
    7, 1_700_000_000_000, "CreateTime", b"k", b"v", ((b"name", b"x"), (b"\xff", None))
)


def with_attributes(batch: bytes, attributes: int) -> bytes:
    changed = bytearray(batch)
    struct.pack_into(">h", changed, 21, attributes)
    struct.pack_into(">I", changed, 17, crc32c.crc32c(bytes(changed[21:])))
    return bytes(changed)


def test_another_implementation_reads_what_we_write():
    plain = RawRecord(
        7, RECORD.timestamp, "CreateTime", b"k", b"v", ((b"name", b"x"), (b"n", None))
    )
    batch = theirs.DefaultRecordBatch(encode_batch([plain]))

    assert batch.validate_crc()
    record = next(iter(batch))
    assert (record.offset, record.timestamp) == (7, RECORD.timestamp)
    assert (record.key, record.value) == (b"k", b"v")
    assert record.headers == [("name", b"x"), ("n", None)]


@pytest.mark.parametrize("codec", [0, 1], ids=["none", "gzip"])
def test_we_read_what_another_implementation_writes(codec):
    builder = theirs.DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for number in range(100):
        builder.append(number, 1000 + number, b"key", b"value" * 20, [("h", b"1")])

    records = decode_batch(bytes(builder.build()))

    assert [record.offset for record in records] == list(range(100))
    assert records[3] == RawRecord(3, 1003, "CreateTime", b"key", b"value" * 20, ((b"h", b"1"),))


@pytest.mark.parametrize("data", [b"", b"a" * 70_000, random.Random(1).randbytes(200_000)])
def test_lz4_frames_have_independent_blocks_because_brokers_refuse_others(data):
    packed = compress("lz4", data)
    assert packed[:4] == bytes.fromhex("04224d18")
    assert packed[4] & 0x20, "the flag of block independence"
    assert decompress("lz4", packed) == data


def test_snappy_is_read_in_both_of_its_forms():
    data = b"some data, some data" * 3000
    raw = bytes(cramjam.snappy.compress_raw(data))

    assert decompress("snappy", raw) == data
    framed = b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(raw)) + raw
    assert decompress("snappy", framed) == data


def test_a_snappy_length_that_cannot_be_is_refused_before_memory_is_taken():
    with pytest.raises(StoredFormatError, match="cannot be"):
        decompress("snappy", b"\xff\xff\xff\xff\x0f\x00")


def test_markers_are_no_records():
    control = with_attributes(encode_batch([RECORD]), 0x30)

    assert read_header(control).is_control
    assert read_header(control).is_transactional
    assert decode_batch(control) == ()


def test_the_brokers_time_replaces_the_writers():
    earlier = RawRecord(8, 5, "CreateTime", None, b"")
    batch = with_attributes(encode_batch([RECORD, earlier]), 0x08)

    assert [(each.timestamp, each.timestamp_type) for each in decode_batch(batch)] == [
        (RECORD.timestamp, "LogAppendTime")
    ] * 2


def test_a_base_offset_is_outside_of_the_checksum():
    batch = encode_batch([RECORD], base_offset=0, leader_epoch=9)

    assert decode_batch(batch)[0].offset == 0
    assert read_header(batch).leader_epoch == 9


@pytest.mark.parametrize("records", [[], [RECORD, RECORD]], ids=["none", "same offset"])
def test_a_batch_that_cannot_be_is_not_written(records):
    with pytest.raises(ValueError, match="batch"):
        encode_batch(records)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda batch: batch[:40], "shorter"),
        (lambda batch: batch[:-1], "as long"),
        (lambda batch: batch[:16] + b"\x01" + batch[17:], "format 1"),
        (lambda batch: batch[:-1] + b"\x07", "checksum"),
        (lambda batch: with_attributes(batch, 0x07), "codec 7"),
        (lambda batch: with_attributes(batch, 0x01), "gzip"),
    ],
)
def test_a_damaged_batch_says_what_is_wrong(change, words):
    with pytest.raises(StoredFormatError, match=words):
        decode_batch(change(encode_batch([RECORD])))


def test_the_header_is_sixty_one_bytes():
    assert HEADER.size == 61
