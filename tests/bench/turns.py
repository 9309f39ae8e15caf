"""Latency in turns: all copiers run at once, and one writer goes from one's topic to the next one's every few seconds.

``python tests/bench/turns.py [--delivery at-least-once] [--rate 10000] [--size 1000] [--rounds 12] [--seconds 5]
[--beside DIRECTORY ...]`` prints markdown. On a machine whose speed changes from minute to minute only what is measured within
the same half a minute compares. ``--beside`` names other checkouts, whose records engine runs as well.
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from contender import Contender, Job
from latency import percentile
from load import PARTITIONS
from machine import command_line, facts
from mm2 import MirrorMaker2
from paced_writer import start_writer
from progress import topic_exists
from reader import Reader
from replicator_run import Delivery, Replicator
from warm_up import warm_up

from replicator.testing import LocalCluster, wait_until

_WARM_SECONDS = 30.0
_LATER_SECONDS = 1.5
"""Measured from so long behind the first record of a turn."""
_APPEAR_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Beside(Replicator):
    """The replicator of another checkout."""

    directory: Path = Path()

    @property
    def name(self) -> str:
        """For tables."""
        return f"records of {self.directory.name}"

    def environment(self) -> dict[str, str]:
        """Finds the checkout's package."""
        # Its lanes are processes that look for modules where they start before they look anywhere else.
        return {**os.environ, "PYTHONPATH": str(self.directory), "PYTHONSAFEPATH": "1"}


class Turn(NamedTuple):
    """What one copier did in one turn; seconds."""

    p50: float
    p99: float
    p999: float
    cpu: float


class Copier:
    """One that runs all the time, its topic and its reader; a context manager."""

    def __init__(
        self, contender: Contender, number: int, source: LocalCluster, target: LocalCluster
    ) -> None:
        self.name = contender.name
        self.turns: list[Turn] = []
        self._contender = contender
        self._topic = f"turns-{number}"
        self._job = Job(source=source, target=target, topics=(self._topic,))
        self._open = ExitStack()

    def __enter__(self) -> Self:
        job = self._job
        job.source.create_topic(self._topic, partitions=PARTITIONS)
        self._running = self._contender.start(job)
        self._open.callback(self._running.stop)
        (name,) = job.target_topics
        wait_until(
            lambda: topic_exists(job.target, name, PARTITIONS),
            timeout_seconds=_APPEAR_SECONDS,
            describe=self._running.log_tail,
        )
        self._reader = self._open.enter_context(Reader(job.target, topic=name))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def turn(self, *, rate: int, size: int, seconds: float) -> Turn:
        """Has records written for it, and measures all but the first of them."""
        began = time.time()
        writer = start_writer(
            self._job.source, topic=self._topic, partitions=PARTITIONS, rate_per_second=rate,
            size_bytes=size, directory=self._job.directory,
        )  # fmt: skip
        try:
            wait_until(
                lambda: self._reader.arrivals(since=began),
                timeout_seconds=_APPEAR_SECONDS,
                describe=self._running.log_tail,
            )
            time.sleep(_LATER_SECONDS)
            start, before = time.time(), self._running.tree.usage().cpu_seconds
            time.sleep(seconds)
            used = self._running.tree.usage().cpu_seconds - before
            ages = [each.age_seconds for each in self._reader.arrivals(since=start)]
        finally:
            writer.stop()
        return Turn(*(percentile(ages, percent) for percent in (50, 99, 99.9)), used / seconds)


def main() -> None:
    """Runs all turns and prints them."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--delivery", choices=("at-least-once", "exactly-once"), default="at-least-once")  # fmt: skip
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--beside", type=Path, nargs="*", default=())
    given = parser.parse_args()
    delivery: Delivery = given.delivery
    contenders = [
        Replicator(delivery, engine="records"),
        *(Beside(delivery, engine="records", directory=each.resolve()) for each in given.beside),
        MirrorMaker2("default", delivery),
    ]
    clusters = [
        LocalCluster(name, jvm="throughput", heap_megabytes=1024)
        for name in ("bench-source", "bench-target")
    ]
    with ExitStack() as opened:
        for each in clusters:
            each.start()
            opened.callback(each.stop)
        for each in clusters:
            warm_up(each)
        copiers = [
            opened.enter_context(Copier(each, number, *clusters))
            for number, each in enumerate(contenders)
        ]
        for each in copiers:
            each.turn(rate=given.rate, size=given.size, seconds=_WARM_SECONDS)
        for number in range(given.rounds):
            for each in random.Random(number).sample(copiers, len(copiers)):
                each.turns.append(
                    each.turn(rate=given.rate, size=given.size, seconds=given.seconds)
                )
    print(f"{facts(command=command_line(), full=True)}\n\n{table(copiers)}")


def table(copiers: Sequence[Copier]) -> str:
    """The median turn of each, and in how many turns its p99 was below that of the last one."""
    lines = [
        "| | p50 | p99 | p99.9 | CPU | p99 of each turn | p99 below the last one's |",
        "|---|---:|---:|---:|---:|---|---:|",
    ]
    last = copiers[-1].turns
    for each in copiers:
        median = Turn(*map(statistics.median, zip(*each.turns, strict=True)))
        below = sum(one.p99 < other.p99 for one, other in zip(each.turns, last, strict=True))
        lines.append(
            f"| {each.name} | {median.p50 * 1e3:.1f} ms | {median.p99 * 1e3:.0f} ms"
            f" | {median.p999 * 1e3:.0f} ms | {median.cpu:.0%}"
            f" | {', '.join(f'{one.p99 * 1e3:.0f}' for one in each.turns)} | {below} of {len(last)} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
