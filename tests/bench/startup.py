"""Time to the first record, time to catch up after SIGKILL, time until a dead worker's lanes move."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Self

from budget import Share
from contender import Contender, Job, Running
from load import PARTITIONS
from paced_writer import start_writer
from progress import end_offsets, topic_exists
from reader import Reader
from throughput import Say, remove_traces

from replicator.testing import LocalCluster, wait_until

_TIMEOUT_SECONDS = 180.0
_INTERVAL_SECONDS = 0.02
_LOOK_SECONDS = 0.25
_CAUGHT_UP_AGE_SECONDS = 0.5
_CAUGHT_UP_FOR_SECONDS = 2.0
_NOTICED_SECONDS = 8.0
_RATE_PER_SECOND = 20_000
_WARM_UP_SECONDS = 10.0
_LANES_ASSIGNED = re.compile(r'"lanes assigned".*"lanes": \[\d')


@dataclass(frozen=True, slots=True)
class Result:
    """One figure of one contender, measured some times."""

    name: str
    what: str
    measured: tuple[float, ...] = ()
    failure: str = ""

    @property
    def seconds(self) -> float:
        """The median."""
        return median(self.measured) if self.measured else 0.0


class Notes:
    """What was measured so far; one figure that fails costs no other."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._results: dict[tuple[str, str], Result] = {}

    def note(self, name: str, what: str, action: Callable[[], float]) -> None:
        """Measures and keeps one figure."""
        result = self._results.get((name, what), Result(name, what))
        try:
            result = replace(result, measured=(*result.measured, action()))
            shown = f"{result.measured[-1]:.2f} s"
        except Exception as error:  # noqa: BLE001 # see the class
            result = replace(result, failure=str(error))
            shown = f"FAILED\n{result.failure}"
        self._results[name, what] = result
        self._say(f"  {what:<48} {name:<52} {shown}")

    def results(self) -> list[Result]:
        """All of them."""
        return list(self._results.values())


def measure_starts(
    *,
    source: LocalCluster,
    target: LocalCluster,
    contenders: Sequence[Contender],
    rounds: int,
    share: Share,
    say: Say,
) -> list[Result]:
    """Cold and warm starts, in turns; further rounds while there is time: one start differs from the next by a half and more."""
    notes = Notes(say)
    took = 0.0
    for turn in range(rounds):
        if turn and not share.fits(took):
            break
        began = time.monotonic()
        for contender in contenders:
            cold, warm = _starts(source, target, contender)
            notes.note(contender.name, "first record after a cold start", cold)
            notes.note(contender.name, "first new record after a clean restart", warm)
        took = time.monotonic() - began
    return notes.results()


def measure_takeovers(
    *,
    source: LocalCluster,
    target: LocalCluster,
    restarted: Sequence[Contender],
    workers: Sequence[Contender],
    rounds: int,
    share: Share,
    say: Say,
) -> list[Result]:
    """``restarted`` are those that come back after SIGKILL, ``workers`` those of which two can share the lanes."""
    notes = Notes(say)
    took = 0.0
    for turn in range(rounds):
        if turn and not share.fits(took):
            break
        began = time.monotonic()
        for contender in restarted:
            killed = partial(_killed, source, target, contender)
            notes.note(contender.name, "SIGKILL, restart, caught up at 20 k rec/s", killed)
        for contender in workers:
            for signal_name in ("SIGKILL", "SIGTERM"):
                taken_over = partial(_taken_over, source, target, contender, signal_name)
                what = f"one of two workers: {signal_name}, its lanes move again"
                notes.note(contender.name, what, taken_over)
        took = time.monotonic() - began
    return notes.results()


def _starts(
    source: LocalCluster, target: LocalCluster, contender: Contender
) -> tuple[Callable[[], float], Callable[[], float]]:
    """Cold and warm belong together: the warm start goes on where the cold one ended."""
    job = Job(source=source, target=target, topics=("starts",))
    (topic,) = job.topics
    (target_topic,) = job.target_topics

    def cold() -> float:
        source.create_topic(topic, partitions=PARTITIONS)
        writer = _writer(job, topic, rate_per_second=100)
        _until_written(source, topic)
        running = contender.start(job)
        try:
            return _until_more_than(0, target, target_topic, running)
        finally:
            running.stop()
            writer.stop()

    def warm() -> float:
        already = end_offsets(target, target_topic, committed=True)
        writer = _writer(job, topic, rate_per_second=100)
        _until_written(source, topic)
        running = contender.start(job)
        try:
            return _until_more_than(already, target, target_topic, running)
        finally:
            running.stop()
            writer.stop()
            source.delete_topic(topic)
            remove_traces(job)

    return cold, warm


def _killed(source: LocalCluster, target: LocalCluster, contender: Contender) -> float:
    with _Traffic(source, target) as traffic:
        running = contender.start(traffic.job)
        try:
            with traffic.reader(running) as reader:
                _until_fresh(reader, since=time.time(), running=running)
                time.sleep(_WARM_UP_SECONDS)
                running.kill()
                began = time.time()
                running = contender.start(traffic.job)
                return _until_fresh(reader, since=began, running=running) - began
        finally:
            running.stop()


def _taken_over(source: LocalCluster, target: LocalCluster, contender: Contender, by: str) -> float:
    """The worker that was there first leaves: it is sure to own lanes until then."""
    with _Traffic(source, target) as traffic:
        leaves = contender.start(traffic.job)
        stays = None
        try:
            with traffic.reader(leaves) as reader:
                _until_fresh(reader, since=time.time(), running=leaves)
                stays = contender.start(traffic.job)
                joined = partial(_owns_lanes, stays)
                wait_until(joined, timeout_seconds=_TIMEOUT_SECONDS, describe=stays.log_tail)
                _until_fresh(reader, since=time.time(), running=stays)
                began = time.time()
                if by == "SIGKILL":
                    leaves.kill()
                else:
                    leaves.stop()
                # Fresh for longer than it takes the group to notice that a member is gone.
                _until_fresh(reader, since=began + _NOTICED_SECONDS, running=stays)
                return reader.longest_silence(since=began)
        finally:
            leaves.stop()
            if stays is not None:
                stays.stop()


def _until_written(source: LocalCluster, topic: str) -> None:
    """The writer's own start is not the copier's: it has to be over before."""
    before = end_offsets(source, topic, committed=True)
    wait_until(
        lambda: end_offsets(source, topic, committed=True) > before,
        timeout_seconds=_TIMEOUT_SECONDS,
        describe="the writer's first records",
    )


def _owns_lanes(worker: Running) -> bool:
    """Whether a worker says that it got lanes."""
    return _LANES_ASSIGNED.search(worker.output()) is not None


class _Traffic:
    """A topic with a writer at 20 k records per second; a context manager."""

    def __init__(self, source: LocalCluster, target: LocalCluster) -> None:
        self.job = Job(source=source, target=target, topics=("traffic",))
        self._writer: Running | None = None

    def __enter__(self) -> Self:
        (topic,) = self.job.topics
        self.job.source.create_topic(topic, partitions=PARTITIONS)
        self._writer = _writer(self.job, topic, rate_per_second=_RATE_PER_SECOND)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._writer is not None:
            self._writer.stop()
        remove_traces(self.job)
        self.job.source.delete_topic(self.job.topics[0])

    def reader(self, running: Running) -> Reader:
        """A reader of the target topic, once that exists."""
        (target_topic,) = self.job.target_topics
        wait_until(
            lambda: topic_exists(self.job.target, target_topic),
            timeout_seconds=_TIMEOUT_SECONDS,
            describe=running.log_tail,
        )
        return Reader(self.job.target, topic=target_topic)


def _writer(job: Job, topic: str, *, rate_per_second: int) -> Running:
    return start_writer(
        job.source,
        topic=topic,
        partitions=PARTITIONS,
        rate_per_second=rate_per_second,
        size_bytes=100,
        directory=job.directory,
    )


def _until_more_than(already: int, target: LocalCluster, topic: str, running: Running) -> float:
    """Seconds from process start until the target topic holds a new committed record."""

    def more() -> bool:
        return topic_exists(target, topic) and end_offsets(target, topic, committed=True) > already

    wait_until(
        more,
        timeout_seconds=_TIMEOUT_SECONDS,
        describe=running.log_tail,
        interval_seconds=_INTERVAL_SECONDS,
    )
    return time.monotonic() - running.started_at


def _until_fresh(reader: Reader, *, since: float, running: Running) -> float:
    """When records became fresh and stayed so.

    Fresh: nothing that was read in the last two seconds was older than half a second.
    """

    def fresh() -> float:
        recent = reader.arrivals(since=max(since, time.time() - _CAUGHT_UP_FOR_SECONDS))
        late = [each for each in recent if each.age_seconds > _CAUGHT_UP_AGE_SECONDS]
        if late or not recent or time.time() - recent[0].at_seconds < 0.9 * _CAUGHT_UP_FOR_SECONDS:
            return 0.0
        if time.time() - recent[-1].at_seconds > _CAUGHT_UP_AGE_SECONDS:
            return 0.0  # fresh ones of the worker that was killed, and none since
        return recent[0].at_seconds

    return wait_until(
        fresh,
        timeout_seconds=_TIMEOUT_SECONDS,
        describe=running.log_tail,
        interval_seconds=_LOOK_SECONDS,  # a look at 40,000 arrivals must not slow their reader
    )
