"""Notices in a controller's rounds that another topology begins to copy the other way, and when that knows of this one."""

import structlog

from replicator.clock import Clock
from replicator.control.controller.single_writer import SingleWriter
from replicator.control.lanes.opposite_topologies import opposite_to_record
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.records.pair_records import OppositeTopologies
from replicator.control.store.controller_writer import ControllerWriter
from replicator.control.store.read import read_control
from replicator.control.store.state import ControlState
from replicator.control.store.worker_record import fresh_workers
from replicator.errors import NotFoundError, ReplicatorError
from replicator.topology.plan import PairPlan

log = structlog.get_logger("replicator.control")

SETTLED_SECONDS = 30.0
"""For so long another topology has known of this one before its lanes are taken to look for copies from here: they hear
of it and start again by it. A worker that had looked before we came, and is not on record yet, is on record by then."""


class OppositeWatch:
    """Of one pair; one call at a time."""

    def __init__(self, pair: PairPlan, *, clock: Clock, client_id: str) -> None:
        self._found: OppositeTopologies | None = None
        self._pair = pair
        self._clock = clock
        self._client_id = client_id
        self._listed = -1
        self._aware_since: dict[str, float] = {}

    def look(self, snapshot: PairSnapshot) -> None:
        """Goes through the source's topics where one came or went since the last call, and asks who does not know us."""
        unaware = snapshot.control.unaware_topologies(self._pair.source.alias)
        if snapshot.source.version == self._listed and not unaware:
            return
        self._listed = snapshot.source.version
        self._found = opposite_to_record(
            self._pair, snapshot.source.sizes, snapshot.control, at_ms=snapshot.at_ms,
            aware={name for name in unaware if self._is_aware(name, snapshot.at_ms)},
        )  # fmt: skip

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
                 flow=self._pair.id, topologies=found.topologies, unaware=found.unaware)  # fmt: skip
        return control.fold([found.encode()])

    def _is_aware(self, name: str, at_ms: int) -> bool:
        now = self._clock.monotonic()
        if self._may_copy_back(name, at_ms):
            self._aware_since.pop(name, None)
            return False
        return now - self._aware_since.setdefault(name, now) >= SETTLED_SECONDS

    def _may_copy_back(self, name: str, at_ms: int) -> bool:
        """Whether it has workers, and none of them wrote down that we copy to where they copy from."""
        # What it copies to us from is what we copy to; its control topic is on its target, our source.
        pair = self._pair
        try:
            control = read_control(name, pair.source, client_id=self._client_id)
        except NotFoundError:
            return False  # it was removed, and applying it again looks first
        except ReplicatorError as error:
            log.warning("it is not known whether another topology looks for copies from here",
                        flow=pair.id, topology=name, error=error.message)  # fmt: skip
            return True
        if pair.topology in control.opposite_topologies(pair.target.alias):
            return False
        return bool(fresh_workers(control, pair.target.alias, now_ms=at_ms))
