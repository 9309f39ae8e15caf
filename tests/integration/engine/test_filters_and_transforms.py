"""Records that are left out or changed on the way, by rule and by the user's own code."""

import pytest

from replicator.policy.values import DropRule, HeaderMatch

MIXED = (
    {"key": b"tmp-1", "value": b"0"},
    {"key": b"a", "value": b"1", "headers": [("env", b"test")]},
    {"key": b"a", "value": b"2", "headers": [("env", b"prod"), ("env", b"test")]},
    {"key": b"a", "value": None},
    {"key": None, "value": b"4"},
    {"key": b"tmp-1", "value": None},
    {"key": b"a", "value": b"6", "headers": [("debug", None)]},
    {"key": b"a", "value": b"7", "headers": [("env", b"prod")]},
)


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ([DropRule(headers=(HeaderMatch("env", "test"),))], [0, 3, 4, 5, 6, 7]),
        ([DropRule(headers=(HeaderMatch("debug"),))], [0, 1, 2, 3, 4, 5, 7]),
        ([DropRule(key_prefix="tmp-")], [1, 2, 3, 4, 6, 7]),
        ([DropRule(tombstone=True)], [0, 1, 2, 4, 6, 7]),
        ([DropRule(key_prefix="tmp-", tombstone=True)], [0, 1, 2, 3, 4, 6, 7]),
        ([DropRule(key_prefix="tmp-"), DropRule(headers=(HeaderMatch("env", "prod"),))], [1, 3, 4, 6]),
    ],
    ids=["header value", "header", "key prefix", "tombstone", "both", "either"],
)  # fmt: skip
def test_records_that_a_rule_describes_are_left_out_and_counted(lab, rules, left):
    topic = lab.topic()
    lab.produce(topic, *MIXED)

    lane = lab.copied(topic, filters=tuple(rules))

    assert [int(seen.hops.rpartition("/")[2]) for seen in lab.on_target(topic)] == left
    assert lane.stats.dropped == {"filtered": len(MIXED) - len(left)}
    checkpoint = lab.checkpoints()[topic, 0]
    assert (checkpoint.offset, checkpoint.dropped) == (len(MIXED), len(MIXED) - len(left))


def test_transforms_change_and_drop_records_in_the_order_given(lab):
    topic = lab.topic()
    lab.produce(
        topic,
        *({"value": b"%d" % n, "key": b"k", "timestamp": 1000 + n} for n in range(6)),
        {"key": b"k", "value": None, "headers": [("h", b"1")], "timestamp": 2000},
    )

    lane = lab.copied(topic, transforms=("engine_transforms:only_even", "engine_transforms:shout"))

    after = lab.on_target(topic)
    assert [seen.value for seen in after] == [b"0", b"2", b"4", None]
    assert [seen.timestamp_ms for seen in after] == [1000, 1002, 1004, 2000]
    assert after[3].own_headers == (("h", b"1"), ("shouted", b"yes"))
    assert after[3].hops == f"east/{topic}/0/6"
    assert lane.stats.dropped == {"transformed": 3}


def test_records_a_transform_fails_for_are_kept_aside_as_they_were(lab):
    topic = lab.topic()
    lab.numbered(topic, range(10))

    lane = lab.copied(topic, transforms=("engine_transforms:fragile",))

    assert lab.values(topic) == [b"%d" % n for n in range(10) if n not in {3, 5, 7}]
    kept = lab.quarantined()
    assert [seen.value for seen, _ in kept] == [b"3", b"5", b"7"]
    assert {about["code"] for _, about in kept} == {"TRANSFORM"}
    errors = [about["error"] for _, about in kept]
    assert "LookupError: no three" in errors[0]
    assert "returned str" in errors[1]
    assert "a value of type int" in errors[2]
    assert lane.stats.quarantined == 3


def test_a_transform_that_fails_stops_its_partition_where_no_record_may_be_lost(lab):
    topic = lab.topic()
    lab.numbered(topic, range(6))

    lane = lab.lane(topic, transforms=("engine_transforms:fragile",), on_record_error="stop")
    lab.until(lambda: lane.problem(topic) == "TARGET_REFUSES", "the stop", lane)

    assert "no three" in lane.partition(topic).detail
    lane.stop()  # which commits what came before
    assert lab.values(topic) == [b"0", b"1", b"2"]


def test_transforms_that_cannot_be_loaded_are_all_named_in_the_lanes_state(lab):
    topic = lab.topic()
    lab.numbered(topic, range(3))

    lane = lab.lane(topic, transforms=("no_such_module:f", "engine_transforms:nothing"))
    lab.until(lambda: lane.stats.state == "recovering", "the state", lane)

    assert "no_such_module:f" in lane.stats.reason
    assert "engine_transforms:nothing" in lane.stats.reason
    lane.stop()
    assert lab.values(topic) == []
