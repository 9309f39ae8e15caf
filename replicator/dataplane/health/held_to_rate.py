"""Partitions that stand still while their lane is held to its rate: whose log is worth a look. Pure.

Beside a backlog that a rate makes last for days, a partition may wait its turn for long, and for no fault of its
own. So that it stands still proves nothing there; what its source says of it does. A look costs the source a fetch,
and a log that was found whole at a position is not looked at again soon.
"""

from collections.abc import Iterable

from replicator.dataplane.health.damaged_source import MOST_LOOKS
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.identifiers import TopicPartition

LOOK_AGAIN_SECONDS = 300.0


class HeldToRate:
    """Of one lane, across its sessions; for the lane's thread."""

    def __init__(self, *, still_seconds: float) -> None:
        """So long a partition stands still before it is looked at."""
        self._still_seconds = still_seconds
        self._seen: dict[TopicPartition, tuple[int, float, float]] = {}

    def to_look_at(
        self, states: Iterable[PartitionState], *, throttled: bool, now: float
    ) -> list[PartitionState]:
        """A few partitions, those first that have waited longest; called now and then.

        Args:
            states: those of the lane that should move.
            throttled: whether the lane has waited for its rate since the last call.
            now: monotonic seconds.
        """
        before, self._seen = self._seen, {}
        if not throttled:
            return []
        due: list[tuple[float, PartitionState]] = []
        for state in states:
            position, since, look_at = before.get(state.key, (-1, now, now))
            if position != state.position:
                since, look_at = now, now + self._still_seconds
            self._seen[state.key] = (state.position, since, look_at)
            if now >= look_at:
                due.append((since, state))
        due.sort(key=lambda each: each[0])
        found = [state for _, state in due[:MOST_LOOKS]]
        for state in found:
            since = self._seen[state.key][1]
            self._seen[state.key] = (state.position, since, now + LOOK_AGAIN_SECONDS)
        return found
