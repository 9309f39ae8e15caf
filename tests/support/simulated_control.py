"""Controllers and lanes of one pair on a model of the target's transactions: one seed is one schedule.

The product's controller round, lane migration, layout, moves of checkpoints, and the question of a lane whether
it may start, run here; transactions, topics and what a lane copies are a model. An actor that is about to do
something may be held up there while others do anything they like, and go on afterwards as if nothing had been; or it
ends there, or what it commits gets no answer: it is done, or lost, or comes later, because leaders and coordinators
move to other brokers at any time. Then it is decided at the latest when the next owner initialises the id. A read
while a leader moves is refused.

``run_schedule`` returns what was broken; nothing is the aim.
"""

import contextlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from topology_files import plan_of

from replicator.control.controller import controller as controller_module
from replicator.control.controller import lane_migration, single_writer
from replicator.control.controller.controller import PairController
from replicator.control.lanes.lane_specs import lane_may_start, lane_specs
from replicator.control.lanes.layout import decide_layout, lane_in
from replicator.control.reconcile.actions import ArrangeLanes, WriteRecord
from replicator.control.reconcile.decide import Decision
from replicator.control.records.pair_records import Layout, TopicRecord
from replicator.control.store.controller_writer import Placed
from replicator.control.store.state import EMPTY, ControlState
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import FencedError, ReplicatorError, UnknownOutcomeError, UnreachableError
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.identifiers import (
    checkpoints_topic,
    control_topic,
    controller_transactional_id,
    lane_transactional_id,
)
from replicator.testing.kit.manual_clock import ManualClock

PARTITIONS = 3
RECORDS = 6
"""Of each source partition."""

STEPS = 40
DEEPEST = 4
"""How many can be held up at the same time."""


def _wanted(lanes: int, *, split: bool = False) -> Any:
    """One link with so many lanes, or the second topic in a link of its own."""
    common = {"shape": "active-passive", "active": "east", "passive": "west"}
    first = {
        **common,
        "name": "l0",
        "lanes": lanes,
        "topics": {"include": ["t"] if split else ["t", "u"]},
    }
    second = {**common, "name": "l1", "lanes": 2, "topics": {"include": ["u"] if split else ["v"]}}
    return plan_of(first, second)


PLANS = [_wanted(lanes) for lanes in (1, 2, 4)] + [_wanted(3, split=True)]
CONTROL = control_topic("shop")
CHECKPOINTS = checkpoints_topic("shop", PLANS[0].pairs[0].source.alias)


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Transaction:
    """What one producer has written and not committed."""

    id: str
    epoch: int
    records: list[Placed] = field(default_factory=list)
    copies: list[tuple[tuple[str, int], int]] = field(default_factory=list)


class World:
    """The target cluster, and everybody who works with it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.broken: list[str] = []
        self.epochs: dict[str, int] = {}
        self.control: list[tuple[bytes, bytes | None]] = []
        self.states: list[ControlState] = [EMPTY]
        self.checkpoints: dict[int, dict[bytes, bytes]] = {}
        self.partitions = 0
        self.copied: dict[tuple[str, int], int] = {}
        self.lanes: list[SimulatedLane] = []
        self.undecided: dict[str, Transaction] = {}
        self.depth = 0
        self.moments = 0
        self.calm = False

    # -- transactions ---------------------------------------------------------------------------

    def initialise(self, id_: str) -> Transaction:
        """A new owner of the id; the one before is fenced, and what became of its last commit is decided."""
        self.decide(id_)
        self.epochs[id_] = self.epochs.get(id_, 0) + 1
        return Transaction(id_, self.epochs[id_])

    def commit(self, open_: Transaction) -> None:
        """All of it or nothing; the answer may be lost either way."""
        self.fence(open_)
        if self.calm or self.draw.random() >= 0.06:
            self._apply(open_)
            return
        outcome = self.draw.choice(("done", "lost", "later"))
        if outcome == "done":
            self._apply(open_)
        elif outcome == "later":
            self.undecided[open_.id] = Transaction(
                open_.id, open_.epoch, list(open_.records), list(open_.copies)
            )
        raise UnknownOutcomeError(f"no answer, and {outcome}")

    def decide(self, id_: str) -> None:
        """A commit that got no answer is done now, or never."""
        late = self.undecided.pop(id_, None)
        if late is not None and self.draw.random() < 0.5:
            self._apply(late)

    def leader(self) -> None:
        """A read asks a leader; one that is moving answers no one."""
        if not self.calm and self.draw.random() < 0.03:
            raise UnreachableError("the leader moves")

    def fence(self, open_: Transaction) -> None:
        """Raises where another one owns the id."""
        if self.epochs[open_.id] != open_.epoch:
            raise FencedError("another owner initialised the id", subject=open_.id)

    def _apply(self, open_: Transaction) -> None:
        log = []
        for record in open_.records:
            if record.topic == CONTROL:
                log.append((record.key, record.value))
            else:
                there = self.checkpoints.setdefault(record.partition, {})
                if record.value is None:
                    there.pop(record.key, None)
                else:
                    there[record.key] = record.value
        for place, offset in open_.copies:
            expected = self.copied.get(place, 0)
            if offset != expected:
                what = "twice" if offset < expected else "not"
                self.broken.append(f"{place} {min(offset, expected)} is on the target {what}")
            self.copied[place] = max(expected, offset + 1)
        open_.records, open_.copies = [], []
        if log:
            self._judge_layouts(log)
            self.states.append(self.states[-1].fold(log))

    def _judge_layouts(self, log: Iterable[tuple[bytes, bytes | None]]) -> None:
        before, after = (
            state.layout("east") for state in (self.states[-1], self.states[-1].fold(log))
        )
        if before is None or after is None:
            return
        if after.epoch < before.epoch:
            self.broken.append(f"the layout went back from {before.epoch} to {after.epoch}")
        kept = all(after.block(block.link) == block for block in before.blocks)
        if after.state == before.state == "stable" and after.epoch == before.epoch and not kept:
            self.broken.append(f"lanes changed within epoch {after.epoch}")

    # -- who does what when ---------------------------------------------------------------------

    def moment(self) -> None:
        """An actor may be held up at this point, or end."""
        self.moments += 1
        if self.calm or self.depth >= DEEPEST or self.broken:
            return
        chance = self.draw.random()
        if chance < 0.03:
            raise Killed
        if chance < 0.4:
            self.depth += 1
            try:
                for _ in range(self.draw.randrange(1, 8)):
                    self.something()
            finally:
                self.depth -= 1

    def something(self) -> None:
        """One thing that happens by itself."""
        chance = self.draw.random()
        if self.undecided and self.draw.random() < 0.2:
            self.decide(self.draw.choice(sorted(self.undecided)))
        if chance < 0.12:
            self.control_round(self.draw.choice(PLANS))
        elif chance < 0.35 or not self.lanes:
            self.launch(stale=self.draw.random() < 0.3)
        else:
            self.draw.choice(self.lanes).step()

    def launch(self, *, stale: bool) -> None:
        """A worker starts a lane, by what it last heard of the control topic."""
        back = self.draw.randrange(1, 4) if stale else 1
        state = self.states[max(0, len(self.states) - back)]
        plan = self.draw.choice(PLANS)
        specs = lane_specs(plan=plan, pair=plan.pairs[0], control=state, lanes=range(16))
        if specs:
            number = self.draw.choice(sorted(specs))
            self.lanes.append(SimulatedLane(self, specs[number]))

    def control_round(self, plan: Any) -> None:
        """One round of a controller that begins now; however it ends, it is over."""
        with contextlib.suppress(Killed, ReplicatorError):
            driven(SimulatedController(self, plan).run_once())


class SimulatedLane:
    """One life of a lane: fence, ask, read, copy and commit."""

    def __init__(self, world: World, spec: LaneSpec) -> None:
        self._world = world
        self._spec = spec
        self._id = lane_transactional_id("shop", spec.source.alias, spec.target.alias, spec.lane)
        self._stage = "fence"
        self._open: Transaction | None = None
        self._at: dict[tuple[str, int], int] = {}

    @property
    def over(self) -> bool:
        """Whether it does nothing any more."""
        return self._stage == "over"

    def step(self) -> None:
        """The next thing that it does."""
        try:
            getattr(self, f"_{self._stage}")()
        except ReplicatorError:
            self._stage = "over"
        if self.over and self in self._world.lanes:
            self._world.lanes.remove(self)

    def _fence(self) -> None:
        self._open = self._world.initialise(self._id)
        self._stage = "ask"

    def _ask(self) -> None:
        self._world.leader()
        self._stage = "read" if may_start(self._world, self._spec) else "over"

    def _read(self) -> None:
        self._world.leader()
        found = decode_checkpoints(self._world.checkpoints.get(self._spec.lane, {}))
        for work in self._spec.work:
            place = (work.topic, work.partition)
            held = found.get(place)
            self._at[place] = 0 if held is None else held.offset
        self._stage = "copy"

    def _copy(self) -> None:
        draw, open_ = self._world.draw, self._open
        ready = [place for place, at in self._at.items() if at < RECORDS]
        if not ready:
            self._stage = "over"
            return
        for place in ready if self._world.calm else draw.sample(ready, 1):
            for _ in range(draw.randrange(1, 4)):
                if self._at[place] < RECORDS:
                    open_.copies.append((place, self._at[place]))
                    self._at[place] += 1
            stored = Checkpoint(place[0], place[1], self._at[place], records=self._at[place])
            open_.records.append(Placed(CHECKPOINTS, self._spec.lane, stored.key(), stored.value()))
        self._stage = "commit"

    def _commit(self) -> None:
        self._world.commit(self._open)
        self._stage = "copy"

    def _over(self) -> None:
        pass


def may_start(world: World, spec: LaneSpec) -> bool:
    """What a lane process asks when it has fenced the owner before."""
    return lane_may_start(world.states[-1], spec)


class ModelWriter:
    """Stands for the product's ``ControllerWriter``: the same calls, on the model's transactions."""

    def __init__(self, pair: Any, topology: str, *, client_id: str) -> None:
        world = self._world = _now[-1]
        self._pair = pair
        self.spent = False
        world.moment()
        id_ = controller_transactional_id(topology, pair.source.alias, pair.target.alias)
        self._open = world.initialise(id_)

    def write(self, records: Iterable[Placed]) -> None:
        world = self._world
        world.moment()
        self._open.records = list(records)
        try:
            world.commit(self._open)
        except ReplicatorError:
            self.spent = True
            raise

    def fence_lanes(self, lanes: Iterable[int]) -> None:
        for lane in lanes:
            self._world.moment()
            source, target = self._pair.source.alias, self._pair.target.alias
            self._world.initialise(lane_transactional_id("shop", source, target, lane))

    def close(self) -> None:
        pass


class SimulatedController(PairController):
    """The product's controller; only what it sees of the clusters is the model's."""

    def __init__(self, world: World, plan: Any) -> None:
        self._world = world
        super().__init__(
            plan.pairs[0], plan, source_admin=_NoAdmin(), target_admin=_NoAdmin(),
            clock=ManualClock(), client_id="simulated",
        )  # fmt: skip

    def _read_control(self) -> ControlState:
        self._world.moment()
        self._world.leader()
        return self._world.states[-1]

    def _observe_and_decide(self, control: ControlState, *, all_settings: bool) -> Decision:
        self._world.moment()
        link_of = {"t": "l0", "u": "l0"} if self._plan in PLANS[:3] else {"t": "l0", "u": "l1"}
        held = [each for link in ("l0", "l1") for each in control.topics("east", link)]
        moved = tuple(each for each in held if link_of[each.topic] != each.link)
        known = {(each.topic, each.link) for each in held}
        unknown = set(link_of.items()) - known
        current = control.layout("east")
        found = misplaced(self._world, current, link_of) if unknown else frozenset()
        layout = decide_layout(
            self.pair, current, partitions={"l0": PARTITIONS, "l1": PARTITIONS},
            moved_topics=found | {each.topic for each in moved},
            checkpoints_exist=bool(unknown) and any(self._world.checkpoints.values()),
        )  # fmt: skip
        actions: list[Any] = []
        if layout.change != "none":
            actions.append(
                ArrangeLanes(
                    cluster="west", source="east", decision=layout, links=tuple(link_of.items()),
                    erased=moved, from_lanes=None, reason=layout.reason,
                )
            )  # fmt: skip
        actions += [
            WriteRecord("west", _topic_record(topic, link), f"{topic} is copied")
            for topic, link in link_of.items()
            if (topic, link) not in known
        ]
        return Decision(tuple(actions), layout, {})


def misplaced(world: World, layout: Layout | None, link_of: dict[str, str]) -> frozenset[str]:
    """Topics whose checkpoints stand outside their lanes, as the observer finds them."""
    if layout is None:
        return frozenset()
    return frozenset(
        place[0]
        for number, records in world.checkpoints.items()
        for place in decode_checkpoints(records)
        if (block := layout.block(link_of[place[0]])) is not None
        and lane_in(block, *place) != number
    )


def _topic_record(topic: str, link: str) -> TopicRecord:
    return TopicRecord(
        source="east", link=link, topic=topic, target=topic, topic_id=f"id-{topic}",
        partitions=PARTITIONS, target_partitions=PARTITIONS, state="active",
    )  # fmt: skip


class _NoAdmin:
    """No cluster is asked; what the controller sees is the model's."""

    def topic_partitions(self) -> dict[str, int]:
        raise UnreachableError("not on virtual time")


class _Quiet:
    """Thousands of rounds have nothing to tell."""

    def info(self, *_: Any, **__: Any) -> None:
        """Nothing."""

    warning = info


_now: list[World] = []


@dataclass(frozen=True)
class _Grown:
    partitions: int


def _grow(_admin: Any, _name: str, *, partitions: int) -> _Grown:
    world = _now[-1]
    world.moment()
    world.partitions = max(world.partitions, partitions)
    return _Grown(world.partitions)


def _read_checkpoints(_topology: str, _source: str, _target: Any, lanes: Iterable[int], **_: Any):
    world = _now[-1]
    world.moment()
    world.leader()
    return {lane: dict(world.checkpoints.get(lane, {})) for lane in lanes}


async def at_once(call: Any, *arguments: Any, **named: Any) -> Any:
    """Stands for ``finished``: no thread."""
    return call(*arguments, **named)


def driven(work: Any) -> Any:
    """Runs a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise AssertionError("a simulated round waited for something")


@contextlib.contextmanager
def in_world(world: World) -> Iterator[None]:
    """The product's controller with the world's transactions and topics in place of the real ones."""
    kept = (
        single_writer.ControllerWriter, single_writer.finished, controller_module.finished,
        lane_migration.ensure_compacted_topic, lane_migration.read_checkpoint_records,
        controller_module.LOGGER,
    )  # fmt: skip
    controller_module.LOGGER = _Quiet()
    single_writer.ControllerWriter = ModelWriter
    single_writer.finished = controller_module.finished = at_once
    lane_migration.ensure_compacted_topic = _grow
    lane_migration.read_checkpoint_records = _read_checkpoints
    _now.append(world)
    try:
        yield
    finally:
        _now.pop()
        (
            single_writer.ControllerWriter, single_writer.finished, controller_module.finished,
            lane_migration.ensure_compacted_topic, lane_migration.read_checkpoint_records,
            controller_module.LOGGER,
        ) = kept  # fmt: skip


def run_schedule(seed: int) -> list[str]:
    """Runs one schedule; returns what was broken."""
    world = World(seed)
    with in_world(world):
        world.control_round(world.draw.choice(PLANS))
        for _ in range(STEPS):
            if world.broken:
                break
            with contextlib.suppress(Killed):
                world.something()
        world.calm = True
        plan = world.draw.choice(PLANS)
        for _ in range(3):
            world.control_round(plan)
        world.lanes.clear()
        specs = lane_specs(plan=plan, pair=plan.pairs[0], control=world.states[-1], lanes=range(16))
        world.lanes = [SimulatedLane(world, spec) for spec in specs.values()]
        for _ in range(10 * RECORDS):
            for lane in list(world.lanes):
                lane.step()
    if not world.broken:
        missing = {
            (topic, number)
            for topic in ("t", "u")
            for number in range(PARTITIONS)
            if world.copied.get((topic, number), 0) < RECORDS
        }
        if missing:
            world.broken.append(f"not copied to the end: {sorted(missing)}")
    return world.broken
