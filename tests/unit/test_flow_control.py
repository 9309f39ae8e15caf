"""A lane's share of a budget: batches stay small enough for the rate to hold."""

from replicator.dataplane.lane.lane_throttle import LaneThrottle
from replicator.policy.values import Throttle


def test_without_a_limit_batches_are_full_and_nobody_waits():
    flow = LaneThrottle(Throttle(), now=0.0)
    flow.spent(1000, 100_000, 0.0)

    assert not flow.limited
    assert flow.batch_records(750) == 750
    assert flow.wait_seconds(0.0) == 0.0


def test_a_batch_is_a_tenth_of_a_second_of_records_but_never_none():
    assert LaneThrottle(Throttle(records_per_second=1000), now=0.0).batch_records(750) == 100
    assert LaneThrottle(Throttle(records_per_second=5), now=0.0).batch_records(750) == 1


def test_under_a_limit_of_bytes_the_size_of_records_is_learned():
    flow = LaneThrottle(Throttle(bytes_per_second=100_000), now=0.0)
    assert flow.batch_records(750) == 10

    flow.spent(10, 5000, 0.0)
    assert flow.batch_records(750) == 20
    flow.spent(20, 2_000_000, 0.0)
    assert flow.batch_records(750) == 1


def test_a_new_share_is_taken_with_the_debt_of_before():
    flow = LaneThrottle(Throttle(records_per_second=100), now=0.0)
    flow.spent(225, 0, 0.0)
    assert flow.wait_seconds(0.0) == 2.0

    flow.set(Throttle(records_per_second=200), now=0.0)
    assert flow.wait_seconds(0.0) == 1.0
    flow.set(Throttle(), now=0.0)
    assert flow.wait_seconds(0.0) == 0.0
