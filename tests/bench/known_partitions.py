"""A backlog in many partitions that were all written to before, on both sides.

``python tests/bench/known_partitions.py [--partitions 1600] [--records 8000000] [--only batches,at-least-once,tuned]``

The first batch of a partition costs its broker pages of index files that were never written to. So each contender copies a run of
records into every partition first and ends; then it is started on the backlog. Some two minutes each; prints a table.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace

import cases
from contender import Contender, Job, Running
from load import fill_with, write
from machine import command_line, facts
from payload import Payload
from progress import Copy, end_offsets, follow, summarise
from replicator_run import TARGET_ALIAS
from throughput import remove_traces
from warm_up import warm_up

from replicator.testing import LocalCluster, start_all, wait_until

CONTENDERS: Mapping[str, Contender] = {
    "batches": cases.BATCHES,
    "at-least-once": cases.BATCHES_AT_LEAST_ONCE,
    "tuned": cases.YARDSTICK,
    "records": cases.RECORDS,
}

_MOST_SECONDS = 300.0


def measured(
    contender: Contender, source: LocalCluster, target: LocalCluster, payload: Payload
) -> Copy:
    """One copy of the backlog, behind one of a run of records for each partition."""
    topic = f"known-{contender.name.replace(' ', '-').replace(',', '')}".lower()
    few = Payload(payload.label, payload.size_bytes, payload.partitions, payload.partitions)
    written = fill_with(source, topic=topic, payload=few)
    job = Job(
        source=source, target=target, topics=(topic,), partitions=payload.partitions,
        records=written,
    )  # fmt: skip
    running = contender.start(job)
    try:
        _until_there(job, running)
        running.stop()
        before = end_offsets(
            target, job.target_topics[0], committed=False, partitions=payload.partitions
        )
        backlog = write(source, topic=topic, payload=payload)
        running = contender.start(job)
        samples = follow(
            target=target, topic=job.target_topics[0], records=before + backlog, tree=running.tree,
            started_at=running.started_at, timeout_seconds=_MOST_SECONDS,
            describe=running.log_tail, partitions=payload.partitions,
        )  # fmt: skip
        behind = [replace(each, records=each.records - before) for each in samples]
        peak = running.tree.usage().peak_rss_bytes
        print(f"  {contender.name}: all there after {samples[-1].at_seconds:.1f} s", flush=True)
        return summarise(behind, records=backlog, peak_rss_bytes=peak)
    finally:
        running.end_at_once()
        remove_traces(job)
        source.delete_topic(topic)


def _tried(
    contender: Contender, source: LocalCluster, target: LocalCluster, payload: Payload
) -> Copy | None:
    try:
        return measured(contender, source, target, payload)
    except Exception as error:  # noqa: BLE001 # one that fails must not cost the others' figures
        print(f"  {contender.name} FAILED: {type(error).__name__}: {error}", flush=True)
        return None


def _until_there(job: Job, running: Running) -> None:
    (topic,) = job.target_topics

    def done() -> bool:
        there = topic in job.target.admin().list_topics(timeout=30).topics
        return (
            there
            and end_offsets(job.target, topic, committed=True, partitions=job.partitions)
            >= job.records
        )

    wait_until(
        done, timeout_seconds=_MOST_SECONDS, interval_seconds=0.5,
        describe=lambda: f"the first records of all partitions\n{running.log_tail()}",
    )  # fmt: skip


def main() -> None:
    """Measures the chosen contenders, one after the other on the same brokers."""
    parser = argparse.ArgumentParser(description="A backlog in partitions that are no longer new.")
    parser.add_argument("--partitions", type=int, default=1_600)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--only", default="batches,at-least-once,tuned")
    given = parser.parse_args()
    if unknown := sorted(set(given.only.split(",")) - set(CONTENDERS)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(CONTENDERS)}")
    chosen = [CONTENDERS[name] for name in given.only.split(",")]
    payload = Payload("", 100, given.records, given.partitions)
    source, target = (
        LocalCluster(name, jvm="throughput", heap_megabytes=1024)
        for name in ("known-source", TARGET_ALIAS)
    )
    start_all([source, target])
    try:
        warm_up(source)
        warm_up(target)
        rows = [(each.name, _tried(each, source, target, payload)) for each in chosen]
    finally:
        source.stop()
        target.stop()
    print(
        f"\n| {given.partitions:,} partitions that are no longer new | rec/s | CPU us/rec | peak memory |"
    )
    print("|---|---:|---:|---:|")
    for name, copy in rows:
        if copy is None:
            print(f"| {name} | failed | | |")
            continue
        rate, memory = copy.records_per_second / 1e3, copy.peak_rss_bytes / 1e6
        print(f"| {name} | {rate:,.0f} k | {copy.cpu_us_per_record:.2f} | {memory:.0f} MB |")
    print(f"\n{facts(command=command_line(), full=True)}")


if __name__ == "__main__":
    main()
