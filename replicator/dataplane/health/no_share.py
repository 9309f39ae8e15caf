"""Partitions that wait because their lane's share of the flow's budget is nothing.

A budget of fewer records per second than the flow has lanes leaves some of them none. Such a lane reads nothing, so
it does not learn by itself that records wait.
"""

from collections.abc import Callable, Iterable, Mapping

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import NotMovingError
from replicator.identifiers import TopicPartition
from replicator.policy.values import Throttle

STILL_SECONDS = 5.0
"""Shares are split anew every two seconds: so long a partition may wait for that."""

_ASK_SECONDS = 2.0

Ends = Callable[[list[TopicPartition]], Mapping[TopicPartition, int]]
"""Asks the source where partitions end; those it does not answer for are absent. Blocking."""


class NoShare:
    """Of one lane, across its sessions; for the lane's thread."""

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._ask_at = 0.0
        self._since: dict[TopicPartition, tuple[int, float]] = {}

    def found(
        self, states: Iterable[PartitionState], share: Throttle, ends: Ends, *, now: float
    ) -> dict[PartitionState, NotMovingError]:
        """The partitions of which records wait for a share; called now and then, ``now`` in monotonic seconds.

        Raises:
            ReplicatorError: the source does not answer.
        """
        if not has_none(share):
            self._since = {}
            return {}
        if now < self._ask_at:
            return {}
        self._ask_at = now + _ASK_SECONDS
        asked = [state for state in states if state.is_read and not state.health.failure]
        known = ends([state.key for state in asked]) if asked else {}
        before, self._since = self._since, {}
        found = {}
        for state in asked:
            if known.get(state.key, -1) <= state.position:
                continue
            position, since = before.get(state.key, (state.position, now))
            since = since if position == state.position else now
            self._since[state.key] = (state.position, since)
            if now - since >= STILL_SECONDS:
                found[state] = self._error(state, known[state.key])
        return found

    def _error(self, state: PartitionState, end: int) -> NotMovingError:
        place = f"{state.topic}/{state.partition}"
        return NotMovingError(
            f"{place} stands still at {state.position} while the source has records up to {end}: lane {self._lane} "
            "has no share of the flow's throttle, which is less than one record per second for each lane",
            subject=place,
            remedy="Raise throttle.recordsPerSecond to at least the number of the flow's lanes, or set lanes to fewer.",
        )


def has_none(share: Throttle) -> bool:
    """Whether a lane with this share may copy nothing."""
    return 0 in (share.bytes_per_second, share.records_per_second)
