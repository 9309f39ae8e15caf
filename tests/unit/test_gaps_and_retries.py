"""What was given up is kept in bounds; the search for a refused record ends, and not before it began."""

import pytest

from replicator.control.records.pair_records import GapTaken, Lost
from replicator.control.store.gap_journal import KEPT_GAPS, outdated_gaps
from replicator.dataplane.lane.retry_range import RetryRange
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.spec import PartitionWork

DAY_MS = 24 * 3600 * 1000
NOW = 1_700_000_000_000


def gap(number, *, age_days=0.0):
    return GapTaken(
        source="east", topic="orders", partition=0, id=str(number),
        at_ms=int(NOW - age_days * DAY_MS), detail="gone", lost=Lost(from_offset=0, to_offset=1),
    )  # fmt: skip


def test_the_newest_gaps_are_kept_and_old_ones_are_not():
    gaps = [gap(number, age_days=number / 100) for number in range(KEPT_GAPS + 5)]
    assert {each.id for each in outdated_gaps(gaps, now_ms=NOW)} == {
        str(number) for number in range(KEPT_GAPS, KEPT_GAPS + 5)
    }
    assert outdated_gaps([gap(1, age_days=399)], now_ms=NOW) == ()
    old = gap(2, age_days=401)
    assert outdated_gaps([gap(1), old], now_ms=NOW) == (old,)


def state(partition, *, position, committed):
    found = PartitionState(
        PartitionWork("orders", partition, "orders", ""), source_alias="east", provenance="full"
    )
    found.position, found.committed = position, committed
    return found


def test_a_range_ends_where_everything_that_was_produced_is_copied():
    states = [state(0, position=20, committed=10), state(1, position=5, committed=5)]
    retry = RetryRange()
    assert not retry
    retry.extend(states)
    states[0].position = 10
    assert not retry.is_past(states)
    states[0].position = 20
    assert retry.is_past(states)
    retry.clear()
    assert not retry


@pytest.mark.parametrize("moved", [0, 1])
def test_a_retry_range_is_not_over_before_something_was_copied(moved):
    states = [state(number, position=5, committed=5) for number in range(2)]
    retry = RetryRange()
    retry.extend(states)
    assert retry
    assert not retry.is_past(states), "a session that has read nothing must not end it"
    states[moved].position += 1
    assert retry.is_past(states)
