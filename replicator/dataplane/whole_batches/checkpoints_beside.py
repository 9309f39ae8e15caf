"""Checkpoints of a lane without transactions, stored while it copies on.

They say how far the lane had read at one moment. They are written once everything that it had sent by then
is acknowledged, and count as stored once they are acknowledged themselves; nothing waits for either.
docs/decisions/checkpoints-behind-acknowledgements.md
"""

from collections.abc import Callable, Iterable, Sequence

from replicator.batches.copy.barrier import Barrier
from replicator.batches.copy.outgoing import Outgoing
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.delivery import CopyOutcome


class CheckpointsBeside:
    """One set of checkpoints on its way; for the lane's thread.

    Attributes:
        began: monotonic seconds when it was made.
        runs: how many runs it covers, of those whose latency is not counted yet.
        outcome: what the lane had counted by then.
    """

    def __init__(
        self,
        records: Barrier,
        *,
        states: Iterable[PartitionState],
        batches: Sequence[Outgoing],
        at_ms: int,
        began: float,
        runs: int,
        outcome: CopyOutcome,
    ) -> None:
        """``records`` stands behind what the checkpoints cover, which are packed in ``batches``."""
        self.began = began
        self.runs = runs
        self.outcome = outcome
        self._records = records
        self._reached = [(state, state.position, at_ms) for state in states]
        self._batches = batches
        self._stored: Barrier | None = None

    def write_when_due(self, write: Callable[[Outgoing], None]) -> bool:
        """Writes them if what they cover is acknowledged; True at the one call that does."""
        if self._stored is not None or not self._records.passed:
            return False
        self._stored = Barrier(self._batches)
        for batch in self._batches:
            write(batch)
        return True

    def stored(self) -> bool:
        """Whether they are stored; then their partitions' states say so too."""
        if self._stored is None or not self._stored.passed:
            return False
        for state, position, at_ms in self._reached:
            # A log that is another one by now has begun anew, at a position of its own.
            if position <= state.position:
                state.committed, state.committed_at_ms = position, at_ms
        return True
