"""Many partitions of which few are busy, many lanes, many groups: both engines and MirrorMaker 2 on the same two brokers.

``python tests/bench/many_partitions.py [--only copying,lanes,groups] [--topics 500] [--partitions 10] [--busy 50]
[--groups 500] [--seconds 30]`` prints markdown; the whole takes some 25 minutes on a machine that does nothing else.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Self

import cases
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import NewTopic, OffsetSpec
from contender import Contender, Job, Running
from load import tail
from machine import command_line, facts
from replicator_run import TARGET_ALIAS, Replicator, topology_file
from throughput import remove_traces
from warm_up import warm_up

from replicator.testing import LocalCluster, start_all, wait_until

RATE = 1_000
"""Records a second over all busy topics."""

_START_SECONDS = 300.0
_MOVE_SECONDS = 120.0
_NOTICED_SECONDS = 10.0
_STEP_SECONDS = 5.0
_GROUP_PARTITIONS = 20
_CONFIG = {"log.segment.delete.delay.ms": "1000"}
"""Else a broker would hold the files of what one contender left beside those of the next, more than it may open."""

_PARTS = ("copying", "lanes", "groups")


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything there is."""

    topics: int
    partitions: int
    busy: int
    groups: int
    seconds: float

    @property
    def names(self) -> tuple[str, ...]:
        """The topics."""
        return tuple(f"many-{number:04d}" for number in range(self.topics))


class BusyWriter:
    """Writes the time into busy topics, in turns, from a thread."""

    def __init__(self, cluster: LocalCluster, topics: Sequence[str], partitions: int) -> None:
        self._producer = Producer({**cluster.client_settings(), "linger.ms": 1})
        self._places = [(topic, number) for number in range(partitions) for topic in topics]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._producer.flush(30)

    def _run(self) -> None:
        began, written = time.monotonic(), 0
        while not self._ended.is_set():
            due = (time.monotonic() - began) * RATE
            while written < due:
                topic, partition = self._places[written % len(self._places)]
                self._producer.produce(topic, b"%.6f" % time.time(), partition=partition)
                written += 1
            self._producer.poll(0)
            self._ended.wait(0.02)


class Figures:
    """A row for each contender, a column for each figure."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, str]] = {}

    def note(self, name: str, what: str, figure: str) -> None:
        """Keeps and prints one."""
        self._rows.setdefault(name, {})[what] = figure
        print(f"  {name:<52} {what}: {figure}", flush=True)

    def table(self) -> str:
        """In markdown."""
        columns = list(dict.fromkeys(what for row in self._rows.values() for what in row))
        lines = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
        lines += [
            f"| {name} | {' | '.join(row.get(what, '') for what in columns)} |"
            for name, row in self._rows.items()
        ]
        return "\n".join(lines)


def copying(source: LocalCluster, target: LocalCluster, size: Size) -> str:
    """From the first start to the loss of a worker, one contender after the other."""
    figures = Figures()
    for contender in (cases.BATCHES_AUTO_LANES, cases.RECORDS_AUTO_LANES, cases.YARDSTICK):
        job = Job(source=source, target=target, topics=size.names, partitions=size.partitions)
        note = partial(figures.note, contender.name)
        with ExitStack() as started:
            running = _started(started, contender, job)
            _until_all_copied(job, running)
            note("all copied after", f"{time.monotonic() - running.started_at:.1f} s")
            busy = size.names[: size.busy]
            with BusyWriter(source, busy, size.partitions):
                time.sleep(size.seconds)
                note("CPU busy", _cpu([running], size.seconds))
            if isinstance(contender, Replicator):
                note("status", f"{_status_seconds(job):.1f} s")
            time.sleep(size.seconds)
            note("CPU idle", _cpu([running], size.seconds))
            note("memory", _memory([running]))
            others: list[Running] = []
            if isinstance(contender, Replicator):
                others.append(_started(started, contender, job))
                _until_shared(job, 2)
            with BusyWriter(source, busy, size.partitions), _Silence(job, busy) as silence:
                silence.all_heard()
                began = time.time()
                running.kill()
                if not others:
                    _started(started, contender, job)
                note("longest silence after SIGKILL", f"{silence.longest(began):.1f} s")
        remove_traces(job)
    return figures.table()


def lanes(source: LocalCluster, target: LocalCluster, size: Size) -> str:
    """64 lanes over four workers."""
    figures = Figures()
    for engine in ("batches", "records"):
        contender = Replicator("exactly-once", lanes=64, engine=engine)
        job = Job(source=source, target=target, topics=size.names, partitions=size.partitions)
        note = partial(figures.note, f"4 x {contender.name}")
        with ExitStack() as started:
            workers = [_started(started, contender, job) for _ in range(4)]
            _until_all_copied(job, workers[0])
            note("all copied after", f"{time.monotonic() - workers[0].started_at:.1f} s")
            _until_shared(job, 4)
            with BusyWriter(source, size.names[: size.busy], size.partitions):
                time.sleep(size.seconds)
                note("CPU busy", _cpu(workers, size.seconds))
            time.sleep(size.seconds)
            note("CPU idle", _cpu(workers, size.seconds))
            note("memory of all four", _memory(workers))
        remove_traces(job)
    return figures.table()


def groups(source: LocalCluster, target: LocalCluster, size: Size) -> str:
    """Positions of many groups, which all move once per interval, and what carrying them over costs."""
    topic = "many-groups"
    source.create_topic(topic, partitions=_GROUP_PARTITIONS)
    producer = Producer(source.client_settings())
    for number in range(200 * _GROUP_PARTITIONS):
        producer.produce(topic, str(number), partition=number % _GROUP_PARTITIONS)
    producer.flush(30)
    names = [f"many-{number:04d}" for number in range(size.groups)]
    figures = Figures()
    for with_groups in (False, True):
        contender = Replicator("exactly-once", lanes="auto", groups=with_groups)
        job = Job(source=source, target=target, topics=(topic,), partitions=_GROUP_PARTITIONS)
        note = partial(figures.note, contender.name)
        _commit(source, names, topic, 10)
        with ExitStack() as started:
            running = _started(started, contender, job)
            _until_all_copied(job, running)
            if with_groups:
                note("first positions of all after", f"{_until_carried(job, names, 10):.1f} s")
            note("CPU, groups that rest", _cpu([running], size.seconds))
            ended = threading.Event()
            mover = threading.Thread(target=_move, args=(source, names, topic, ended))
            mover.start()
            try:
                note("CPU, all groups move every 5 s", _cpu([running], size.seconds))
            finally:
                ended.set()
                mover.join()
            if with_groups:
                _commit(source, names, topic, 190)
                note("last positions of all after", f"{_until_carried(job, names, 190):.1f} s")
            note("memory", _memory([running]))
        remove_traces(job)
    return figures.table()


class _Silence:
    """How long the busy partition stands still that stands still longest after an event."""

    def __init__(self, job: Job, busy: Iterable[str]) -> None:
        topics = [job.target_topic(topic) for topic in busy]
        self._places = {(topic, number) for topic in topics for number in range(job.partitions)}
        self._consumer: Consumer = tail(job.target, topics=topics, partitions=job.partitions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def all_heard(self) -> None:
        """Waits until records of every busy partition come."""
        self._heard_behind(time.time())

    def longest(self, began: float) -> float:
        """Seconds, once every partition has records that were written when the loss was noticed for sure."""
        return self._heard_behind(began + _NOTICED_SECONDS, since=began)

    def _heard_behind(self, moment: float, *, since: float | None = None) -> float:
        """Reads until each partition has a record written behind the moment; the longest gap since another one."""
        missing = set(self._places)
        last = dict.fromkeys(self._places, since or time.time())
        longest = 0.0
        deadline = time.monotonic() + _MOVE_SECONDS
        while missing:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"nothing new in {len(missing)} partitions: {sorted(missing)[:3]}"
                )
            for message in self._consumer.consume(1_000, 0.05):
                value = message.value()
                if message.error() is not None or not value:
                    continue
                place = (message.topic() or "", message.partition() or 0)
                now = time.time()
                longest, last[place] = max(longest, now - last[place]), now
                if float(value) > moment:
                    missing.discard(place)
        return longest


def _started(stack: ExitStack, contender: Contender, job: Job) -> Running:
    running = contender.start(job)
    stack.callback(running.end_at_once)
    return running


def _until_all_copied(job: Job, running: Running) -> None:
    """Every partition holds a record on the target."""
    missing = {(topic, number) for topic in job.target_topics for number in range(job.partitions)}

    def done() -> bool:
        there = job.target.admin().list_topics(timeout=30).topics
        asked = {place for place in missing if place[0] in there}
        missing.difference_update(_with_records(job.target, asked))
        return not missing

    wait_until(
        done,
        timeout_seconds=_START_SECONDS,
        describe=lambda: f"{len(missing)} partitions without a copy\n{running.log_tail()}",
        interval_seconds=0.5,
    )


def _with_records(cluster: LocalCluster, places: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call] # the library's stub lacks it
    wanted = {TopicPartition(*place): latest for place in places}
    if not wanted:
        return set()
    answers = cluster.admin().list_offsets(
        wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=30
    )
    return {
        (place.topic, place.partition)
        for place, answer in answers.items()
        if answer.exception() is None and answer.result().offset > 0
    }


def _until_shared(job: Job, workers: int) -> None:
    """So many workers have lanes, and the group has settled."""

    def shared() -> bool:
        (flow,) = _status(job)["flows"]
        return len(flow["workers"]) == workers

    wait_until(
        shared,
        timeout_seconds=_MOVE_SECONDS,
        describe=f"{workers} workers with lanes",
        interval_seconds=2.0,
    )
    time.sleep(_STEP_SECONDS)


def _status(job: Job) -> dict[str, list[dict[str, list[object]]]]:
    command = [sys.executable, "-m", "replicator", "status", "-f", str(topology_file(job))]
    shown = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)  # type: ignore[no-any-return]


def _status_seconds(job: Job) -> float:
    began = time.monotonic()
    _status(job)
    return time.monotonic() - began


def _cpu(workers: Sequence[Running], seconds: float) -> str:
    """Of one core, over the next seconds."""
    before = sum(each.tree.usage().cpu_seconds for each in workers)
    time.sleep(seconds)
    used = sum(each.tree.usage().cpu_seconds for each in workers) - before
    return f"{100 * used / seconds:.1f} %"


def _memory(workers: Sequence[Running]) -> str:
    return f"{sum(each.tree.usage().peak_rss_bytes for each in workers) / 1e6:.0f} MB"


def _commit(cluster: LocalCluster, names: Sequence[str], topic: str, offset: int) -> None:
    """Moves every group to the offset in every partition."""
    places = [TopicPartition(topic, number, offset) for number in range(_GROUP_PARTITIONS)]
    admin = cluster.admin()
    for name in names:
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, places)])
        for answer in asked.values():
            answer.result(30)


def _move(cluster: LocalCluster, names: Sequence[str], topic: str, ended: threading.Event) -> None:
    offset = 10
    while not ended.wait(_STEP_SECONDS):
        offset = min(180, offset + 10)
        _commit(cluster, names, topic, offset)


def _until_carried(job: Job, names: Sequence[str], offset: int) -> float:
    """Seconds until every group stands there on the target."""
    began, missing = time.monotonic(), list(names)
    admin = job.target.admin()

    def carried() -> bool:
        while missing:
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(missing[-1])])
            places = next(iter(asked.values())).result(30).topic_partitions or []
            mine = [each for each in places if each.topic == job.target_topics[0]]
            if len(mine) < _GROUP_PARTITIONS or any(each.offset < offset for each in mine):
                return False
            missing.pop()
        return True

    wait_until(
        carried,
        timeout_seconds=_START_SECONDS,
        describe=lambda: f"{len(missing)} groups without their positions",
        interval_seconds=0.5,
    )
    return time.monotonic() - began


def _fill(cluster: LocalCluster, size: Size) -> None:
    """Makes the topics, and puts a record into each partition."""
    wanted = [NewTopic(name, size.partitions, 1) for name in size.names]
    for at in range(0, len(wanted), 100):
        for made in cluster.admin().create_topics(wanted[at : at + 100]).values():
            made.result(60)
    producer = Producer(cluster.client_settings())
    for name in size.names:
        for number in range(size.partitions):
            producer.produce(name, b"0", partition=number)
    if producer.flush(120):
        raise RuntimeError("the topics could not be filled in time")


def main() -> None:
    """Measures the chosen parts and prints each as a table."""
    parser = argparse.ArgumentParser(description="Many partitions, many lanes, many groups.")
    parser.add_argument("--only", default=",".join(_PARTS))
    parser.add_argument("--topics", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--busy", type=int, default=50)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement of CPU")
    given = parser.parse_args()
    size = Size(given.topics, given.partitions, given.busy, given.groups, given.seconds)
    parts: dict[str, Callable[[LocalCluster, LocalCluster, Size], str]] = {
        "copying": copying, "lanes": lanes, "groups": groups,
    }  # fmt: skip
    source, target = (
        LocalCluster(name, jvm="throughput", heap_megabytes=1024, config=_CONFIG)
        for name in ("many-source", TARGET_ALIAS)
    )
    start_all([source, target])
    try:
        warm_up(source)
        warm_up(target)
        _fill(source, size)
        for name in given.only.split(","):
            print(f"\n{parts[name](source, target, size)}\n", flush=True)
        print(facts(command=command_line(), full=True))
    finally:
        source.stop()
        target.stop()


if __name__ == "__main__":
    main()
