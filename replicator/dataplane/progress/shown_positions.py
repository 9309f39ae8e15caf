"""Which positions the group on the source is told, and when. Pure.

The group shows what is stored with the target, never more: what a lane has read or sent beyond that may be
copied again.
"""

from collections.abc import Iterable, Mapping

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.identifiers import TopicPartition

PROGRESS_SECONDS = 5.0
"""How often a lane shows what moved."""

ALL_AGAIN_SECONDS = 600.0
"""How often it shows everything: positions of a partition that rests are removed by brokers after a week
(``offsets.retention.minutes``), and all of them with a group that is deleted."""


class ShownPositions:
    """Of one session of a lane; times are monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._due_at = now + PROGRESS_SECONDS
        self._all_at = now + ALL_AGAIN_SECONDS
        self._shown: dict[TopicPartition, int] = {}

    def due(self, now: float) -> bool:
        """Whether it is time; the next time is an interval later."""
        if now < self._due_at:
            return False
        self._due_at = now + PROGRESS_SECONDS
        if now >= self._all_at:
            self._all_at = now + ALL_AGAIN_SECONDS
            self._shown.clear()
        return True

    def moved(self, states: Iterable[PartitionState]) -> dict[TopicPartition, int]:
        """The stored positions that are not the shown ones; those of stopped partitions stay as they are."""
        return {
            state.key: state.committed
            for state in states
            if state.committed >= 0
            and not state.problem
            and self._shown.get(state.key) != state.committed
        }

    def shown(self, positions: Mapping[TopicPartition, int]) -> None:
        """The source has these."""
        self._shown.update(positions)
