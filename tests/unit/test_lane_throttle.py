"""A lane's share of a budget: batches stay small enough for the rate to hold."""

from replicator.dataplane.context.lane_throttle import LaneThrottle
from replicator.policy.values import Throttle


def test_without_a_limit_batches_are_full_and_nothing_waits():
    throttle = LaneThrottle(Throttle(), now=0.0)
    throttle.spent(1000, 100_000, 0.0)

    assert throttle.batch_records(750) == 750
    assert throttle.wait_seconds(0.0) == 0.0


def test_a_batch_is_a_tenth_of_a_second_of_records_but_never_none():
    assert LaneThrottle(Throttle(records_per_second=1000), now=0.0).batch_records(750) == 100
    assert LaneThrottle(Throttle(records_per_second=5), now=0.0).batch_records(750) == 1


def test_under_a_limit_of_bytes_the_size_of_records_is_learned():
    throttle = LaneThrottle(Throttle(bytes_per_second=100_000), now=0.0)
    assert throttle.batch_records(750) == 10

    throttle.spent(10, 5000, 0.0)
    assert throttle.batch_records(750) == 20
    throttle.spent(20, 2_000_000, 0.0)
    assert throttle.batch_records(750) == 1


def test_a_new_share_is_taken_with_the_debt_of_before():
    throttle = LaneThrottle(Throttle(records_per_second=100), now=0.0)
    throttle.spent(225, 0, 0.0)
    assert throttle.wait_seconds(0.0) == 2.0

    throttle.set(Throttle(records_per_second=200), now=0.0)
    assert throttle.wait_seconds(0.0) == 1.0
    throttle.set(Throttle(), now=0.0)
    assert throttle.wait_seconds(0.0) == 0.0


def test_how_many_records_some_bytes_are_is_learned_from_those_before():
    throttle = LaneThrottle(Throttle(), now=0.0)
    assert throttle.records_in(1_000_000, 750) == 750
    throttle.spent(10, 100_000, 0.0)
    assert throttle.records_in(1_000_000, 750) == 100
    assert throttle.records_in(100_000_000, 750) == 750
    assert throttle.records_in(-5, 750) == 1
    empty = LaneThrottle(Throttle(), now=0.0)
    empty.spent(10, 0, 0.0)
    assert empty.records_in(1_000_000, 750) == 750
