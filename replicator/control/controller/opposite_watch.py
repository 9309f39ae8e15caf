"""Notices in a controller's rounds that another topology begins to copy the other way, and when that knows of this one."""

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog

from replicator.clock import Clock
from replicator.control.controller.single_writer import SingleWriter
from replicator.control.lanes.opposite_topologies import opposite_to_record
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.records.pair_records import OppositeTopologies
from replicator.control.store.controller_writer import ControllerWriter
from replicator.control.store.read import read_control
from replicator.control.store.state import EMPTY, ControlState
from replicator.control.store.worker_record import fresh_workers
from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import TopicPartition, control_topic
from replicator.topology.plan import PairPlan
from replicator.wire.requests.log_ends import LogEnds

READERS = 8
"""So many control topics are read at once: each takes a third of a second, nearly all of it waiting."""

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
        self._ends = LogEnds(pair.source, client_id=client_id)
        self._read: dict[str, tuple[int, ControlState]] = {}
        """The control topics of others as they were read, and where they ended before."""

    def look(self, snapshot: PairSnapshot) -> None:
        """Goes through the source's topics where one came or went since the last call, and asks who does not know us."""
        unaware = snapshot.control.unaware_topologies(self._pair.source.alias)
        if snapshot.source.version == self._listed and not unaware:
            return
        self._listed = snapshot.source.version
        aware = {name for name, may in self._may_copy_back(unaware, snapshot.at_ms) if not may}
        now = self._clock.monotonic()
        self._aware_since = {name: self._aware_since.get(name, now) for name in aware}
        self._found = opposite_to_record(
            self._pair, snapshot.source.sizes, snapshot.control, at_ms=snapshot.at_ms,
            aware={name for name in aware if now - self._aware_since[name] >= SETTLED_SECONDS},
        )  # fmt: skip

    def close(self) -> None:
        """Hangs up."""
        self._ends.close()

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

    def _may_copy_back(self, names: Collection[str], at_ms: int) -> Iterator[tuple[str, bool]]:
        """Of each whether it has workers, and none of them wrote down that we copy to where they copy from."""
        # What it copies to us from is what we copy to; its control topic is on its target, our source.
        if not names:
            return
        pair = self._pair
        self._read = {name: held for name, held in self._read.items() if name in names}
        try:
            ends = self._ends.read([(control_topic(name), 0) for name in names])
        except ReplicatorError:
            ends = {}  # each is asked by itself, and says why
        with ThreadPoolExecutor(READERS, "opposite-topologies") as readers:
            states = list(readers.map(lambda name: self._state(name, ends), names))
        for name, state in zip(names, states, strict=True):
            if state is None:
                yield name, True
            elif pair.topology in state.opposite_topologies(pair.target.alias):
                yield name, False
            else:
                yield name, bool(fresh_workers(state, pair.target.alias, now_ms=at_ms))

    def _state(self, name: str, ends: Mapping[TopicPartition, int]) -> ControlState | None:
        """Its control topic, read again where it has grown; None where that fails."""
        end, held = ends.get((control_topic(name), 0)), self._read.get(name)
        if held is not None and held[0] == end:
            return held[1]
        try:
            state = read_control(name, self._pair.source, client_id=self._client_id)
        except NotFoundError:
            return EMPTY  # it was removed, and applying it again looks first
        except ReplicatorError as error:
            log.warning("it is not known whether another topology looks for copies from here",
                        flow=self._pair.id, topology=name, error=error.message)  # fmt: skip
            return None
        if end is not None:
            self._read[name] = (end, state)
        return state
