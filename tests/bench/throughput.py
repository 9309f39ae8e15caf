"""Copying a full topic: records per second and CPU per record, interleaved, median of the rounds."""

import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from contender import Contender, Job
from load import count, fill
from progress import Copy, follow, summarise, wait_until_still

from replicator.testing import LocalCluster

_COPY_TIMEOUT_SECONDS = 300.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Payload:
    """What the source holds."""

    label: str
    size_bytes: int
    records: int


@dataclass(frozen=True, slots=True)
class Entry:
    """Who takes part: ``rounds`` of them, over the whole or a part of the records."""

    contender: Contender
    rounds: int


@dataclass(frozen=True, slots=True)
class Result:
    """One contender, all its rounds.

    Attributes:
        missing: records that were not on the target after the longest wait, over all rounds.
        surplus: records that were there more often than once, over all rounds.
        failure: why there are no figures; empty when there are.
    """

    name: str
    payload: str
    copies: tuple[Copy, ...] = ()
    missing: int = 0
    surplus: int = 0
    failure: str = ""

    @property
    def records_per_second(self) -> float:
        """Median."""
        return statistics.median(copy.records_per_second for copy in self.copies)

    @property
    def cpu_us_per_record(self) -> float:
        """Median, steady part."""
        return statistics.median(copy.cpu_us_per_record for copy in self.copies)

    @property
    def cpu_us_per_record_whole(self) -> float:
        """Median, start and end included."""
        return statistics.median(copy.cpu_us_per_record_whole for copy in self.copies)

    @property
    def first_record_seconds(self) -> float:
        """Median, from process start."""
        return statistics.median(copy.first_record_seconds for copy in self.copies)

    @property
    def peak_rss_bytes(self) -> int:
        """Highest of all rounds."""
        return max(copy.peak_rss_bytes for copy in self.copies)


def measure(
    *,
    source: LocalCluster,
    target: LocalCluster,
    payload: Payload,
    entries: Sequence[Entry],
    say: Say,
) -> list[Result]:
    """Fills the source once and lets everybody copy it, round by round."""
    topic = f"full-{payload.size_bytes}"
    records = fill(source, topic=topic, records=payload.records, size_bytes=payload.size_bytes)
    results = {
        entry.contender.name: Result(entry.contender.name, payload.label) for entry in entries
    }
    for turn in range(max(entry.rounds for entry in entries)):
        for entry in entries:
            name = entry.contender.name
            if turn < entry.rounds and not results[name].failure:
                job = Job(source=source, target=target, topics=(topic,), records=records)
                results[name] = _round(entry.contender, job, results[name])
                say(_line(results[name]))
    source.delete_topic(topic)
    return list(results.values())


def _round(contender: Contender, job: Job, so_far: Result) -> Result:
    (target_topic,) = job.target_topics
    running = contender.start(job)
    try:
        samples = follow(
            target=job.target,
            topic=target_topic,
            records=job.records,
            tree=running.tree,
            started_at=running.started_at,
            timeout_seconds=_COPY_TIMEOUT_SECONDS,
            describe=running.log_tail,
        )
        wait_until_still(job.target, target_topic)
        copy = summarise(samples, peak_rss_bytes=running.tree.usage().peak_rss_bytes)
        running.stop()
        arrived = count(job.target, topic=target_topic)
        return Result(
            name=so_far.name,
            payload=so_far.payload,
            copies=(*so_far.copies, copy),
            missing=so_far.missing + max(0, job.records - arrived),
            surplus=so_far.surplus + max(0, arrived - job.records),
        )
    except Exception as error:  # noqa: BLE001 # one contender that fails must not cost the others' figures
        return Result(so_far.name, so_far.payload, failure=str(error))
    finally:
        running.kill()
        remove_traces(job)


def remove_traces(job: Job) -> None:
    """Deletes everything the job left on the target, and its directory."""
    admin = job.target.admin()
    left = [name for name in admin.list_topics(timeout=10).topics if job.alias in name]
    for done in admin.delete_topics(left, request_timeout=30).values() if left else ():
        done.exception()  # gone is gone
    shutil.rmtree(job.directory, ignore_errors=True)


def _line(result: Result) -> str:
    if result.failure:
        return f"  {result.payload:>12}  {result.name}: FAILED\n{result.failure}"
    last = result.copies[-1]
    return (
        f"  {result.payload:>12}  {result.name:<52} {last.records_per_second / 1e3:8.1f} k rec/s"
        f" {last.cpu_us_per_record:7.2f} us/rec ({last.cpu_us_per_record_whole:.2f} whole)"
        f"  first {last.first_record_seconds:.2f} s  {last.peak_rss_bytes / 1e6:.0f} MB"
        f"  missing {result.missing} surplus {result.surplus}"
    )
