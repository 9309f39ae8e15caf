"""What a copier costs that has nothing to do: CPU and memory with many idle topics."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from budget import Share
from confluent_kafka.admin import NewTopic
from contender import Contender, Job
from load import PARTITIONS
from throughput import Say, remove_traces

from replicator.testing import LocalCluster, wait_until

TOPICS = 200
_APPEAR_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Result:
    """One contender; ``cpu_percent`` is the mean of what each round took."""

    name: str
    rounds: tuple[float, ...] = ()
    peak_rss_bytes: int = 0
    ready_seconds: float = 0.0
    failure: str = ""

    @property
    def cpu_percent(self) -> float:
        """Of one core."""
        return sum(self.rounds) / max(1, len(self.rounds))


def measure(
    *,
    source: LocalCluster,
    target: LocalCluster,
    contenders: Sequence[Contender],
    rounds: int,
    settle_seconds: float,
    measure_seconds: float,
    share: Share,
    say: Say,
) -> list[Result]:
    """Creates the topics once, then runs one contender after the other, up to so many times.

    In turns, because the machine's own speed changes from minute to minute.
    """
    topics = tuple(f"idle-{number:03d}" for number in range(TOPICS))
    wanted = [NewTopic(name, PARTITIONS, -1) for name in topics]
    for created in source.admin().create_topics(wanted, request_timeout=60).values():
        created.result(60)
    results = {contender.name: Result(contender.name) for contender in contenders}
    took = 0.0
    for number, contender in enumerate([*contenders] * rounds):
        if number >= len(contenders) and not share.fits(took):
            break
        began = time.monotonic()
        job = Job(source=source, target=target, topics=topics)
        running = contender.start(job)
        try:
            wait_until(
                partial(_all_made, job),
                timeout_seconds=_APPEAR_SECONDS,
                describe=running.log_tail,
                interval_seconds=0.5,
            )
            ready = time.monotonic() - running.started_at
            time.sleep(settle_seconds)
            before = running.tree.usage()
            time.sleep(measure_seconds)
            after = running.tree.usage()
            used = (after.cpu_seconds - before.cpu_seconds) / measure_seconds * 100
            result = Result(contender.name, (used,), after.peak_rss_bytes, ready)
        except Exception as error:  # noqa: BLE001 # one contender that fails must not cost the others' figures
            result = Result(contender.name, failure=str(error))
        finally:
            running.stop()
            remove_traces(job)
        took = max(took, time.monotonic() - began)
        say(_line(result))
        results[contender.name] = _both(results[contender.name], result)
    for deleted in source.admin().delete_topics(list(topics), request_timeout=60).values():
        deleted.result(60)
    return list(results.values())


def _both(before: Result, now: Result) -> Result:
    """All rounds so far; of the rest the worst."""
    return replace(
        before,
        rounds=(*before.rounds, *now.rounds),
        peak_rss_bytes=max(before.peak_rss_bytes, now.peak_rss_bytes),
        ready_seconds=max(before.ready_seconds, now.ready_seconds),
        failure=before.failure or now.failure,
    )


def _all_made(job: Job) -> bool:
    return set(job.target_topics) <= set(job.target.admin().list_topics(timeout=10).topics)


def _line(result: Result) -> str:
    if result.failure:
        return f"  {result.name}: FAILED\n{result.failure}"
    return (
        f"  {result.name:<52} {result.cpu_percent:.2f} % of a core"
        f"  {result.peak_rss_bytes / 1e6:.0f} MB  all topics after {result.ready_seconds:.1f} s"
    )
