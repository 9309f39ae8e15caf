"""Records that the source has behind a partition's position and that the client which reads it never hears of.

The client library asks the brokers that it is connected to who leads. One that is cut off from the controllers goes on
to lead what it led: it says that nothing comes, so by the client's word the partition is at its end and its lag is 0.
So the leader that several brokers name is asked, over connections of the lane's own.
"""

from collections.abc import Callable, Iterable

from replicator.clock import Clock
from replicator.dataplane.health.newest_ends import NewestEnds
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import NotMovingError, ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan

LOOK_SECONDS = 20.0
"""How often a lane asks about partitions that are at their end."""


class UnheardRecords:
    """Of one lane, across its sessions; for the lane's thread, which never waits for an answer."""

    def __init__(
        self,
        source: ClusterPlan,
        *,
        client_id: str,
        clock: Clock,
        on_failure: Callable[[ReplicatorError], None],
    ) -> None:
        """``on_failure`` is told why the source could not be asked: once, until it could be."""
        self._newest = NewestEnds(source, client_id=client_id)
        self._clock = clock
        self._on_failure = on_failure
        self._asked: dict[TopicPartition, int] = {}
        self._behind: dict[TopicPartition, tuple[int, int]] = {}
        self._look_at = clock.monotonic() + LOOK_SECONDS
        self._in_vain = False

    def ends(self, states: Iterable[PartitionState]) -> dict[TopicPartition, int]:
        """Up to where the source has committed records, of partitions that are at their end by the client's word and are not.

        By the last look that was answered, while a partition stands where it stood then. Begins the next one when it is
        time.
        """
        at_end = {
            state.key: state.position
            for state in states
            if state.is_read and state.source_end <= state.position
        }
        if self._newest.over:
            self._take()
            now = self._clock.monotonic()
            if at_end and now >= self._look_at:
                self._look_at = now + LOOK_SECONDS
                self._asked = at_end
                self._newest.ask(at_end)
        return {
            key: end for key, (position, end) in self._behind.items() if at_end.get(key) == position
        }

    def close(self) -> None:
        """Hangs up."""
        self._newest.close()

    def _take(self) -> None:
        asked, self._asked = self._asked, {}
        if not asked:
            return
        try:
            found = self._newest.take()
        except ReplicatorError as error:
            if not self._in_vain:
                self._on_failure(error)
            self._in_vain = True
            return
        self._in_vain = False
        self._behind = {
            key: (position, found[key])
            for key, position in asked.items()
            if found.get(key, -1) > position
        }


def unheard_error(state: PartitionState, end: int) -> NotMovingError:
    """That the lane's client is told nothing of records up to ``end``."""
    place = f"{state.topic}/{state.partition}"
    return NotMovingError(
        f"{place} stands still at {state.position} while its newest leader has records up to {end}, of which the lane's "
        "client is told nothing",
        subject=place,
        remedy="Another client reads it by itself. If that repeats, look whether a broker has lost its connection to the "
        "controllers: it answers clients, and knows nothing of what happened since. Restart it, or mend its network.",
    )
