"""Copies that whole batches left on a target before a lane went over to copying record by record."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from replicator.dataplane.progress.index_notes import IndexNotes
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.own_transaction import AbortIn
from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition

if TYPE_CHECKING:
    from replicator.dataplane.takeover.counted_copies import CountedCopies


class OlderWholeBatches:
    """Counts the copies that whole batches left on a target before; opened only for a target in doubt."""

    def __init__(
        self,
        spec: LaneSpec,
        states: Iterable[PartitionState],
        stored: Mapping[TopicPartition, Checkpoint],
        index: IndexNotes,
        abort_in: AbortIn,
    ) -> None:
        self._given = (spec, tuple(states), stored, index)
        self._abort_in = abort_in
        self._opened: CountedCopies | None = None

    @property
    def needed(self) -> bool:
        """See ``CountCopies``."""
        return self._counted().needed

    def __call__(
        self,
        ends: Mapping[TopicPartition, int],
        known: Mapping[TopicPartition, tuple[int, int]] | None = None,
    ) -> dict[TopicPartition, int]:
        """See ``CountCopies``."""
        return self._counted()(ends, known)

    def _counted(self) -> "CountedCopies":
        if self._opened is None:
            # Here, because the protocol's codec takes half a second to import.
            from replicator.dataplane.takeover.counted_copies import CountedCopies

            self._opened = CountedCopies(
                *self._given, client_id=lane_client_id(self._given[0]), abort_in=self._abort_in
            )
        return self._opened
