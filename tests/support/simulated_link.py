"""A link on virtual time: its flows as a controller applies them, and lanes that copy in either direction."""

from collections.abc import Iterable
from typing import Any, Protocol

from simulated_sides import LINK, PLACES, Entry, Side, Written

from replicator.control.lanes.lane_specs import lane_may_start
from replicator.control.records.pair_records import Block, Layout, TopicRecord
from replicator.control.store.state import ControlState
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.identifiers import (
    TopicPartition,
    controller_transactional_id,
    lane_transactional_id,
)
from replicator.policy.copies.provenance import Hop, encode_hop, find_hops, with_hop
from replicator.topology.plan import Plan
from replicator.topology.roles import Role


class Copied(Protocol):
    """The world, as lanes see it."""

    plan: Plan
    topology: str
    calm: bool
    draw: Any
    lanes: list["Lane"]

    def side(self, cluster: Any) -> Side:
        """The model of a cluster."""
        ...


def roles_in(states: Iterable[ControlState]) -> list[Role]:
    """What control topics say of the link's role."""
    return [record.role() for state in states if (record := state.role(LINK)) is not None]


class Lane:
    """One life of a lane: fence, ask, read its checkpoints, copy and commit."""

    def __init__(self, world: Copied, spec: LaneSpec) -> None:
        self._world = world
        self._spec = spec
        self._from, self._to = world.side(spec.source), world.side(spec.target)
        self._arrivals = world.plan.arrivals(str(spec.source.alias))
        self._stage = "fence"
        self._owned: Written | None = None
        self._at: dict[TopicPartition, int] = {}

    def step(self) -> None:
        """The next thing that it does."""
        try:
            getattr(self, f"_{self._stage}")()
        except ReplicatorError:
            self._stage = "over"
        if self._stage == "over" and self in self._world.lanes:
            self._world.lanes.remove(self)

    def _fence(self) -> None:
        self._to.check()
        spec = self._spec
        id_ = lane_transactional_id(spec.topology, spec.source.alias, spec.target.alias, spec.lane)
        self._owned = self._to.initialise(id_)
        self._stage = "ask"

    def _ask(self) -> None:
        self._to.check()
        self._stage = "read" if lane_may_start(self._to.settled(), self._spec) else "over"

    def _read(self) -> None:
        self._to.check()
        found = decode_checkpoints(self._to.checkpoints.get(self._spec.lane, {}))
        self._at = {
            place: found[place].offset if place in found else 0
            for place in ((work.topic, work.partition) for work in self._spec.work)
        }
        self._stage = "copy"

    def _copy(self) -> None:
        world, source = self._world, self._from
        source.check()
        ready = [place for place in self._at if self._at[place] < source.stable_end(place)]
        if not ready:
            if world.calm:
                self._stage = "over"
            return
        for place in ready:
            start = self._at[place]
            far = source.stable_end(place) if world.calm else start + world.draw.randrange(1, 5)
            end = min(source.stable_end(place), far)
            for offset in range(start, end):
                self._take(place, offset, source.logs[place][offset])
            self._at[place] = end
            stored = Checkpoint(*place, end, topic_id=f"id-{place[0]}", records=end)
            self._owned.checkpoints.append((self._spec.lane, stored.key(), stored.value()))
        self._stage = "commit"

    def _take(self, place: TopicPartition, offset: int, one: Entry) -> None:
        if not one.number or one.state != "committed":
            return
        if str(self._spec.target.alias) in self._arrivals.passed(one.headers, *place):
            return
        hop = encode_hop(Hop(str(self._spec.source.alias), *place, offset))
        headers = tuple(with_hop(one.headers, find_hops(one.headers), hop))
        self._owned.records.append((place, Entry(one.number, headers, at_ms=one.at_ms)))

    def _commit(self) -> None:
        self._to.check()
        owned = self._owned
        self._to.commit(owned)
        self._owned = Written(owned.id, owned.epoch)
        self._stage = "copy"

    def _over(self) -> None:
        pass


def apply_flow(world: Copied, source: Any) -> None:
    """Topics and lanes of the flow out of a cluster, as its controller applies them."""
    target = next(one for one in world.plan.clusters if one.alias != source.alias)
    side = world.side(target)
    if side.states[-1].layout(str(source.alias)) is not None:
        return
    owned = side.initialise(controller_transactional_id(world.topology, source.alias, target.alias))
    count = len(PLACES)
    owned.control += [
        Layout(
            source=source.alias, epoch=1, state="stable", blocks=(Block(link=LINK, first=0, count=1),),
            total=1,
        ).encode(),
        TopicRecord(
            source=source.alias, link=LINK, topic="t", target="t", topic_id="id-t", partitions=count,
            target_partitions=count, state="active", activated=True,
        ).encode(),
    ]  # fmt: skip
    side.commit(owned)
