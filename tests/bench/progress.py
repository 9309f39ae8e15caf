"""How far a target topic has come, sampled while somebody copies into it."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from load import PARTITIONS
from usage import ProcessTree

from replicator.testing import LocalCluster, NotInTimeError

_INTERVAL_SECONDS = 0.05
_REQUEST_TIMEOUT_SECONDS = 10.0
# The steady part leaves out the start (JIT, first fetches) and the end (partitions that run dry).
_STEADY_FROM = 0.30
_STEADY_TO = 0.95


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the target and at the copier."""

    at_seconds: float
    records: int
    cpu_seconds: float
    rss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """A whole copy, measured.

    Attributes:
        records_per_second: of the steady part.
        cpu_us_per_record: of the steady part, whole process tree.
        cpu_us_per_record_whole: with start and end, whole process tree.
        first_record_seconds: from process start.
        peak_rss_bytes: highest sum over the tree.
        busy_rss_bytes: what of it came behind the first record.
        complete: whether every record was copied; else it was ended when its time was over.
    """

    records_per_second: float
    cpu_us_per_record: float
    cpu_us_per_record_whole: float
    first_record_seconds: float
    peak_rss_bytes: int
    busy_rss_bytes: int = 0
    complete: bool = True


def topic_exists(cluster: LocalCluster, topic: str, partitions: int = PARTITIONS) -> bool:
    """Whether the topic is there with all its partitions."""
    try:
        found = cluster.admin().list_topics(timeout=_REQUEST_TIMEOUT_SECONDS).topics.get(topic)
    except KafkaException:
        return False
    return found is not None and len(found.partitions) >= partitions


def end_offsets(
    cluster: LocalCluster, topic: str, *, committed: bool, partitions: int = PARTITIONS
) -> int:
    """Sum of the end offsets of all partitions; zero while there is nothing to ask."""
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call] # the library's stub lacks it
    wanted = {TopicPartition(topic, each): latest for each in range(partitions)}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    answers = cluster.admin().list_offsets(
        wanted, isolation_level=level, request_timeout=_REQUEST_TIMEOUT_SECONDS
    )
    total = 0
    for answer in answers.values():
        try:
            total += max(0, answer.result().offset)
        except KafkaException:
            return 0
    return total


def follow(
    *,
    target: LocalCluster,
    topic: str,
    records: int,
    tree: ProcessTree,
    started_at: float,
    timeout_seconds: float,
    describe: Callable[[], str],
    partitions: int = PARTITIONS,
    most_seconds: float = math.inf,
) -> list[Sample]:
    """Samples until every record is on the target, or the first one is ``most_seconds`` old.

    Transaction markers count as offsets too; there are a few per second, so they blur the end by
    far less than one sample, and the caller counts the records afterwards.

    Raises:
        NotInTimeError: with what ``describe`` says (the copier's log).
    """
    deadline = started_at + timeout_seconds
    samples: list[Sample] = []
    ends_at = math.inf
    while not topic_exists(target, topic, partitions):
        tree.usage()
        if time.monotonic() > deadline:
            raise NotInTimeError(f"{topic} never came into being:\n{describe()}")
        time.sleep(_INTERVAL_SECONDS)
    while not samples or samples[-1].records < records:
        done = end_offsets(target, topic, committed=False, partitions=partitions)
        now = time.monotonic()
        used = tree.usage()
        samples.append(Sample(now - started_at, done, used.cpu_seconds, used.rss_bytes))
        if done and ends_at == math.inf:
            ends_at = now + most_seconds
        if now > ends_at:
            return samples
        if now > deadline:
            raise NotInTimeError(f"{topic} has {done} of {records} records:\n{describe()}")
        time.sleep(_INTERVAL_SECONDS)
    return samples


def wait_until_still(
    cluster: LocalCluster,
    topic: str,
    *,
    quiet_seconds: float = 1.0,
    partitions: int = PARTITIONS,
) -> None:
    """Waits until the committed end of a topic stops moving."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < quiet_seconds:
        now_at = end_offsets(cluster, topic, committed=True, partitions=partitions)
        if now_at != last:
            last, since = now_at, time.monotonic()
        time.sleep(_INTERVAL_SECONDS)


def summarise(samples: list[Sample], *, records: int, peak_rss_bytes: int) -> Copy:
    """The figures of one copy."""
    total = samples[-1].records
    first = next(sample for sample in samples if sample.records > 0)
    low = next(sample for sample in samples if sample.records >= total * _STEADY_FROM)
    high = [sample for sample in samples if sample.records <= total * _STEADY_TO][-1]
    if high.records <= low.records:  # too quick to tell the parts apart
        low, high = first, samples[-1]
    moved = max(1, high.records - low.records)
    return Copy(
        records_per_second=moved / max(1e-9, high.at_seconds - low.at_seconds),
        cpu_us_per_record=(high.cpu_seconds - low.cpu_seconds) / moved * 1e6,
        cpu_us_per_record_whole=samples[-1].cpu_seconds / total * 1e6,
        first_record_seconds=first.at_seconds,
        peak_rss_bytes=peak_rss_bytes,
        busy_rss_bytes=max(0, peak_rss_bytes - first.rss_bytes),
        complete=total >= records,
    )
