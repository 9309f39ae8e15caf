"""Runs one schedule of simulated lanes, with the product's lane on virtual time.

``run_schedule`` returns what was broken; nothing is the aim.
"""

import contextlib
from collections.abc import Collection

from simulated_lane import STEPS, Chances, World

from replicator.dataplane.health import damaged_source, unheard_records
from replicator.dataplane.health.stuck_writes import StuckWrites
from replicator.dataplane.lane import clients_change, lane, partitions
from replicator.dataplane.lane.lane import Lane
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.session import session_clients
from replicator.dataplane.takeover import takeover
from replicator.identifiers import TopicPartition
from replicator.wire.requests import known_leaders


class _NoChance:
    """In place of the lane's dice: one seed is one schedule."""

    @staticmethod
    def random() -> float:
        return 0.5


class _NoCollector:
    @staticmethod
    def collect() -> None:
        """A simulated client has no threads that would live on."""


class _NewestEnds:
    """Stands for ``NewestEnds``: the answer is there at once."""

    over = True

    def __init__(self, world: World) -> None:
        self._world = world
        self._asked: Collection[TopicPartition] = ()

    def ask(self, places: Collection[TopicPartition]) -> None:
        self._asked = list(places)

    def take(self) -> dict[TopicPartition, int]:
        return {place: self._world.newest_end(place) for place in self._asked}

    def close(self) -> None:
        """It holds nothing."""


@contextlib.contextmanager
def on_virtual_time(world: World):
    """The product's lane with the world's clients and clock in place of the real ones."""
    kept = (
        lane.random, clients_change.open_clients, clients_change.gc, session_clients.read_lane_records,
        Lane._pause, StuckWrites.refusals, takeover.read_targets, partitions.read_targets, takeover.find_last_copies,
        takeover.find_undecided_copies, known_leaders.known_leaders, unheard_records.NewestEnds, damaged_source.damages_of, PartitionState.__hash__,
    )  # fmt: skip
    # By their addresses sets of them would have another order in each process, and a seed another schedule.
    PartitionState.__hash__ = lambda self: self.partition
    clients_change.open_clients = world.open_clients
    clients_change.gc = _NoCollector
    lane.random = _NoChance
    session_clients.read_lane_records = lambda _spec, **_: world.stored()
    Lane._pause = lambda self, seconds: world.wait(seconds)
    StuckWrites.refusals = lambda self, places: {}
    takeover.read_targets = partitions.read_targets = world.read_targets
    takeover.find_last_copies = world.find_last_copies
    takeover.find_undecided_copies = world.find_undecided_copies
    known_leaders.known_leaders = world.known_leaders
    unheard_records.NewestEnds = lambda *_, **__: _NewestEnds(world)
    damaged_source.damages_of = lambda *_, **__: {}
    try:
        yield
    finally:
        (
            lane.random, clients_change.open_clients, clients_change.gc, session_clients.read_lane_records,
            Lane._pause, StuckWrites.refusals, takeover.read_targets, partitions.read_targets, takeover.find_last_copies,
            takeover.find_undecided_copies, known_leaders.known_leaders, unheard_records.NewestEnds, damaged_source.damages_of, PartitionState.__hash__,
        ) = kept  # fmt: skip


def run_schedule(
    seed: int,
    *,
    delivery: str = "exactly-once",
    chances: Chances | None = None,
    world_of: type[World] = World,
) -> list[str]:
    """Runs one schedule; returns what was broken, nothing where all held."""
    world = world_of(seed, delivery=delivery, chances=chances or Chances())
    with on_virtual_time(world):
        while world.moments <= STEPS and not world.broken:
            world.lanes.clear()
            world.run_lane()
        world.grow_calm()
        if not world.broken:
            world.lanes.clear()
            world.run_lane()
    world.judge()
    world.judge_the_end()
    return world.broken
