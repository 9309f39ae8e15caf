"""Notices in a controller's rounds that another topology begins to copy the other way."""

import structlog

from replicator.control.controller.single_writer import SingleWriter
from replicator.control.lanes.opposite_topologies import opposite_to_record
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.records.pair_records import OppositeTopologies
from replicator.control.store.controller_writer import ControllerWriter
from replicator.control.store.state import ControlState
from replicator.topology.plan import PairPlan

log = structlog.get_logger("replicator.control")


class OppositeWatch:
    """Of one pair; one call at a time."""

    def __init__(self, pair: PairPlan) -> None:
        self._found: OppositeTopologies | None = None
        self._pair = pair
        self._listed = -1

    def look(self, snapshot: PairSnapshot) -> None:
        """Goes through the source's topics where one came or went since the last call."""
        if snapshot.source.version == self._listed:
            return
        self._listed = snapshot.source.version
        self._found = opposite_to_record(
            self._pair, snapshot.source.sizes, snapshot.control, at_ms=snapshot.at_ms
        )

    async def record(
        self, writing: SingleWriter, writer: ControllerWriter, control: ControlState
    ) -> ControlState:
        """Writes what was found, if anything: lanes start again by it. Returns what holds then.

        Raises:
            ClusterError: nothing was written, or it is unknown; the next round does it again.
            FencedError: another controller took over.
        """
        found = self._found
        if found is None:
            return control
        await writing.store(writer, [found])
        self._found = None
        log.info("another topology copies the other way, lanes look for its copies",
                 flow=self._pair.id, topologies=found.topologies)  # fmt: skip
        return control.fold([found.encode()])
