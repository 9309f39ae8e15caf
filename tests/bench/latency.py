"""End-to-end latency at a steady rate: from the writer's clock to a read-committed reader's."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from contender import Contender, Job, Running
from load import PARTITIONS
from paced_writer import start_writer
from progress import topic_exists
from reader import Arrival, Reader
from throughput import Say, remove_traces
from usage import Usage

from replicator.testing import LocalCluster, wait_until

_APPEAR_SECONDS = 120.0
FLOOR = "(source read directly)"
_FLOOR_SETTLE_SECONDS = 2.0
_STEADY_FACTOR = 3.0
# Nothing is measured before the reader itself runs; a slow copier is then measured later, and the
# report says from when.
_READER_WARM_UP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """What the writer does."""

    label: str
    rate_per_second: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How long is waited before, and how long is measured."""

    settle_seconds: float
    measure_seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    """One contender at one pace.

    Attributes:
        rounds: how many measurements these are the medians of.
        steady_after_seconds: from process start until every later second was as quick as the
            measured part (its p99 within three times that of the whole).
    """

    name: str
    pace: str
    settle_seconds: float = 0.0
    records: int = 0
    p50_seconds: float = 0.0
    p99_seconds: float = 0.0
    p999_seconds: float = 0.0
    rounds: int = 1
    steady_after_seconds: float = 0.0
    cpu_percent: float = 0.0
    peak_rss_bytes: int = 0
    failure: str = ""


def measure_source(
    source: LocalCluster, pace: Pace, *, seconds: float, say: Say, partitions: int = PARTITIONS
) -> Result:
    """The source read directly: the floor."""
    result = _source_alone(source, pace, Plan(_FLOOR_SETTLE_SECONDS, seconds), partitions)
    say(_line(result))
    return result


def measure_one(
    *,
    source: LocalCluster,
    target: LocalCluster,
    pace: Pace,
    contender: Contender,
    plan: Plan,
    say: Say,
    partitions: int = PARTITIONS,
) -> Result:
    """One contender, once."""
    topic = f"paced-{pace.rate_per_second}"
    job = Job(source=source, target=target, topics=(topic,), partitions=partitions)
    try:
        result = _one(contender, job, pace, plan)
    except Exception as error:  # noqa: BLE001 # one contender that fails must not cost the others' figures
        result = Result(contender.name, pace.label, failure=str(error))
    say(_line(result))
    return result


def medians(results: Sequence[Result]) -> Result:
    """Several measurements of the same as one; those that failed are left out if others did not."""
    good = [each for each in results if not each.failure]
    if not good:
        return results[0]

    def median(value: Callable[[Result], float]) -> float:
        return statistics.median(map(value, good))

    return replace(
        good[0],
        settle_seconds=median(lambda each: each.settle_seconds),
        records=sum(each.records for each in good),
        p50_seconds=median(lambda each: each.p50_seconds),
        p99_seconds=median(lambda each: each.p99_seconds),
        p999_seconds=median(lambda each: each.p999_seconds),
        rounds=len(good),
        steady_after_seconds=median(lambda each: each.steady_after_seconds),
        cpu_percent=median(lambda each: each.cpu_percent),
        peak_rss_bytes=max(each.peak_rss_bytes for each in good),
    )


def _one(contender: Contender, job: Job, pace: Pace, plan: Plan) -> Result:
    (topic,) = job.topics
    (target_topic,) = job.target_topics
    job.source.create_topic(topic, partitions=job.partitions)
    writer = running = None
    try:
        writer = _writer(job.source, topic, pace, job)
        began = time.time()
        running = contender.start(job)
        wait_until(
            lambda: topic_exists(job.target, target_topic, job.partitions),
            timeout_seconds=_APPEAR_SECONDS,
            describe=running.log_tail,
        )
        with Reader(job.target, topic=target_topic, partitions=job.partitions) as reader:
            first = wait_until(
                reader.arrivals, timeout_seconds=_APPEAR_SECONDS, describe=running.log_tail
            )[0]
            start = max(began + plan.settle_seconds, first.at_seconds + _READER_WARM_UP_SECONDS)
            actual = Plan(start - began, plan.measure_seconds)
            _sleep_until(start)
            before = running.tree.usage()
            _sleep_until(start + plan.measure_seconds)
            after = running.tree.usage()
            return _result(
                contender.name, pace, actual, reader.arrivals(), began, before=before, after=after
            )
    finally:
        for each in (running, writer):
            _end(each)
        remove_traces(job)
        job.source.delete_topic(topic)


def _source_alone(source: LocalCluster, pace: Pace, plan: Plan, partitions: int) -> Result:
    """The same writer and reader with nothing in between: what one broker costs."""
    topic = f"alone-{pace.rate_per_second}"
    job = Job(source=source, target=source, topics=(topic,), partitions=partitions)
    source.create_topic(topic, partitions=partitions)
    writer = _writer(source, topic, pace, job)
    try:
        with Reader(source, topic=topic, partitions=partitions) as reader:
            began = time.time()
            _sleep_until(began + plan.settle_seconds + plan.measure_seconds)
            nothing = Usage(0.0, 0, 0)
            return _result(
                FLOOR, pace, plan, reader.arrivals(), began,
                before=nothing, after=nothing,
            )  # fmt: skip
    finally:
        _end(writer)
        source.delete_topic(topic)
        remove_traces(job)


def _writer(cluster: LocalCluster, topic: str, pace: Pace, job: Job) -> Running:
    return start_writer(
        cluster,
        topic=topic,
        partitions=job.partitions,
        rate_per_second=pace.rate_per_second,
        size_bytes=pace.size_bytes,
        directory=job.directory,
    )


def _result(
    name: str,
    pace: Pace,
    plan: Plan,
    arrivals: list[Arrival],
    began: float,
    *,
    before: Usage,
    after: Usage,
) -> Result:
    start = began + plan.settle_seconds
    ages = [each.age_seconds for each in arrivals if start <= each.at_seconds]
    if len(ages) < 0.5 * pace.rate_per_second * plan.measure_seconds:
        return Result(name, pace.label, failure=f"only {len(ages)} records arrived in time")
    p99 = percentile(ages, 99)
    return Result(
        name=name,
        pace=pace.label,
        settle_seconds=plan.settle_seconds,
        records=len(ages),
        p50_seconds=percentile(ages, 50),
        p99_seconds=p99,
        p999_seconds=percentile(ages, 99.9),
        steady_after_seconds=steady_after(arrivals, began=began, p99_seconds=p99),
        cpu_percent=(after.cpu_seconds - before.cpu_seconds) / plan.measure_seconds * 100,
        peak_rss_bytes=after.peak_rss_bytes,
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """Interpolated; of at least two values."""
    return statistics.quantiles(values, n=1000, method="inclusive")[round(percent * 10) - 1]


def steady_after(arrivals: list[Arrival], *, began: float, p99_seconds: float) -> float:
    """Seconds from the start to the end of the last second that was still slow; see ``Result``."""
    by_second: dict[int, list[float]] = {}
    for each in arrivals:
        by_second.setdefault(int(each.at_seconds - began), []).append(each.age_seconds)
    slow = [
        second
        for second, ages in by_second.items()
        if sorted(ages)[int(len(ages) * 0.99)] > _STEADY_FACTOR * p99_seconds
    ]
    return max(slow) + 1.0 if slow else min(by_second, default=0) + 0.0


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def _end(running: Running | None) -> None:
    if running is not None:
        running.stop()


def _line(result: Result) -> str:
    if result.failure:
        return f"  {result.pace}  {result.name}: FAILED\n{result.failure}"
    return (
        f"  {result.pace}  {result.name:<52} p50 {result.p50_seconds * 1e3:7.1f} ms"
        f"  p99 {result.p99_seconds * 1e3:7.1f} ms  p99.9 {result.p999_seconds * 1e3:7.1f} ms  steady after {result.steady_after_seconds:.0f} s"
        f"  cpu {result.cpu_percent:.1f} %  {result.peak_rss_bytes / 1e6:.0f} MB"
    )
