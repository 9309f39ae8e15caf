"""Copying a full topic: records per second and CPU per record, interleaved, median of the rounds."""

import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from contender import Contender, Job
from load import count, fill_with
from payload import Payload
from progress import Copy, follow, summarise, wait_until_still

from replicator.testing import LocalCluster

_START_SECONDS = 60.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """One contender, all its rounds.

    Attributes:
        counted: how many of the copies were counted by a reader afterwards.
        missing: records that were not on the target after the longest wait, over those.
        surplus: records that were there more often than once, over those.
        failure: why there are no figures; empty when there are.
    """

    name: str
    payload: str
    copies: tuple[Copy, ...] = ()
    counted: int = 0
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

    @property
    def busy_rss_bytes(self) -> int:
        """What came behind the first record; median."""
        return round(statistics.median(copy.busy_rss_bytes for copy in self.copies))


class Case:
    """One payload and everybody who copies it; the source is filled when it is made."""

    def __init__(
        self,
        *,
        source: LocalCluster,
        target: LocalCluster,
        payload: Payload,
        contenders: Sequence[Contender],
        say: Say,
    ) -> None:
        self.payload = payload
        self.contenders = tuple(contenders)
        self._source, self._target, self._say = source, target, say
        self._topic = f"full-{payload.key}"
        self._records = fill_with(source, topic=self._topic, payload=payload)
        self._results = {each.name: Result(each.name, payload.label) for each in contenders}

    def run(self, contender: Contender, *, most_seconds: float, counted: bool) -> None:
        """One more copy by one of them; it measures so long at most, and is counted if it ended before.

        One that failed before is left out.
        """
        before = self._results[contender.name]
        if before.failure:
            return
        job = Job(
            source=self._source,
            target=self._target,
            topics=(self._topic,),
            records=self._records,
            partitions=self.payload.partitions,
            codec=self.payload.codec,
        )
        result = _round(contender, job, before, most_seconds=most_seconds, counted=counted)
        self._results[contender.name] = result
        self._say(_line(result))

    def results(self) -> list[Result]:
        """In the order of the contenders."""
        return list(self._results.values())

    def close(self) -> None:
        """Deletes the source topic."""
        self._source.delete_topic(self._topic)


def _round(
    contender: Contender, job: Job, so_far: Result, *, most_seconds: float, counted: bool
) -> Result:
    (target_topic,) = job.target_topics
    running = contender.start(job)
    try:
        samples = follow(
            target=job.target,
            topic=target_topic,
            records=job.records,
            partitions=job.partitions,
            tree=running.tree,
            started_at=running.started_at,
            timeout_seconds=_START_SECONDS + 3 * most_seconds,
            most_seconds=most_seconds,
            describe=running.log_tail,
        )
        copy = summarise(
            samples, records=job.records, peak_rss_bytes=running.tree.usage().peak_rss_bytes
        )
        so_far = replace(so_far, copies=(*so_far.copies, copy))
        if not copy.complete or not counted:
            running.end_at_once()
            return so_far
        wait_until_still(job.target, target_topic, partitions=job.partitions)
        running.stop()
        arrived = count(job.target, topic=target_topic, partitions=job.partitions)
        return replace(
            so_far,
            counted=so_far.counted + 1,
            missing=so_far.missing + max(0, job.records - arrived),
            surplus=so_far.surplus + max(0, arrived - job.records),
        )
    except Exception as error:  # noqa: BLE001 # one contender that fails must not cost the others' figures
        return replace(so_far, failure=str(error))
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
        f"  {'' if last.complete else 'cut  '}missing {result.missing} surplus {result.surplus}"
    )
