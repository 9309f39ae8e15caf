"""One consumer group on two clusters that copy to each other, and the syncs of both directions: one seed, one schedule.

The product's rounds of group sync run here; logs, groups and the translation of a position (exact, by the records
themselves) are a model. A round may be held up at any of its calls while the group reads, moves, and other
controllers' rounds run.

``run_schedule`` returns what was broken; nothing is the aim.
"""

import contextlib
import random
from collections.abc import Iterable, Iterator
from typing import Any

from simulated_control import at_once, driven
from topology_files import plan_of

from replicator.errors import ReplicatorError
from replicator.offsets.groups import group_sync
from replicator.offsets.groups.group_sync import GroupSync
from replicator.offsets.translation.translation import Translation, exact
from replicator.testing.kit.manual_clock import ManualClock
from replicator.wire.groups.group_description import CommittedOffset, GroupDescription, Member
from replicator.wire.groups.group_list import GroupsListed

GROUP, TOPIC = "g", "t"
PLACE = (TOPIC, 0)
STEPS = 40
DEEPEST = 3
SIDES = ("east", "west")
PLAN = plan_of(
    {
        "name": "both", "shape": "active-active", "clusters": ["east", "west"],
        "naming": "identity", "topics": {"include": [TOPIC]}, "sync": {"groups": {"enabled": True}},
    }
)  # fmt: skip


class World:
    """Both clusters: their logs, and where the group stands."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.broken: list[str] = []
        self.logs: dict[str, list[int | None]] = {side: [] for side in SIDES}
        self.own: dict[str, list[int]] = {side: [] for side in SIDES}
        self.copied = dict.fromkeys(SIDES, 0)
        self.committed: dict[str, int | None] = dict.fromkeys(SIDES)
        self.processed: set[int] = set()
        self.at: str | None = None
        self.depth = 0
        self.calm = False
        self._ids = iter(range(10_000))
        self.syncs = [self.new_sync(n) for n in (0, 1)]

    def new_sync(self, number: int) -> GroupSync:
        """A controller that knows nothing of what was synced before."""
        return GroupSync(
            PLAN, PLAN.pairs[number], translator=ModelTranslator(self), clock=ManualClock(),
            groups_per_second=10**9,
        )  # fmt: skip

    def moment(self) -> None:
        """An actor may be held up at this point."""
        if self.calm or self.depth >= DEEPEST or self.draw.random() > 0.25:
            return
        self.depth += 1
        for _ in range(self.draw.randrange(1, 6)):
            self.something()
        self.depth -= 1

    def something(self) -> None:
        """One thing that happens by itself."""
        side = self.draw.choice(SIDES)
        act = self.draw.randrange(8)
        if act == 0:
            new = [next(self._ids) for _ in range(self.draw.randrange(1, 4))]
            self.own[side] += new
            self.logs[side] += new
        elif act == 1:
            self.copy(side)
        elif act in {2, 3}:
            self.consume()
        elif act == 4:
            self.at = None
        elif act == 5 and self.at is None:
            self.join(side)
        elif act == 6:
            self.round(self.draw.randrange(2))
        elif act == 7 and self.draw.random() < 0.3:
            number = self.draw.randrange(2)
            self.syncs[number] = self.new_sync(number)

    def copy(self, side: str) -> None:
        """What applications wrote on a side arrives on the other, with a marker behind it."""
        other = SIDES[side == "east"]
        new = self.own[side][self.copied[side] :]
        self.copied[side] += len(new)
        if new:
            self.logs[other] += [*new, None]

    def join(self, side: str) -> None:
        """The group goes on here: everything below its position must have been processed."""
        self.at = side
        below = self.logs[side][: self.committed[side] or 0]
        skipped = [each for each in below if each is not None and each not in self.processed]
        if skipped:
            self.broken.append(f"the group skips {skipped} on {side}")

    def consume(self) -> None:
        """Reads and commits a few records where it is."""
        if self.at is None:
            return
        start = self.committed[self.at] or 0
        end = min(len(self.logs[self.at]), start + self.draw.randrange(1, 5))
        self.processed.update(each for each in self.logs[self.at][start:end] if each is not None)
        self.committed[self.at] = end

    def round(self, number: int) -> int:
        """One round of a direction; how many positions it set."""
        before = dict(self.committed)
        driven(self.syncs[number].run_once())
        return sum(self.committed[side] != before[side] for side in SIDES)

    def set(self, side: str, offset: int) -> None:
        """A sync commits: brokers refuse it only while the group is there."""
        held = self.committed[side]
        if held is not None and offset < held:
            self.broken.append(f"the group is taken back from {held} to {offset} on {side}")
        self.committed[side] = offset


class ModelAdmin:
    """The calls of an admin client that a round makes."""

    def __init__(self, world: World, side: str) -> None:
        self._world, self._side = world, side

    def topic_partitions(self) -> dict[str, int]:
        return {TOPIC: 1}

    def describe_groups(self, names: Iterable[str]) -> dict[str, GroupDescription]:
        self._world.moment()
        here = self._world.at == self._side
        members = (Member("m", "m", None, "h", ()),) if here else ()
        state = "STABLE" if here else "EMPTY"
        return {name: GroupDescription(name, state, "consumer", members) for name in names}

    def committed_offsets(self, names: Iterable[str]) -> dict[str, Any]:
        # Not held up here: what stands between the last look and the commit is one round trip.
        held = self._world.committed[self._side]
        places = {} if held is None else {PLACE: CommittedOffset(held, "", None)}
        return {name: dict(places) for name in names}

    def commit_offsets(self, positions: dict[str, dict[Any, tuple[int, str]]]) -> dict[str, Any]:
        return {group: self._commit(places) for group, places in positions.items()}

    def _commit(self, positions: dict[Any, tuple[int, str]]) -> dict[Any, Any]:
        if self._world.at == self._side:
            return {place: ReplicatorError("the group has members") for place in positions}
        for offset, _ in positions.values():
            self._world.set(self._side, offset)
        return dict.fromkeys(positions)


class ModelTranslator:
    """Positions by the records themselves: behind everything that is below the position on the other side."""

    def __init__(self, world: World) -> None:
        self._world = world

    def admin(self, cluster: Any) -> ModelAdmin:
        return ModelAdmin(self._world, str(cluster.alias))

    def groups(self, _cluster: Any) -> GroupsListed:
        return GroupsListed((GROUP,))

    def refresh(self, _paths: Any) -> None:
        self._world.moment()

    def ends(self, path: Any) -> tuple[int, int]:
        return len(self._world.logs[path.source]), len(self._world.logs[path.target])

    def cross(self, path: Any, offset: int) -> Translation:
        self._world.moment()
        there = self._world.logs[path.target]
        below = set(self._world.logs[path.source][:offset])
        for place, each in enumerate(there):
            if each is not None and each not in below:
                return exact(place)
        return exact(len(there))


@contextlib.contextmanager
def in_place() -> Iterator[None]:
    """The product's rounds without threads."""
    kept, group_sync.finished = group_sync.finished, at_once
    try:
        yield
    finally:
        group_sync.finished = kept


def run_schedule(seed: int) -> list[str]:
    """Runs one schedule; returns what was broken."""
    world = World(seed)
    with in_place():
        for _ in range(STEPS):
            if world.broken:
                return world.broken
            world.something()
        world.calm, world.at = True, None
        for side in SIDES:
            world.copy(side)
        for _ in range(4):
            moved = [world.round(number) for number in (0, 1)]
        if any(moved):
            world.broken.append("with nobody at work the syncs of both directions never settle")
        for side in SIDES:
            world.join(side)
    return world.broken
