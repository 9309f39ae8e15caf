"""When a lane commits and who waits under a throttle."""

import pytest

from replicator.dataplane.progress.pacing import (
    DEFERRED_COMMIT_SECONDS,
    IDLE_AFTER_SECONDS,
    IDLE_POLL_SECONDS,
    IDLE_WAIT_SECONDS,
    MIN_COMMIT_SECONDS,
    commit_schedule,
    held_back,
)

INTERVAL = 0.2


def schedule(*, now: float, opened_at: float | None = None, last: float = 0.0, **fields):
    return commit_schedule(
        now=now,
        opened_at=opened_at,
        last_commit_at=last,
        commit_interval_seconds=INTERVAL,
        **{"deferred_since": None, "transactional": True, "read_at": now, **fields},
    )


def test_an_idle_lane_sleeps_in_the_client():
    assert schedule(now=100.0) == schedule(now=100.0, transactional=False)
    assert (schedule(now=100.0).commit, schedule(now=100.0).wait_seconds) == (
        False,
        IDLE_POLL_SECONDS,
    )


def test_a_lane_that_stays_idle_waits_longer_unless_progress_waits_to_be_stored():
    assert schedule(now=100.0, read_at=100.1 - IDLE_AFTER_SECONDS) == schedule(now=100.0)
    idle = {"now": 100.0, "read_at": 100.0 - IDLE_AFTER_SECONDS}
    assert (schedule(**idle).wait_seconds, schedule(**idle).idle) == (IDLE_WAIT_SECONDS, True)
    assert schedule(**idle, deferred_since=99.9).wait_seconds == IDLE_POLL_SECONDS


def test_a_unit_is_committed_when_its_interval_is_over():
    assert schedule(now=10.25, opened_at=10.0, last=10.24).commit


def test_a_lane_that_caught_up_commits_at_once_but_not_too_often():
    assert schedule(now=10.0, opened_at=10.0, last=9.0).commit
    soon = schedule(now=10.0, opened_at=10.0, last=9.99)
    assert not soon.commit
    assert soon.wait_seconds == pytest.approx(MIN_COMMIT_SECONDS - 0.01)


def test_a_lane_that_is_behind_commits_once_per_interval():
    waiting = schedule(now=10.1, opened_at=10.0, last=9.0, behind=True)
    assert (waiting.commit, waiting.wait_seconds) == (False, pytest.approx(0.1))
    assert schedule(now=10.2, opened_at=10.0, last=9.0, behind=True).commit


def test_without_transactions_checkpoints_are_written_once_per_interval():
    unhurried = schedule(now=10.0, opened_at=10.0, last=0.0, transactional=False)
    assert (unhurried.commit, unhurried.wait_seconds) == (False, pytest.approx(INTERVAL))


def test_progress_without_records_is_stored_after_a_while():
    assert not schedule(now=10.0, deferred_since=10.0).commit
    assert schedule(now=10.0 + DEFERRED_COMMIT_SECONDS, deferred_since=10.0).commit
    near = schedule(now=10.0 + DEFERRED_COMMIT_SECONDS - 0.1, deferred_since=10.0)
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
