"""Records the target will never take: kept aside with their origin, or their partition stops."""

import time
from collections import Counter

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from lane_lab import LaneLab

from replicator.identifiers import HOPS_HEADER, quarantine_topic
from replicator.wire.records.record_batch import RawRecord
from replicator.wire.requests.produce_one import produce_record

BOTH = pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
SMALL = {"max.message.bytes": "3000"}
BIG = b"x" * 4000


def numbered(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def in_order(values: list[bytes | None]) -> list[bytes | None]:
    """First occurrences: what a reader that drops duplicates sees."""
    return list(dict.fromkeys(values))


@BOTH
def test_records_too_large_for_their_topic_are_kept_aside_and_all_others_arrive_in_order(
    lab, delivery
):
    topic, other = lab.topic(partitions=2, target=SMALL), lab.topic()
    for number in range(60):
        if number % 20 == 7:
            lab.produce(topic, {"value": BIG, "key": b"big", "headers": [("n", b"%d" % number)]})
        lab.numbered(topic, [number])
    lab.numbered(topic, range(100, 105), partition=1)
    lab.numbered(other, range(10))

    lane = lab.copied(topic, other, delivery=delivery)

    arrived = [seen.value for seen in lab.on_target(topic) if seen.partition == 0]
    assert in_order(arrived) == numbered(*range(60))
    assert in_order(lab.values(other)) == numbered(*range(10))
    if delivery == "exactly-once":
        assert len(arrived) == 60
    kept = {about["offset"]: (seen, about) for seen, about in lab.quarantined()}
    assert sorted(kept) == [7, 28, 49]
    seen, about = kept[7]
    assert (seen.value, seen.headers[0]) == (BIG, ("n", b"7"))
    assert (about["code"], about["topic"], about["partition"], about["flow"]) == (
        "MSG_SIZE_TOO_LARGE", topic, 0, "east->west",
    )  # fmt: skip
    assert about["targetTopic"] == topic
    assert about["keyBase64"] == "Ymln"
    if delivery == "exactly-once":
        assert len(lab.quarantined()) == 3
        assert lane.stats.quarantined == 3
    assert lab.checkpoints()[topic, 0].offset == 63


def test_what_the_target_refuses_for_other_reasons_is_kept_aside_with_the_reason(lab):
    compacted = lab.topic(target={"cleanup.policy": "compact"})
    recent = lab.topic(target={"message.timestamp.before.max.ms": "3600000"})
    plain = lab.topic()
    now = int(time.time() * 1000)
    for number in range(5):
        lab.produce(
            compacted,
            {"key": b"k%d" % number, "value": b"%d" % number},
            {"key": None, "value": b"no key %d" % number},
        )
        lab.produce(
            recent,
            {"value": b"%d" % number, "timestamp": now},
            {"value": b"old %d" % number, "timestamp": 5000},
        )
        lab.numbered(plain, [number])

    lane = lab.copied(compacted, recent, plain)

    for topic in (compacted, recent, plain):
        assert lab.values(topic) == numbered(*range(5))
    kept = lab.quarantined()
    assert Counter((about["topic"], about["code"]) for _, about in kept) == {
        (compacted, "INVALID_RECORD"): 5,
        (recent, "INVALID_TIMESTAMP"): 5,
    }
    assert {seen.value for seen, _ in kept} == {
        *(b"no key %d" % n for n in range(5)), *(b"old %d" % n for n in range(5)),
    }  # fmt: skip
    assert {about["timestamp"] for _, about in kept if about["topic"] == recent} == {5000}
    assert lane.stats.quarantined == 10


@pytest.mark.parametrize("cyclic", [False, True])
def test_a_record_that_only_our_header_makes_too_large(lab, cyclic):
    topic = lab.topic(target={"max.message.bytes": "1000"})
    # 1000 bytes is the limit of the whole batch: 61 of its header, a few of the record's own.
    lab.produce(
        topic,
        {"value": b"before"},
        {"value": b"y" * 915, "headers": [("h", b"1")]},
        {"value": b"after"},
    )

    lane = lab.copied(topic, cyclic=cyclic)

    after = lab.on_target(topic)
    if cyclic:
        assert [seen.value for seen in after] == [b"before", b"after"]
        ((seen, about),) = lab.quarantined()
        assert (seen.value, about["offset"]) == (b"y" * 915, 1)
        assert lane.stats.headers_omitted == 0
    else:
        assert [seen.value for seen in after] == [b"before", b"y" * 915, b"after"]
        assert after[1].headers == (("h", b"1"),)
        assert all(HOPS_HEADER in dict(after[place].headers) for place in (0, 2))
        assert lab.quarantined() == []
        assert lane.stats.headers_omitted == 1


def test_a_value_too_large_even_for_the_quarantine_topic_is_named_there_without_its_bytes(lab):
    lab.prepare(quarantine={"max.message.bytes": "2000"})
    topic, zero = lab.topic(target=SMALL), lab.topic()
    lab.produce(topic, {"value": b"0"}, {"value": BIG, "key": b"k"}, {"value": b"1"})
    at_zero = RawRecord(0, 0, "CreateTime", None, BIG)
    lab.produce(zero, {"value": b"0"})
    produce_record(lab.plan(lab.source, "east"), zero, 0, at_zero)
    lab.produce(zero, {"value": b"1"})

    lab.copied(topic, zero)

    assert lab.values(topic) == lab.values(zero) == [b"0", b"1"]
    kept = {about["topic"]: (seen, about) for seen, about in lab.quarantined()}
    assert sorted(kept) == sorted([topic, zero])
    for seen, about in kept.values():
        assert seen.value is None
        assert (about["valueOmitted"], about["valueNull"], about["offset"]) == (True, False, 1)


@BOTH
def test_a_quarantine_topic_that_refuses_a_record_is_named_and_the_others_go_on(lab, delivery):
    lab.prepare(
        quarantine={"max.message.bytes": "200"}
    )  # too little for what is said of the record
    topic, other = lab.topic(target=SMALL), lab.topic()
    quarantine = quarantine_topic(lab.name, "east")
    lab.produce(topic, {"value": b"0"}, {"value": BIG}, {"value": b"1"})
    lane = lab.lane(topic, other, delivery=delivery)

    def refused():  # a topic that was made just now may fail at its source first
        seen = lane.partition(topic)
        failure = None if seen is None else seen.failure
        return failure if failure is not None and failure.side == "target" else None

    found = lab.until(refused, "the failure", lane)
    assert quarantine in found.detail
    assert "max.message.bytes" in found.remedy
    lab.numbered(other, range(10))
    lab.caught_up(lane, other)

    set_limit(lab, quarantine, 100_000)
    lab.caught_up(lane)
    lab.until(lambda: lane.partition(topic).failure is None, "the failure to end", lane)
    assert in_order(lab.values(topic)) == [b"0", b"1"]
    assert {about["offset"] for _, about in lab.quarantined()} == {1}


@BOTH
def test_a_partition_that_may_not_lose_a_record_stops_alone_and_stays_so_until_accepted(
    lab, delivery
):
    topic, other = lab.topic(partitions=2, target=SMALL), lab.topic()
    lab.numbered(topic, range(3))
    lab.produce(topic, {"value": BIG})
    lab.numbered(topic, range(3, 6))
    lab.numbered(topic, range(100, 103), partition=1)
    lab.produce(topic, {"value": BIG, "partition": 1})
    lab.numbered(other, range(3))
    settings = {"on_record_error": "stop", "delivery": delivery}

    lane = lab.lane(topic, other, **settings)
    lab.until(
        lambda: lane.problem(topic, 0) == lane.problem(topic, 1) == "TARGET_REFUSES", "stops", lane
    )
    lab.numbered(other, range(3, 6))
    lab.caught_up(lane, other)

    def arrived(partition: int) -> list[bytes | None]:
        return in_order([s.value for s in lab.on_target(topic) if s.partition == partition])

    assert (arrived(0), arrived(1)) == (numbered(0, 1, 2), numbered(100, 101, 102))
    assert "offset 3" in lane.partition(topic, 0).detail
    aborts = lane.stats.aborts
    lab.numbered(other, range(6, 9))
    lab.caught_up(lane, other)
    assert lane.stats.aborts == aborts, "a stopped partition must not slow the others down"

    lane.stop()
    lane = lab.lane(topic, other, **settings)
    lab.numbered(other, range(9, 12))
    lab.caught_up(lane, other)
    lab.until(
        lambda: lane.problem(topic, 0) == lane.problem(topic, 1) == "TARGET_REFUSES",
        "both stopped still", lane,
    )  # fmt: skip
    assert lab.quarantined() == []

    _, second = lab.work(topic)
    lane.update(work=(*lab.work(topic, partition=0, accept_gap="t1"), second, *lab.work(other)))
    lab.until(lambda: lab.checkpoints()[topic, 0].offset == 7, "the rest of the partition", lane)
    assert arrived(0) == numbered(*range(6))
    assert lane.problem(topic, 1) == "TARGET_REFUSES"
    assert {about["offset"] for _, about in lab.quarantined()} == {3}
    assert in_order(lab.values(other)) == numbered(*range(12))


def test_an_accepted_record_that_fits_by_now_is_copied_after_all(lab):
    topic = lab.topic(partitions=2, target=SMALL)
    lab.produce(topic, {"value": b"0"}, {"value": BIG}, {"value": b"1"})
    lane = lab.lane(on_record_error="stop", work=lab.work(topic, partition=0))
    lab.until(lambda: lane.problem(topic) == "TARGET_REFUSES", "the stop", lane)
    lane.stop()
    set_limit(lab, topic, 100_000)
    # The record gets one try: the broker must have the new limit by then.
    lab.until(lambda: accepted(lab, topic, BIG, partition=1), "the new limit in force")

    lane = lab.lane(
        on_record_error="stop",
        work=lab.work(topic, partition=0, accept_gap="mended", max_message_bytes=100_000),
    )
    lab.caught_up(lane)

    copies = [seen.value for seen in lab.on_target(topic) if seen.partition == 0]
    assert copies == [b"0", BIG, b"1"]
    assert lab.quarantined() == []


def accepted(lab, topic: str, value: bytes, *, partition: int) -> bool:
    """Whether the target takes a record of that size."""
    told: list[bool] = []
    producer = Producer(lab.target.client_settings())
    producer.produce(
        topic, value, partition=partition, on_delivery=lambda error, _: told.append(error is None)
    )
    return producer.flush(30) == 0 and told == [True]


def set_limit(lab, topic: str, size: int) -> None:
    change = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
        ],
    )
    lab.target.admin().incremental_alter_configs([change])[change].result(30)


def test_a_topic_of_small_records_beside_one_of_large_records_is_copied_at_full_speed(lab):
    """Batches must stay below the smallest limit, also when that topic joins a running lane."""
    large = lab.topic(source={"max.message.bytes": "3000000"},
                      target={"max.message.bytes": "3000000"})  # fmt: skip
    small = lab.topic(target=SMALL)
    lab.produce(large, *({"value": b"z" * 2_000_000} for _ in range(3)),
                **{"message.max.bytes": 3_000_000})  # fmt: skip
    lane = lab.lane(work=lab.work(large, max_message_bytes=3_000_000))
    lab.caught_up(lane)
    lab.numbered(small, range(5000))
    lane.update(
        work=(
            *lab.work(large, max_message_bytes=3_000_000),
            *lab.work(small, max_message_bytes=3000),
        )
    )
    lab.produce(large, *({"value": b"z" * 2_000_000} for _ in range(3)),
                **{"message.max.bytes": 3_000_000})  # fmt: skip
    lab.caught_up(lane)

    assert lab.values(small) == numbered(*range(5000))
    assert len(lab.on_target(large)) == 6
    assert lane.stats.aborts == 0
    assert lane.stats.quarantined == 0


def test_quarantine_records_of_a_lane_are_in_the_topic_named_after_the_flow(lab):
    topic = lab.topic(target=SMALL)
    lab.produce(topic, {"value": BIG})
    lab.copied(topic)

    assert len(lab.on_target(quarantine_topic(lab.name, "east"))) == 1


@pytest.mark.slow
def test_a_first_batch_at_fault_is_found_when_the_source_is_far_away(lab, clusters, unique):
    """The first look at the source brings nothing then: that must not end the search."""
    (east,) = clusters("east", proxied=True)
    far = LaneLab(east, lab.target, name=unique)
    topic = far.topic(target=SMALL)
    far.produce(topic, {"value": BIG}, *({"value": b"%d" % n} for n in range(3000)))
    east.proxy.latency(0.2)
    lane = far.lane(topic)
    try:
        far.caught_up(lane)
        assert far.values(topic) == numbered(*range(3000))
        assert len(far.quarantined()) == 1
        slow = [line for line in lane.log if "record by record" in line.event]
        assert len(slow) <= 2, "the lane circles between the search and full speed"
    finally:
        far.close()
