"""When a lane commits and who waits under a throttle."""

import pytest

from replicator.dataplane.progress.pacing import (
    IDLE_POLL_SECONDS,
    LAZY_COMMIT_SECONDS,
    MIN_COMMIT_SECONDS,
    REST_SECONDS,
    RESTED_SECONDS,
    commit_schedule,
    held_back,
)

INTERVAL = 0.2


def pace(*, now: float, opened_at: float | None = None, last: float = 0.0, **fields):
    return commit_schedule(
        now=now,
        opened_at=opened_at,
        last_commit_at=last,
        commit_interval_seconds=INTERVAL,
        **{"caught_up": True, "lazy_since": None, "eager": True, "read_at": now, **fields},
    )


def test_an_idle_lane_sleeps_in_the_client():
    assert pace(now=100.0) == pace(now=100.0, eager=False)
    assert (pace(now=100.0).commit, pace(now=100.0).wait_seconds) == (False, IDLE_POLL_SECONDS)


def test_a_lane_that_has_rested_sleeps_longer_unless_progress_waits_to_be_stored():
    assert pace(now=100.0, read_at=100.1 - RESTED_SECONDS) == pace(now=100.0)
    rested = {"now": 100.0, "read_at": 100.0 - RESTED_SECONDS}
    assert (pace(**rested).wait_seconds, pace(**rested).rest) == (REST_SECONDS, True)
    assert pace(**rested, lazy_since=99.9).wait_seconds == IDLE_POLL_SECONDS


def test_a_unit_is_committed_when_its_interval_is_over_caught_up_or_not():
    for caught_up in (True, False):
        assert pace(now=10.25, opened_at=10.0, last=10.24, caught_up=caught_up).commit


def test_a_lane_that_caught_up_commits_at_once_but_not_too_often():
    assert pace(now=10.0, opened_at=10.0, last=9.0).commit
    soon = pace(now=10.0, opened_at=10.0, last=9.99)
    assert not soon.commit
    assert soon.wait_seconds == pytest.approx(MIN_COMMIT_SECONDS - 0.01)


def test_a_lane_that_is_behind_reads_on_without_waiting():
    behind = pace(now=10.0, opened_at=9.95, caught_up=False)
    assert (behind.commit, behind.wait_seconds) == (False, 0.0)


def test_without_transactions_nothing_is_gained_by_haste():
    calm = pace(now=10.0, opened_at=10.0, last=0.0, eager=False)
    assert (calm.commit, calm.wait_seconds) == (False, pytest.approx(INTERVAL))


def test_progress_without_records_is_stored_after_a_while():
    assert not pace(now=10.0, lazy_since=10.0).commit
    assert pace(now=10.0 + LAZY_COMMIT_SECONDS, lazy_since=10.0).commit
    near = pace(now=10.0 + LAZY_COMMIT_SECONDS - 0.1, lazy_since=10.0)
    assert near.wait_seconds == pytest.approx(0.1)


PRIORITIES = {("a", 0): "critical", ("b", 0): "normal", ("c", 0): "bulk"}


@pytest.mark.parametrize(
    ("backlog", "held"),
    [
        ([("a", 0), ("c", 0)], {("b", 0), ("c", 0)}),
        ([("b", 0), ("c", 0)], {("c", 0)}),
        ([("c", 0)], set()),
        ([], set()),
        ([("gone", 0)], set()),
    ],
)
def test_lower_priorities_wait_for_the_highest_with_a_backlog(backlog, held):
    assert held_back(PRIORITIES, backlog) == held
