"""Whether a lane works off a backlog: partitions may then wait their turn, and stand still for no fault of theirs. Pure.

The client library (librdkafka 2.16) forgets whose turn it was whenever its queue of fetched records was full, and
begins with its first partitions again. So while those have records, the others get none, for minutes.
"""

from collections.abc import Iterable

from replicator.dataplane.progress.partition_state import PartitionState


class DrainedBacklog:
    """Of one session, or one lane; for the lane's thread."""

    def __init__(self) -> None:
        self._seen: dict[PartitionState, tuple[int, int]] = {}

    def goes_on(self, states: Iterable[PartitionState], *, at_a_rate: bool = False) -> bool:
        """Whether some partition copied, since the last call, what had waited by then for the most part.

        New records of a partition that is at its end are no backlog: hardly any of them were known before. Where
        the lane was held to a rate (``at_a_rate``), what waits for its turn is one only if it is more than was
        copied meanwhile: a few records wait there all the time.
        """
        before, self._seen = self._seen, {}
        drained = False
        for state in states:
            waiting = max(0, state.source_end - state.position)
            self._seen[state] = (state.position, waiting)
            position, waited = before.get(state, (state.position, 0))
            moved = state.position - position
            much = waiting > moved if at_a_rate else True
            drained = drained or (0 < moved <= 2 * waited and much)
        return drained
