"""The fenced change of a pair's lanes, resumable from any point.

1. ``changing`` is written: no lane starts, running ones stop within an interval.
2. Every old and new lane id is initialised: a lane that has not seen the change cannot commit any more.
3. The checkpoints topic grows.
4. In one transaction: checkpoints move to their new lanes, records of topics that changed their
   link end, and the new layout is ``stable``.

Interrupted before 4, the pair is found ``changing`` and all is done again; step 4 happens whole or
not at all. A controller that was replaced meanwhile fails at its next write, before any harm.
"""

from collections.abc import Callable

from replicator.control.lanes.checkpoint_moves import plan_moves
from replicator.control.reconcile.actions import ArrangeLanes
from replicator.control.records.base import Record
from replicator.control.records.pair_records import Layout
from replicator.control.store.controller_writer import ControllerWriter, Placed
from replicator.identifiers import checkpoints_topic, control_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.checkpoint_log import read_checkpoint_records
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.topology.plan import PairPlan

READ_SECONDS = 30.0


class LaneMigration:
    """Carries out ``ArrangeLanes`` for one pair."""

    def __init__(
        self,
        pair: PairPlan,
        topology: str,
        *,
        admin: ClusterAdmin,
        writer: ControllerWriter,
        client_id: str,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``step`` is called with the name of each step before it is done."""
        self._pair = pair
        self._topology = topology
        self._admin = admin
        self._writer = writer
        self._client_id = client_id
        self._step = step
        self._control = control_topic(topology)
        self._checkpoints = checkpoints_topic(topology, pair.source.alias)

    def carry_out(self, action: ArrangeLanes) -> tuple[Record, ...]:
        """Does what the action says; returns the records that now hold.

        Raises:
            FencedError: another controller took over.
            ClusterError: the target does not answer or refuses; ask again later.
        """
        layout = action.decision.layout
        if action.decision.change == "write":
            self._step("grow")
            self._grow(layout)
            self._step("write")
            self._writer.write([self._placed(layout)])
            return (layout,)
        self._step("declare")
        self._writer.write([self._placed(layout.model_copy(update={"state": "changing"}))])
        self._step("grow")
        partitions = self._grow(layout)
        self._step("fence")
        self._writer.fence_lanes(range(max(partitions, layout.total)))
        self._step("read")
        # Bulk copies write there too: what a lane stored may stand behind a transaction of theirs.
        stored = read_checkpoint_records(
            self._topology, self._pair.source.alias, self._pair.target, range(partitions),
            client_id=self._client_id, timeout_seconds=READ_SECONDS, past_open_transactions=True,
        )  # fmt: skip
        moves = plan_moves(stored, layout, dict(action.links))
        self._step("move")
        self._writer.write(
            [
                *(
                    Placed(self._checkpoints, move.partition, move.key, move.value)
                    for move in moves
                ),
                *(Placed(self._control, 0, *record.tombstone()) for record in action.erased),
                self._placed(layout),
            ]
        )
        self._step("done")
        return (layout,)

    def _placed(self, record: Record) -> Placed:
        return Placed(self._control, 0, *record.encode())

    def _grow(self, layout: Layout) -> int:
        """Grows the checkpoints topic to the layout; returns how many partitions it has."""
        topic = ensure_compacted_topic(self._admin, self._checkpoints, partitions=layout.total)
        return topic.partitions
