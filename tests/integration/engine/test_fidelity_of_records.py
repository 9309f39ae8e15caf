"""What a record is made of arrives as it was, or is kept aside: never changed in silence."""

import base64
import os

import pytest

from replicator.identifiers import HOPS_HEADER
from replicator.policy.copies.provenance import path_hop
from replicator.wire.records.record_batch import RawRecord
from replicator.wire.requests.fetch_one import record_from_bytes
from replicator.wire.requests.produce_one import produce_record

ODD_BYTES = bytes(range(256))
ANY_TIME = {"message.timestamp.after.max.ms": "9223372036854775807"}


def hop(topic: str, partition: int, offset: int) -> str:
    return f"east/{topic}/{partition}/{offset}"


def test_keys_values_headers_times_and_partitions_arrive_byte_for_byte(lab):
    topic = lab.topic(partitions=3, source=ANY_TIME, target=ANY_TIME)
    lab.produce(
        topic,
        {"key": None, "value": None},
        {"key": b"", "value": b""},
        {"key": ODD_BYTES, "value": ODD_BYTES, "partition": 1},
        {"key": None, "value": b"no key", "timestamp": 1},
        {"key": b"tombstone", "value": None, "timestamp": -1, "partition": 2},
        {"value": b"long ago", "timestamp": 1000},
        {"value": b"far ahead", "timestamp": 4_102_444_800_000, "partition": 1},
        {
            "value": b"headers",
            "headers": [("b", b"1"), ("a", b"2"), ("b", b"1"), ("a", None), ("a", b"")],
        },
        {
            "value": b"names",
            "headers": [("größe", "é".encode()), ("", b"x"), ("\u4e2d", b"\xff\x00")],
        },
        {"value": b"many", "headers": [(f"h{n}", os.urandom(8)) for n in range(100)]},
    )

    running = lab.copied(topic)

    before, after = lab.on_source(topic), lab.on_target(topic)
    assert [seen.content for seen in after] == [seen.content for seen in before]
    assert [seen.hops for seen in after] == [hop(topic, s.partition, s.offset) for s in before]
    assert (running.stats.records, running.stats.quarantined) == (10, 0)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_records_of_every_codec_and_of_a_megabyte_arrive_unchanged(lab, delivery):
    topic = lab.topic(partitions=2, source={"max.message.bytes": "2000000"},
                      target={"max.message.bytes": "2000000"})  # fmt: skip
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        lab.produce(
            topic,
            *({"value": b"%s-%d" % (codec.encode(), n) * 50, "key": b"%d" % n} for n in range(200)),
            {"value": os.urandom(1_000_000), "partition": 1, "headers": [("size", b"large")]},
            **{"compression.type": codec, "message.max.bytes": 2_000_000},
        )

    lab.copied(topic, delivery=delivery)

    before, after = lab.on_source(topic), lab.on_target(topic)
    assert len(before) == 5 * 201
    assert [seen.content for seen in after] == [seen.content for seen in before]


def test_the_broker_time_of_an_append_time_source_is_kept_as_the_records_time(lab):
    topic = lab.topic(source={"message.timestamp.type": "LogAppendTime"})
    lab.produce(topic, {"value": b"a", "timestamp": 1000}, {"value": b"b", "timestamp": 2000})

    lab.copied(topic)

    before, after = lab.on_source(topic), lab.on_target(topic)
    assert all(seen.timestamp_ms > 1_600_000_000_000 for seen in before)
    assert [seen.content for seen in after] == [seen.content for seen in before]


def test_hops_are_extended_last_and_only_the_last_well_formed_one_counts(lab):
    topic = lab.topic()
    first = f"central/{topic}/0/17"
    lab.produce(
        topic,
        {"value": b"one", "headers": [(HOPS_HEADER, first), ("after", b"x")]},
        {"value": b"two", "headers": [(HOPS_HEADER, "north"), ("mid", b""), (HOPS_HEADER, first)]},
        {"value": b"foreign", "headers": [(HOPS_HEADER, b"\xff not ours"), ("x", b"y")]},
        {"value": b"null", "headers": [(HOPS_HEADER, None)]},
    )

    running = lab.copied(topic)

    assert [seen.headers for seen in lab.on_target(topic)] == [
        (("after", b"x"), (HOPS_HEADER, f"{first} {hop(topic, 0, 0)}".encode())),
        (
            (HOPS_HEADER, b"north"), ("mid", b""),
            (HOPS_HEADER, f"{first} {hop(topic, 0, 1)}".encode()),
        ),
        (
            (HOPS_HEADER, b"\xff not ours"), ("x", b"y"),
            (HOPS_HEADER, hop(topic, 0, 2).encode()),
        ),
        ((HOPS_HEADER, None), (HOPS_HEADER, hop(topic, 0, 3).encode())),
    ]  # fmt: skip
    assert running.stats.foreign_headers == 2


def test_the_path_form_keeps_aliases_and_a_mark_of_the_target_topic(lab):
    topic = lab.topic()
    lab.produce(
        topic, {"value": b"new"}, {"value": b"old", "headers": [(HOPS_HEADER, "central north")]}
    )

    lab.copied(topic, provenance="path")

    assert [seen.hops for seen in lab.on_target(topic)] == [
        path_hop("east", topic).decode(), f"central north {path_hop('east', topic).decode()}"
    ]  # fmt: skip


def test_records_that_were_on_the_target_before_are_dropped_and_counted(lab):
    topic = lab.topic()
    lab.produce(
        topic,
        {"value": b"0"},
        {"value": b"loop", "headers": [(HOPS_HEADER, f"west/{topic}/0/4")]},
        {"value": b"longer loop", "headers": [(HOPS_HEADER, f"west north central/{topic}/0/1")]},
        {"value": b"of another spoke", "headers": [(HOPS_HEADER, f"south/{topic}/0/1")]},
        {"value": b"western", "headers": [(HOPS_HEADER, f"western/{topic}/0/1")]},
        {"value": b"5"},
        {"value": b"loop at the end", "headers": [(HOPS_HEADER, "west")]},
    )

    running = lab.copied(topic, blocked=("west", "south"))

    assert lab.values(topic) == [b"0", b"western", b"5"]
    assert running.stats.dropped == {"loop": 4}
    assert lab.checkpoints()[topic, 0].offset == 7


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_what_the_client_library_would_change_is_quarantined_with_all_its_bytes(lab, delivery):
    topic = lab.topic()
    source = lab.plan(lab.source, "east")
    odd = RawRecord(0, 5000, "CreateTime", b"k", b"v", ((b"\xff\xfe", b"1"), (b"x", None)))
    zero = RawRecord(0, 0, "CreateTime", None, b"at zero", ((b"h", b"1"),))
    lab.numbered(topic, range(3))
    produce_record(source, topic, 0, odd)
    lab.numbered(topic, range(3, 5))
    produce_record(source, topic, 0, zero)
    lab.numbered(topic, range(5, 8))

    running = lab.copied(topic, delivery=delivery)

    assert lab.values(topic) == [b"%d" % n for n in range(8)]
    (first, about_first), (second, about_second) = lab.quarantined()
    assert (about_first["code"], about_first["offset"]) == ("HEADER_NAME", 3)
    kept = record_from_bytes(base64.b64decode(about_first["rawBase64"]))
    assert (kept.key, kept.value, kept.headers, kept.timestamp) == (
        odd.key, odd.value, odd.headers, odd.timestamp,
    )  # fmt: skip
    assert (about_second["code"], about_second["offset"]) == ("TIMESTAMP_ZERO", 6)
    assert (second.value, second.headers[0], about_second["timestamp"]) == (
        b"at zero", ("h", b"1"), 0,
    )  # fmt: skip
    assert about_second["keyBase64"] is None
    assert first.value == b"v"
    assert running.stats.quarantined == 2
    assert lab.checkpoints()[topic, 0].quarantined == 2


def test_a_zero_byte_in_a_header_name_ends_the_name_as_documented(lab):
    """The client library cuts such a name before anybody can see it: a limitation, not a choice."""
    topic = lab.topic()
    source = lab.plan(lab.source, "east")
    produce_record(
        source, topic, 0, RawRecord(0, 5000, "CreateTime", b"k", b"v", ((b"a\x00b", b"1"),))
    )

    lab.copied(topic)

    assert [seen.own_headers for seen in lab.on_target(topic)] == [(("a", b"1"),)]


@pytest.mark.parametrize("provenance", ["full", "path"])
def test_records_of_an_application_that_forwards_headers_are_copied_and_copies_are_not(
    lab, provenance
):
    topic, derived = lab.topic(), lab.topic()
    came = path_hop("west", topic) if provenance == "path" else f"west/{topic}/0/5".encode()
    # What a consumer of copies in ``topic`` writes to ``derived`` with the headers it was given.
    forwarded = [("app", b"1"), (HOPS_HEADER, came)]
    lab.produce(topic, *({"value": b"%d" % n, "headers": forwarded} for n in range(100)))
    lab.produce(derived, *({"value": b"%d" % n, "headers": forwarded} for n in range(100)))

    running = lab.copied(topic, derived, provenance=provenance)

    assert lab.on_target(topic) == []
    arrived = lab.on_target(derived)
    assert [seen.value for seen in arrived] == [b"%d" % n for n in range(100)]
    assert {seen.own_headers for seen in arrived} == {tuple(forwarded)}
    ours = path_hop("east", derived).decode()
    assert [seen.hops for seen in arrived] == [
        hop(derived, 0, seen.offset) if provenance == "full" else ours
        for seen in lab.on_source(derived)
    ]
    assert running.stats.dropped == {"loop": 100}
