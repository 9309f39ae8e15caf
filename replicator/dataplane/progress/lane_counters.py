"""The counters and histograms of one lane: cheap to add to, copied out once a second."""

import os
from bisect import bisect_left
from dataclasses import replace

from replicator.dataplane.transport.delivery import CopyOutcome
from replicator.formats.lane_stats import (
    LATENCY_BOUNDS_SECONDS,
    LaneState,
    LaneStats,
    PartitionStats,
)
from replicator.policy.capacity.broker_quota import BrokerQuota


class Histogram:
    """Counts per bucket (not cumulative), one more than there are bounds, and the sum."""

    __slots__ = ("counts", "sum_seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS_SECONDS) + 1)
        self.sum_seconds = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Adds ``count`` observations of the same value; negative ones count as zero."""
        seconds = max(seconds, 0.0)
        self.counts[bisect_left(LATENCY_BOUNDS_SECONDS, seconds)] += count
        self.sum_seconds += seconds * count


class LaneCounters:
    """Everything a lane counts; survives the lane's recoveries."""

    __slots__ = (
        "aborts", "commit", "commits", "empty_polls", "full_turns", "latency", "outcome", "pending_runs",
        "throttle_wait_seconds", "unit_start", "unknown_outcomes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.outcome = CopyOutcome()
        self.latency = Histogram()
        self.commit = Histogram()
        self.commits = 0
        self.aborts = 0
        self.empty_polls = 0
        """How often the lane found nothing to read."""
        self.full_turns = 0
        """How often the lane read nothing because its target had not taken what it holds."""
        self.unknown_outcomes = 0
        self.throttle_wait_seconds = 0.0
        self.pending_runs: list[tuple[int, int]] = []
        self.unit_start: CopyOutcome | None = None

    def held_back(self, quota: BrokerQuota, began: float, now: float) -> None:
        """Time in which a broker reads nothing of a connection is no standstill, and no more lanes would help."""
        if quota.seconds_held(began) < float("inf"):
            self.throttle_wait_seconds += now - began

    def open_unit(self) -> None:
        """Remembers the counters before a unit of progress, in case it is aborted."""
        self.unit_start = self.outcome_now()

    def outcome_now(self) -> CopyOutcome:
        """A copy of what was counted so far."""
        return replace(self.outcome, dropped=dict(self.outcome.dropped))

    def roll_back(self) -> None:
        """Forgets what the open unit counted: its records will be read again."""
        self.pending_runs.clear()
        if self.unit_start is not None:
            for name in CopyOutcome.__slots__:
                setattr(self.outcome, name, getattr(self.unit_start, name))
            self.unit_start = None

    def run(self, first_timestamp_ms: int, count: int) -> None:
        """Notes a run of records; its latency is known when the commit is."""
        self.pending_runs.append((first_timestamp_ms, count))

    def delivered(self, *, now: float, runs: int | None = None) -> None:
        """Closes the pending runs, or the first so many; the latency of a run is that of its oldest record."""
        for timestamp_ms, count in self.pending_runs[:runs]:
            if timestamp_ms > 0:
                self.latency.add(now - timestamp_ms / 1000, count)
        del self.pending_runs[:runs]

    def committed(
        self,
        *,
        now: float,
        seconds: float,
        runs: int | None = None,
        next_start: CopyOutcome | None = None,
    ) -> None:
        """A unit of progress is stored, and with it every pending run.

        Where the next unit was open already: only the first ``runs``, and ``next_start`` is what it began with.
        """
        self.delivered(now=now, runs=runs)
        self.unit_start = next_start
        self.commit.add(seconds)
        self.commits += 1

    def stats(
        self,
        *,
        pair: str,
        link: str,
        lane: int,
        state: LaneState,
        reason: str,
        partitions: tuple[PartitionStats, ...],
        source_problem: str,
        target_problem: str,
        progress_problem: str,
        logins: tuple[str, str],
        quotas: tuple[str, str],
        opening: tuple[str, str],
        records_reason: str,
        checkpoint_at_ms: int,
    ) -> LaneStats:
        """A frozen copy."""
        outcome = self.outcome
        return LaneStats(
            pair=pair,
            link=link,
            lane=lane,
            state=state,
            reason=reason,
            partitions=partitions,
            records=outcome.copied,
            bytes=outcome.bytes,
            dropped=dict(outcome.dropped),
            quarantined=outcome.quarantined,
            foreign_headers=outcome.foreign_headers,
            headers_omitted=outcome.headers_omitted,
            commits=self.commits,
            aborts=self.aborts,
            unknown_outcomes=self.unknown_outcomes,
            throttle_wait_seconds=self.throttle_wait_seconds,
            latency_buckets=tuple(self.latency.counts),
            latency_sum_seconds=self.latency.sum_seconds,
            commit_buckets=tuple(self.commit.counts),
            commit_sum_seconds=self.commit.sum_seconds,
            checkpoint_at_ms=checkpoint_at_ms,
            source_problem=source_problem,
            target_problem=target_problem,
            progress_problem=progress_problem,
            source_login=logins[0],
            target_login=logins[1],
            source_quota=quotas[0],
            target_quota=quotas[1],
            source_opening=opening[0],
            target_opening=opening[1],
            records_reason=records_reason,
            pid=os.getpid(),
        )
