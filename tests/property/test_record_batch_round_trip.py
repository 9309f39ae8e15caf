"""Whatever goes into a batch comes out of it, and damaged bytes are an error and nothing else."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.errors import StoredFormatError
from replicator.wire.records.codecs import CODECS, decompress
from replicator.wire.records.record_batch import (
    RawRecord,
    decode_batch,
    encode_batch,
    read_header,
    split_batches,
)

maybe_bytes = st.none() | st.binary(max_size=60)
headers = st.lists(st.tuples(st.binary(max_size=10), maybe_bytes), max_size=4).map(tuple)


@st.composite
def batches(draw):
    offsets = sorted(draw(st.sets(st.integers(0, 2**31 - 2), min_size=1, max_size=8)))
    base = draw(st.integers(0, 2**40))
    return [
        RawRecord(
            offset=base + offset,
            timestamp=draw(st.integers(-1, 2**45)),
            timestamp_type="CreateTime",
            key=draw(maybe_bytes),
            value=draw(maybe_bytes),
            headers=draw(headers),
        )
        for offset in offsets
    ]


@given(batches(), st.sampled_from(CODECS))
def test_records_survive_a_batch(records, codec):
    batch = encode_batch(records, codec=codec)

    assert decode_batch(batch) == tuple(records)
    header = read_header(batch)
    assert header.codec == codec
    assert header.size == len(batch)
    assert header.last_offset == records[-1].offset


@given(st.lists(batches(), max_size=4), st.integers(0, 80))
def test_a_fetch_is_split_into_its_whole_batches(groups, cut):
    parts = [encode_batch(records) for records in groups]
    whole = b"".join(parts)
    fetched = whole + (parts[0][: min(cut, len(parts[0]) - 1)] if parts else b"")

    assert [batch for _, batch in split_batches(fetched)] == parts


@given(batches(), st.sampled_from(CODECS), st.data())
def test_one_flipped_bit_never_passes_the_checksum(records, codec, data):
    batch = bytearray(encode_batch(records, codec=codec))
    place = data.draw(st.integers(21, len(batch) - 1))
    batch[place] ^= 1 << data.draw(st.integers(0, 7))

    with contextlib.suppress(StoredFormatError):
        decode_batch(bytes(batch))
        raise AssertionError("a damaged batch was read")


@settings(max_examples=400)
@given(st.binary(max_size=300))
def test_garbage_is_an_error_of_ours_and_nothing_else(data):
    for read in (decode_batch, lambda raw: list(split_batches(raw))):
        with contextlib.suppress(StoredFormatError):
            read(data)


@settings(max_examples=400)
@given(st.sampled_from(CODECS), st.binary(max_size=200), st.booleans())
def test_damaged_compression_is_an_error_of_ours_and_nothing_else(codec, data, framed):
    with contextlib.suppress(StoredFormatError):
        decompress(codec, (b"\x82SNAPPY\x00" if framed else b"") + data)
