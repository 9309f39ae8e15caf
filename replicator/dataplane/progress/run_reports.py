"""Delivery reports for the first record of a run: what needs one, and what waits for it."""

from replicator.dataplane.progress.first_writes import FirstWrites
from replicator.dataplane.progress.index_notes import IndexNotes
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.delivery import OnDelivery


class RunReports:
    """Of one session's producer; used by the lane's thread only.

    Attributes:
        first_writes: watches the first record that the producer writes to each partition.
        index: notes target offsets now and then; None where no index is kept.
    """

    def __init__(self, first_writes: FirstWrites) -> None:
        self.first_writes = first_writes
        self.index: IndexNotes | None = None

    def report_for(self, state: PartitionState, source_offset: int) -> OnDelivery | None:
        """The delivery report for the first record of a run; None where none is needed."""
        noted = None if self.index is None else self.index.report_for(state, source_offset)
        if not self.first_writes.transactional:
            return noted  # others report failures only, and those to the whole session
        noted, expected = state.target.report_for(noted)
        return self.first_writes.report_for(
            state.target_topic, state.partition, noted, expected=expected
        )

    def wait_after(self, state: PartitionState) -> None:
        """After that record was produced; see ``FirstWrites.wait_after``."""
        self.first_writes.wait_after(state.target_topic, state.partition)
