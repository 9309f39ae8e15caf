"""MirrorMaker 2's records, against bytes worked out from Kafka's schemas."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.errors import InputError, StoredFormatError
from replicator.mm2.topics.formats import (
    Checkpoint,
    Heartbeat,
    OffsetSync,
    decode_checkpoint,
    decode_heartbeat,
    decode_offset_sync,
)

VECTORS = {
    "heartbeat": (
        Heartbeat("A", "B", 1_700_000_000_000),
        decode_heartbeat,
        "000141000142",
        "00000000018bcfe56800",
    ),
    "checkpoint": (
        Checkpoint("g1", "A.t", 3, 100, 42),
        decode_checkpoint,
        "000267310003412e7400000003",
        "00000000000000000064000000000000002a0000",
    ),
    "offset sync": (
        OffsetSync("t", 3, 100, 42),
        decode_offset_sync,
        "00017400000003",
        "0000000000000064000000000000002a",
    ),
}
TEXTS = st.text(max_size=60)
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("name", VECTORS)
def test_a_record_has_the_bytes_of_mirrormaker(name):
    record, decode, key, value = VECTORS[name]
    assert (record.key().hex(), record.value().hex()) == (key, value)
    assert decode(bytes.fromhex(key), bytes.fromhex(value)) == record


@given(st.builds(Heartbeat, TEXTS, TEXTS, LONGS))
def test_heartbeats_are_read_back(record):
    assert decode_heartbeat(record.key(), record.value()) == record


@given(st.builds(Checkpoint, TEXTS, TEXTS, INTS, LONGS, LONGS, TEXTS))
def test_checkpoints_are_read_back(record):
    assert decode_checkpoint(record.key(), record.value()) == record


@given(st.builds(OffsetSync, TEXTS, INTS, LONGS, LONGS))
def test_offset_syncs_are_read_back(record):
    assert decode_offset_sync(record.key(), record.value()) == record


@pytest.mark.parametrize("name", VECTORS)
def test_bytes_that_end_too_early_or_too_late_are_refused(name):
    record, decode, _, _ = VECTORS[name]
    key, value = record.key(), record.value()
    for at in range(len(key)):
        with pytest.raises(StoredFormatError):
            decode(key[:at], value)
    for at in range(len(value)):
        with pytest.raises(StoredFormatError):
            decode(key, value[:at])
    for longer in ((key + b"x", value), (key, value + b"x")):
        with pytest.raises(StoredFormatError, match="left over"):
            decode(*longer)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_bytes_are_refused_or_read_for_what_they_are(key, value):
    for decode in (decode_heartbeat, decode_checkpoint, decode_offset_sync):
        with contextlib.suppress(StoredFormatError):
            found = decode(key, value)
            assert (found.key(), found.value()) == (key, value)


@pytest.mark.parametrize("name", ["heartbeat", "checkpoint"])
def test_another_version_is_refused(name):
    record, decode, _, _ = VECTORS[name]
    with pytest.raises(StoredFormatError, match="version 1"):
        decode(record.key(), b"\x00\x01" + record.value()[2:])


def test_a_text_that_is_missing_or_broken_is_refused():
    value = Heartbeat("A", "B", 1).value()
    for key, words in ((b"\xff\xff\x00\x01B", "missing"), (b"\x00\x01\xff\x00\x01B", "UTF-8")):
        with pytest.raises(StoredFormatError, match=words):
            decode_heartbeat(key, value)


def test_a_text_longer_than_the_format_is_refused():
    with pytest.raises(InputError, match="32767"):
        Checkpoint("g" * 32_768, "t", 0, 0, 0).key()
    assert len(Checkpoint("g" * 32_767, "t", 0, 0, 0).key()) == 32_767 + 9
