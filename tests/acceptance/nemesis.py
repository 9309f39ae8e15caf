"""What breaks things while a workload runs: one fault after the other, drawn from a seed."""

import random
import time
from collections.abc import Callable

from acceptance_scene import Scene

from replicator.identifiers import lane_transactional_id
from replicator.testing import LocalCluster

LONG_SECONDS = 8.0
"""Longer than a worker's session of 6 s: its lanes go to another one while it is away."""

SHORT_SECONDS = 3.0
TRANSACTIONS = "__transaction_state"


class Nemesis:
    """Faults of a flow from ``east`` to ``west``, both behind proxies, with at least two workers.

    Clocks are left alone: setting the clock of one broker takes privileges that tests do not have.
    """

    def __init__(self, scene: Scene, east: LocalCluster, west: LocalCluster, *, seed: int) -> None:
        self._scene = scene
        self._east = east
        self._west = west
        self._draw = random.Random(seed)
        self._kinds: list[Callable[[], None]] = [
            self._kill_worker, self._stop_worker, self._kill_target, self._kill_source,
            self._stop_coordinator, self._stop_source, self._cut, self._swallow,
        ]  # fmt: skip
        self.done: list[str] = []

    def rage(self, *, seconds: float) -> None:
        """Breaks and mends for so long; each kind comes before one comes again."""
        began = time.monotonic()
        waiting: list[Callable[[], None]] = []
        while time.monotonic() - began < seconds:
            if not waiting:
                waiting = self._draw.sample(self._kinds, len(self._kinds))
            fault = waiting.pop()
            self.done.append(fault.__name__.strip("_"))
            fault()
            self._lasts(self._draw.uniform(0.5, 2.0))

    def _lasts(self, seconds: float) -> None:
        time.sleep(seconds)  # how long a fault or the peace after it lasts

    def _kill_worker(self) -> None:
        chosen = self._draw.choice([each for each in self._scene.workers if each.alive])
        chosen.end()
        self._scene.worker()

    def _stop_worker(self) -> None:
        chosen = self._draw.choice([each for each in self._scene.workers if each.alive])
        chosen.pause()
        self._lasts(LONG_SECONDS)
        chosen.resume()

    def _kill_target(self) -> None:
        broker = self._draw.randrange(len(self._west.brokers))
        self._west.kill(broker)
        self._west.restart(broker)

    def _kill_source(self) -> None:
        self._east.kill()
        self._east.restart()

    def _stop_coordinator(self) -> None:
        broker = self.coordinator(self._draw.randrange(4))
        self._west.pause(broker)
        self._lasts(self._draw.choice((SHORT_SECONDS, LONG_SECONDS)))
        self._west.resume(broker)

    def coordinator(self, lane: int) -> int:
        """The broker of the target that coordinates the transactions of a lane."""
        name = lane_transactional_id(self._scene.name, "east", "west", lane)
        partitions = self._west.admin().list_topics(TRANSACTIONS, timeout=30.0)
        places = partitions.topics[TRANSACTIONS].partitions
        return places[java_hash(name) % len(places)].leader

    def _stop_source(self) -> None:
        self._east.pause()
        self._lasts(SHORT_SECONDS)
        self._east.resume()

    def _cut(self) -> None:
        chosen = self._draw.choice((self._east, self._west))
        chosen.proxy.cut()
        self._lasts(SHORT_SECONDS)
        chosen.proxy.heal()

    def _swallow(self) -> None:
        chosen = self._draw.choice((self._east, self._west))
        chosen.proxy.black_hole()
        self._lasts(LONG_SECONDS)
        chosen.proxy.heal()


def java_hash(text: str) -> int:
    """What Kafka makes of a transactional id to find its coordinator: Java's hash, not negative."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
