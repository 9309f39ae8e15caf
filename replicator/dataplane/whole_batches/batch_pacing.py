"""When a lane of whole batches commits, and how long it may sleep.

A lane commits, as often as it may, in a moment in which everything is acknowledged: then the commit holds nothing
up. With a record every millisecond such moments are rare where brokers are slow, so one that has read its partitions
to their ends waits for them no longer than it would for the commit. One that is behind commits once per interval.
"""

from replicator.batches.copy.readings import Key
from replicator.batches.copy.source_reader import SourceReader
from replicator.batches.copy.target_writer import TargetWriter
from replicator.dataplane.progress.pacing import (
    IDLE_POLL_SECONDS,
    MIN_COMMIT_SECONDS,
    CommitSchedule,
    commit_schedule,
)
from replicator.dataplane.whole_batches.batch_unit import BatchUnit

PATIENCE_SECONDS = MIN_COMMIT_SECONDS
"""How long a commit that is due waits for a moment in which everything is acknowledged."""

STUCK_WAIT_SECONDS = 0.02
"""Batches that were not taken are sent again so soon."""

STORING_WAIT_SECONDS = 0.05
"""Checkpoints that are due wait for the last ones; the acknowledgement of those ends the wait."""


class BatchPacing:
    """Of one session; for the lane's thread.

    Attributes:
        read_at: monotonic seconds when a record was read last.
    """

    def __init__(
        self,
        *,
        unit: BatchUnit,
        reader: SourceReader,
        writer: TargetWriter,
        commit_interval_seconds: float,
        transactional: bool,
        now: float,
    ) -> None:
        self.read_at = now
        self._unit = unit
        self._reader = reader
        self._writer = writer
        self._interval = commit_interval_seconds
        self._transactional = transactional
        self._behind: set[Key] = set()

    def took(self, key: Key, *, behind: bool) -> None:
        """An answer about a partition was taken in; ``behind``: there is more of it to read."""
        if behind:
            self._behind.add(key)
        else:
            self._behind.discard(key)

    def patience(self, now: float) -> float:
        """For how many seconds nothing has to be done unless something comes."""
        return min(
            self._seconds_to_commit(now),
            self._reader.readings.seconds_to_retry(now),
            self._reader.seconds_to_ask(now),
            self._writer.seconds_held(now),
        )

    def _seconds_to_commit(self, now: float) -> float:
        if self._writer.stuck_since() is not None:
            return STUCK_WAIT_SECONDS
        schedule = self._schedule(now)
        if not schedule.commit:
            return min(schedule.wait_seconds, IDLE_POLL_SECONDS)
        return STORING_WAIT_SECONDS if self._unit.storing else 0.0

    def commit_when_due(self, now: float) -> None:
        """Commits, or has checkpoints stored beside what goes on.

        Raises:
            ReplicatorError: the session is over.
        """
        self._unit.go_on()
        if not self._schedule(now).commit:
            return
        if self._transactional:
            self._unit.commit(more_follows=self._is_behind())
        else:
            self._unit.commit_beside()

    def _schedule(self, now: float) -> CommitSchedule:
        idle = self._writer.idle
        return commit_schedule(
            now=now,
            opened_at=self._unit.opened_at,
            last_commit_at=self._unit.last_commit_at + (0.0 if idle else PATIENCE_SECONDS),
            commit_interval_seconds=self._interval,
            deferred_since=self._unit.deferred_since,
            transactional=self._transactional,
            read_at=self.read_at,
            behind=not idle and self._is_behind(),
        )

    def _is_behind(self) -> bool:
        """Whether more waits at the source, or the target takes nothing just now."""
        # Partitions that are not read any more, or held back, are nothing to wait for.
        self._behind = {key for key in self._behind if self._is_read(key)}
        return bool(self._behind) or self._writer.stuck_since() is not None

    def _is_read(self, key: Key) -> bool:
        reading = self._reader.readings.get(key)
        return reading is not None and not reading.paused
