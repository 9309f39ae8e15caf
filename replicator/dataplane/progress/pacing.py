"""When a lane commits, how long it waits, and who goes first under a throttle. Pure.

A lane that has caught up commits as soon as its records are acknowledged, but not more often than
MIN_COMMIT_SECONDS: exactly-once is then quick at low rates. A busy lane commits once per commit
interval: cheap at high rates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicator.policy.values import PRIORITIES, Priority

MIN_COMMIT_SECONDS = 0.012
"""A commit costs the target's coordinator three writes; some 80 a second per lane is the most. Why not fewer or more:
docs/decisions/between-two-transactions.md."""

IDLE_POLL_SECONDS = 0.5
"""How long an idle lane sleeps in the client; bounds how late it notices a command."""

IDLE_WAIT_SECONDS = 5.0
"""How long a lane waits that has read nothing for IDLE_AFTER_SECONDS; records and commands end it."""

IDLE_AFTER_SECONDS = 10.0

DEFERRED_COMMIT_SECONDS = 1.0
"""Progress without records (dropped loops, control markers) is stored at most this often."""


@dataclass(frozen=True, slots=True)
class CommitSchedule:
    """What to do when no record is waiting: commit now, or wait this long for the next.

    ``idle``: none has come for so long that the next may be noticed a moment later, for less work.
    """

    commit: bool
    wait_seconds: float
    idle: bool = False


def commit_schedule(
    *,
    now: float,
    opened_at: float | None,
    last_commit_at: float,
    commit_interval_seconds: float,
    deferred_since: float | None,
    transactional: bool,
    read_at: float,
    behind: bool = False,
) -> CommitSchedule:
    """Decides from monotonic times.

    ``opened_at`` is when the open unit got its first record, ``last_commit_at`` when the last commit
    began. ``deferred_since`` is when progress without records began to wait. Without transactions a
    commit buys no latency: records are visible at once. ``read_at`` is when a record was read last.
    ``behind``: more is known to wait at the source, though none of it has come yet; a commit would stop the
    lane until everything is acknowledged, and buy nothing.
    """
    if opened_at is not None:
        due = opened_at + commit_interval_seconds
        if transactional and not behind:
            due = min(due, last_commit_at + MIN_COMMIT_SECONDS)
        if due <= now:
            return CommitSchedule(commit=True, wait_seconds=0.0)
        return CommitSchedule(commit=False, wait_seconds=due - now)
    if deferred_since is not None:
        due = deferred_since + DEFERRED_COMMIT_SECONDS
        if due <= now:
            return CommitSchedule(commit=True, wait_seconds=0.0)
        return CommitSchedule(commit=False, wait_seconds=min(IDLE_POLL_SECONDS, due - now))
    if now - read_at >= IDLE_AFTER_SECONDS:
        return CommitSchedule(commit=False, wait_seconds=IDLE_WAIT_SECONDS, idle=True)
    return CommitSchedule(commit=False, wait_seconds=IDLE_POLL_SECONDS)


def held_back(
    priorities: Mapping[tuple[str, int], Priority],
    backlog: Iterable[tuple[str, int]],
) -> frozenset[tuple[str, int]]:
    """The partitions that must wait because a higher priority still has a backlog.

    Only asked while the lane is over its budget: otherwise no partition waits.
    """
    ranks = {priority: rank for rank, priority in enumerate(PRIORITIES)}
    behind = [ranks[priorities[key]] for key in backlog if key in priorities]
    if not behind:
        return frozenset()
    first = min(behind)
    return frozenset(key for key, priority in priorities.items() if ranks[priority] > first)
