"""Whole batches as bytes: what passes, what is packed anew, what is left out, and damaged input."""

import contextlib
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.batches.codec.fetch_codec import Wanted, decode_fetch, encode_fetch
from replicator.batches.codec.fetch_session import FetchSession
from replicator.batches.codec.found_batches import DamagedBatchError, found_batches
from replicator.batches.codec.header import claim, next_sequence
from replicator.batches.codec.produce_codec import decode_produce, encode_produce
from replicator.batches.codec.repack import packed_anew
from replicator.errors import StoredFormatError
from replicator.wire.connection import protocol  # before any other import of the codec it silences
from replicator.wire.records.codecs import CODECS
from replicator.wire.records.record_batch import RawRecord, decode_batch, encode_batch, read_header

PLACE = "orders/3"
NAMES = (b"plain", b"\xff\xfe not text", b"nul\x00inside")


def records(first: int, count: int, *, timestamp: int = 1_700_000_000_000) -> list[RawRecord]:
    return [
        RawRecord(
            first + at,
            0 if at == 0 else timestamp + at,
            "CreateTime",
            None if at % 3 == 0 else f"key-{at}".encode(),
            None if at % 5 == 0 else bytes(at),
            tuple((name, None if at % 2 else b"\x00\xff") for name in NAMES),
        )
        for at in range(count)
    ]


def whole(*parts: bytes) -> memoryview:
    return memoryview(bytearray(b"".join(parts)))


def found(data, position=0, aborted=()):
    return list(found_batches(data, position=position, aborted=aborted, place=PLACE))


def changed(batch: bytes, *, attributes: int = 0, producer: int = -1) -> bytes:
    """The batch with more attributes and a producer, and the checksum made right again."""
    from crc32c import crc32c

    out = bytearray(batch)
    (now,) = struct.unpack_from(">h", out, 21)
    struct.pack_into(">h", out, 21, now | attributes)
    struct.pack_into(">q", out, 43, producer)
    struct.pack_into(">I", out, 17, crc32c(memoryview(out)[21:]))
    return bytes(out)


def control(offset: int, producer: int, *, abort: bool) -> bytes:
    key = struct.pack(">hh", 0, 0 if abort else 1)
    marker = [RawRecord(offset, 5, "CreateTime", key, struct.pack(">hi", 0, 0))]
    return changed(encode_batch(marker), attributes=0x30, producer=producer)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("transactional", [True, False])
def test_a_claimed_batch_differs_in_its_header_only(codec, transactional):
    original = records(1000, 7)
    batch = encode_batch(original, codec=codec, leader_epoch=4, producer_id=9, transactional=True)
    (one,) = found(whole(batch), 1000)
    assert (one.base_offset, one.last_offset, one.count) == (1000, 1006, 7)
    assert (one.leader_epoch, one.repack, one.skip) == (4, "", "")

    claim(
        one.data,
        producer_id=77,
        producer_epoch=3,
        base_sequence=500,
        transactional=transactional,
    )
    written = bytes(one.data)

    header = read_header(written)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 500)
    assert (header.base_offset, header.is_transactional) == (0, transactional)
    assert header.codec == codec
    assert written[61:] == batch[61:]
    copied = decode_batch(written)
    assert [(r.timestamp, r.key, r.value, r.headers) for r in copied] == [
        (r.timestamp, r.key, r.value, r.headers) for r in original
    ]


@pytest.mark.parametrize("codec", [0, 1])
def test_another_encoder_s_batches_are_read_and_claimed(codec):
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.memory_records import MemoryRecords

    builder = DefaultRecordBatchBuilder(2, codec, True, 5, 1, 0, 1 << 20)
    for at in range(20):
        builder.append(at, 1_700_000_000_000 + at, b"k%d" % at, b"v" * at, [("h", b"x")])
    theirs = bytes(builder.build())

    (one,) = found(whole(theirs))
    assert (one.count, one.last_offset, one.repack) == (20, 19, "")
    claim(one.data, producer_id=6, producer_epoch=0, base_sequence=0, transactional=False)

    (batch,) = [MemoryRecords(bytes(one.data)).next_batch()]
    assert batch.validate_crc()
    read = [(r.timestamp, r.key, r.value, r.headers) for r in batch]
    assert read == [
        (1_700_000_000_000 + at, b"k%d" % at, b"v" * at, [("h", b"x")]) for at in range(20)
    ]


def test_a_fetch_that_ends_inside_a_batch_gives_the_whole_ones():
    first, second = encode_batch(records(10, 3)), encode_batch(records(13, 3))

    for cut in range(1, len(second)):
        assert [one.last_offset for one in found(whole(first, second[:cut]), 10)] == [12]
    assert [one.last_offset for one in found(whole(first, second), 10)] == [12, 15]
    assert [one.last_offset for one in found(whole(first, second), 13)] == [15]


def test_a_fetch_that_starts_inside_a_batch_copies_what_is_behind_the_position():
    data = whole(encode_batch(records(10, 6), codec="gzip"))

    (one,) = found(data, 12)
    assert one.repack == "starts before the position"
    (packed,) = packed_anew(one, position=12, most_bytes=1_000_000, place=PLACE)

    assert (packed.first_offset, packed.last_offset, packed.count) == (12, 15, 4)
    assert read_header(packed.data).codec == "gzip"
    assert [r.value for r in decode_batch(bytes(packed.data))] == [
        r.value for r in records(10, 6)[2:]
    ]


def test_a_thinned_batch_is_packed_without_its_holes():
    kept = [record for record in records(100, 9) if record.offset in {101, 104, 108}]
    thinned = encode_batch(kept, base_offset=101)

    (one,) = found(whole(thinned), 100)
    assert one.repack == "thinned"
    (packed,) = packed_anew(one, position=100, most_bytes=1_000_000, place=PLACE)

    header = read_header(packed.data)
    assert (header.count, header.last_offset_delta) == (3, 2)
    copied = decode_batch(bytes(packed.data))
    assert [(r.timestamp, r.key, r.headers) for r in copied] == [
        (r.timestamp, r.key, r.headers) for r in kept
    ]


def test_append_times_become_create_times_of_the_same_value():
    batch = bytearray(encode_batch(records(0, 3)))
    struct.pack_into(">q", batch, 35, 1_800_000_000_000)

    (one,) = found(whole(changed(bytes(batch), attributes=0x08)))
    assert one.repack == "append time"
    (packed,) = packed_anew(one, position=0, most_bytes=1_000_000, place=PLACE)

    copied = decode_batch(bytes(packed.data))
    assert {(r.timestamp, r.timestamp_type) for r in copied} == {(1_800_000_000_000, "CreateTime")}


def test_a_batch_over_the_target_s_limit_is_split():
    batch = encode_batch([RawRecord(at, 1, "CreateTime", None, bytes(1000)) for at in range(50)])
    (one,) = found(whole(batch))

    parts = packed_anew(one, position=0, most_bytes=5000, place=PLACE)

    assert all(len(part.data) <= 5000 for part in parts)
    assert parts[0].first_offset == 0
    assert sum(part.count for part in parts) == 50
    assert all(
        after.first_offset == before.last_offset + 1 for before, after in itertools.pairwise(parts)
    )
    alone = packed_anew(one, position=49, most_bytes=10, place=PLACE)
    assert [part.count for part in alone] == [1]


def test_what_the_source_aborted_and_its_markers_are_left_out():
    aborted = changed(encode_batch(records(0, 2)), attributes=0x10, producer=7)
    kept = changed(encode_batch(records(2, 2)), attributes=0x10, producer=8)
    again = changed(encode_batch(records(5, 2)), attributes=0x10, producer=7)
    data = whole(aborted, kept, control(4, 7, abort=True), again, control(7, 7, abort=False))

    assert [(one.base_offset, one.skip) for one in found(data, 0, [(7, 0)])] == [
        (0, "aborted"),
        (2, ""),
        (4, "control"),
        (5, ""),
        (7, "control"),
    ]


def test_an_emptied_batch_only_moves_the_position():
    emptied = bytearray(encode_batch(records(20, 4))[:61])
    struct.pack_into(">i", emptied, 8, 49)
    struct.pack_into(">i", emptied, 57, 0)

    (one,) = found(whole(changed(bytes(emptied))), 20)
    assert (one.skip, one.last_offset) == ("empty", 23)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_messages_of_old_formats_become_a_batch(magic, codec):
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for at in range(4):
        builder.append(30 + at, 1_600_000_000_000 + at, b"k%d" % at, b"v%d" % at)
    messages = bytearray(builder.build())
    if codec:  # as a broker stores them: around the others, with the offset of the last
        struct.pack_into(">q", messages, 0, 33)
    all_found = found(whole(bytes(messages)), 31)
    assert {one.repack for one in all_found} == {"old format"}

    packed = [
        part
        for one in all_found
        for part in packed_anew(one, position=31, most_bytes=1_000_000, place=PLACE)
    ]

    copied = [record for part in packed for record in decode_batch(bytes(part.data))]
    assert [(r.key, r.value) for r in copied] == [(b"k%d" % at, b"v%d" % at) for at in range(1, 4)]
    assert packed[-1].last_offset == 33
    if magic:
        assert [r.timestamp for r in copied] == [1_600_000_000_001 + at for at in range(3)]


def test_a_wrong_checksum_names_topic_partition_and_offset():
    good, bad = encode_batch(records(0, 3)), bytearray(encode_batch(records(3, 3)))
    bad[70] ^= 1
    seen = []

    with pytest.raises(DamagedBatchError, match=r"orders/3 at offset 3: .* wrong checksum") as info:
        seen.extend(found_batches(whole(good, bytes(bad)), position=0, place=PLACE))
    assert info.value.offset == 3


@given(st.binary(max_size=300), st.integers(0, 100))
def test_any_bytes_end_in_batches_or_one_error(data, position):
    try:
        for one in found(whole(data), position):
            packed_anew(one, position=position, most_bytes=1000, place=PLACE)
    except DamagedBatchError:
        pass


@given(
    st.sampled_from(CODECS),
    st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 40),
)
def test_damaged_batches_never_pass_with_other_records(codec, damage, position):
    first, second = encode_batch(records(0, 20), codec=codec), encode_batch(records(20, 9))
    data = bytearray(first + second)
    for at, value in damage:
        data[at % len(data)] = value
    offsets = [struct.unpack_from(">q", original, 0)[0] for original in (first, second)]
    try:
        for one in found(whole(bytes(data)), position):
            if one.skip or one.repack:
                continue
            body = bytes(one.data[61:])
            assert body in {first[61:], second[61:]}
            assert one.base_offset >= min(offsets)
    except DamagedBatchError:
        pass


@given(st.binary(max_size=200), st.sampled_from([12, 13]))
def test_any_bytes_are_an_answer_or_an_error(data, version):
    for read in (
        lambda: decode_fetch(memoryview(data), version=version),
        lambda: decode_produce(memoryview(data)),
    ):
        with contextlib.suppress(StoredFormatError):
            read()


def test_sequence_numbers_begin_again_at_zero():
    assert next_sequence(2**31 - 3, 5) == 2
    assert next_sequence(7, 5) == 12


@pytest.mark.parametrize("version", [12, 13])
def test_fetch_requests_are_what_another_codec_reads(version):
    topic = "orders" if version == 12 else bytes(range(16))
    frame = encode_fetch(
        version=version, correlation=42, client_id="lane", wait_ms=500, min_bytes=1,
        most_bytes=1 << 20, session=(11, 3),
        wanted={topic: {0: Wanted(100, 5, 4, 1 << 19), 2: Wanted(7, -1, -1, 99)}},
        forgotten={topic: [9]}, rack="r1",
    )  # fmt: skip

    assert struct.unpack(">i", frame[:4])[0] == len(frame) - 4
    read = protocol.FetchRequest.decode(frame[4:], version=version, header=True)
    assert (read.max_wait_ms, read.min_bytes, read.max_bytes) == (500, 1, 1 << 20)
    assert (read.isolation_level, read.session_id, read.session_epoch) == (1, 11, 3)
    (asked,) = read.topics
    assert [
        (
            p.partition,
            p.current_leader_epoch,
            p.fetch_offset,
            p.last_fetched_epoch,
            p.partition_max_bytes,
        )
        for p in asked.partitions
    ] == [(0, 5, 100, 4, 1 << 19), (2, -1, 7, -1, 99)]
    assert [(f.partitions) for f in read.forgotten_topics_data] == [[9]]
    assert read.rack_id == "r1"


def test_fetch_answers_are_read_as_another_codec_wrote_them():
    from kafka.protocol.consumer import FetchResponse

    topic = FetchResponse.FetchableTopicResponse
    part = topic.PartitionData
    batch = encode_batch(records(0, 3))
    answer = FetchResponse(
        throttle_time_ms=3, error_code=0, session_id=8,
        responses=[topic(topic="orders", partitions=[
            part(partition_index=1, error_code=0, high_watermark=10, last_stable_offset=9,
                 log_start_offset=2, preferred_read_replica=5, records=batch,
                 aborted_transactions=[part.AbortedTransaction(producer_id=7, first_offset=4)]),
            part(partition_index=2, error_code=6, high_watermark=-1, last_stable_offset=-1,
                 log_start_offset=-1, preferred_read_replica=-1, records=None,
                 aborted_transactions=None,
                 diverging_epoch=part.EpochEndOffset(epoch=3, end_offset=77),
                 current_leader=part.LeaderIdAndEpoch(leader_id=2, leader_epoch=6)),
        ])],
    )  # fmt: skip
    answer.API_VERSION = 12
    answer.with_header(correlation_id=1)
    raw = answer.encode(header=True)

    read = decode_fetch(memoryview(raw)[4:], version=12)
    assert (read.throttle_ms, read.error, read.session_id) == (3, 0, 8)
    one, two = read.parts
    assert (one.topic, one.partition, one.high_watermark, one.last_stable_offset) == (
        "orders", 1, 10, 9,
    )  # fmt: skip
    assert (one.aborted, one.preferred_replica) == ([(7, 4)], 5)
    assert bytes(one.records) == batch
    assert (two.error, two.records, two.diverging, two.leader) == (6, None, (3, 77), (2, 6))


def test_produce_requests_and_answers_agree_with_another_codec():
    from kafka.protocol.producer import ProduceResponse

    batch = encode_batch(records(0, 3))
    pieces = encode_produce(
        version=12, correlation=5, client_id="lane", transactional_id="tx", timeout_ms=9000,
        batches={"orders": {0: memoryview(batch), 4: memoryview(batch)}, "b": {1: memoryview(batch)}},
    )  # fmt: skip
    frame = b"".join(pieces)

    assert struct.unpack(">i", frame[:4])[0] == len(frame) - 4
    read = protocol.ProduceRequest.decode(frame[4:], version=12, header=True)
    assert (read.transactional_id, read.acks, read.timeout_ms) == ("tx", -1, 9000)
    assert [
        (t.name, [(p.index, bytes(p.records)) for p in t.partition_data]) for t in read.topic_data
    ] == [("orders", [(0, batch), (4, batch)]), ("b", [(1, batch)])]

    topic = ProduceResponse.TopicProduceResponse
    part = topic.PartitionProduceResponse
    answer = ProduceResponse(
        responses=[topic(name="orders", partition_responses=[
            part(index=0, error_code=0, base_offset=50, log_append_time_ms=-1,
                 log_start_offset=0, record_errors=[], error_message=None),
            part(index=4, error_code=87, base_offset=-1, log_append_time_ms=-1, log_start_offset=0,
                 record_errors=[part.BatchIndexAndErrorMessage(
                     batch_index=0, batch_index_error_message="no key")],
                 error_message=None),
        ])],
        throttle_time_ms=2500,
    )  # fmt: skip
    answer.API_VERSION = 11
    answer.with_header(correlation_id=5)
    raw = answer.encode(header=True)
    found_parts, throttle_ms = decode_produce(memoryview(raw)[4:])
    assert throttle_ms == 2500
    assert [(p.topic, p.partition, p.error, p.base_offset, p.message) for p in found_parts] == [
        ("orders", 0, 0, 50, ""),
        ("orders", 4, 87, -1, "no key"),
    ]


def test_a_fetch_session_asks_only_for_what_changed():
    session = FetchSession()
    a, b = ("orders", 0), ("orders", 1)
    first = session.ask({a: Wanted(0, 1, -1, 9), b: Wanted(5, 1, -1, 9)})
    assert first.session == (0, 0)
    assert set(first.wanted["orders"]) == {0, 1}
    assert session.answered(0, 33)

    second = session.ask({a: Wanted(3, 1, 1, 9), b: Wanted(5, 1, -1, 9)})
    assert (second.session, set(second.wanted["orders"]), second.forgotten) == ((33, 1), {0}, {})
    assert session.answered(0, 33)

    third = session.ask({b: Wanted(5, 1, -1, 9)})
    assert (third.session, third.wanted, third.forgotten) == ((33, 2), {}, {"orders": [0]})
    assert not session.answered(71, 0)  # the broker forgot the session

    again = session.ask({b: Wanted(5, 1, -1, 9)})
    assert (again.session, set(again.wanted["orders"])) == ((0, 0), {1})
