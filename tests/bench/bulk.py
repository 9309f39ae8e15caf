"""Copying history by Spark against the same engine outside Spark, on the same number of cores.

``python tests/bench/bulk.py [--records N] [--rounds R] [--size BYTES]``

Both sides run the very same task (``copy_order``) over the same ranges: once in plain processes, once in
Spark's Python workers. The start of sessions and processes is left out; that of tasks is not. Rounds
take turns, and each
copies into topics of its own. Printed as a markdown table. CPU is that of the copying processes: on a
machine that does other work it says more than the rate.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from load import PARTITIONS, count, fill
from machine import command_line, facts

from replicator.clock import SystemClock
from replicator.control.backfill.handover import take_from_lanes
from replicator.control.operator.apply import apply_plan
from replicator.spark.copy.bulk_plan import declarations, orders, survey
from replicator.spark.copy.task import CopyOrder, CopyResult, copy_order
from replicator.spark.session.session import spark_session
from replicator.spark.session.settings import SparkSettings
from replicator.testing import LocalCluster, start_all
from replicator.topology.file.load import require_plan

Measured = tuple[CopyResult, float]
"""What became of a range, and the CPU seconds of the process meanwhile."""

Copy = Callable[[Sequence[CopyOrder]], Sequence[Measured]]
TOPIC = "history"


def measured(order: CopyOrder) -> Measured:
    """The task of both sides."""
    before = time.process_time()
    return copy_order(order), time.process_time() - before


def prepared(
    source: LocalCluster, target: LocalCluster, folder: Path, number: int, at_once: int
) -> tuple[CopyOrder, ...]:
    """Ranges that are declared and fenced, into target topics nobody used before."""
    link = {
        "name": "bulk", "shape": "active-passive", "active": source.name, "passive": target.name,
        "topics": {"include": [TOPIC]}, "naming": {"template": f"r{number}.{{topic}}"},
    }  # fmt: skip
    document = {
        "apiVersion": "replicator/v1", "kind": "Topology", "metadata": {"name": f"bulk{number}"},
        "spec": {
            "clusters": {one.name: one.topology_entry() for one in (source, target)},
            "links": [link],
        },
    }  # fmt: skip
    file = folder / f"topology-{number}.yaml"
    file.write_text(json.dumps(document))
    plan = require_plan(file)
    clock = SystemClock()
    apply_plan(plan, clock=clock)
    found = survey(plan, plan.pairs[0])
    seeds = declarations(found, run="bench.1", by="bench", at_ms=round(time.time() * 1000))
    take_from_lanes(plan, found.pair, seeds, clock=clock)
    return orders(plan, found.pair, found.ranges, run="bench.1", at_once=at_once)


def outside(at_once: int) -> Copy:
    """Plain processes, started and warmed up before the time is taken."""

    def copy(wanted: Sequence[CopyOrder]) -> Sequence[Measured]:
        try:
            return pool.map(measured, wanted, chunksize=1)
        finally:
            pool.terminate()

    pool = multiprocessing.get_context("spawn").Pool(at_once)
    pool.map(_warm, range(at_once * 4), chunksize=1)
    return copy


def _warm(_number: int) -> None:
    """What a process does once and not per task: plain ones have imported everything by now."""
    importlib.import_module("replicator.spark.copy.task")
    time.sleep(0.5)  # long enough that every process gets one of these


def inside(at_once: int, copied: Callable[[str, Copy], None]) -> None:
    """Spark with as many workers, started and warmed up before the time is taken."""
    with spark_session(SparkSettings(master=f"local[{at_once}]"), name="bench") as session:
        session.sparkContext.parallelize(range(at_once * 2), at_once * 2).map(_warm).collect()
        context = session.sparkContext
        copied(
            f"Spark, local[{at_once}]",
            lambda wanted: context.parallelize(list(wanted), len(wanted)).map(measured).collect(),
        )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    machine = facts(command=command_line(), full=True)
    clusters = LocalCluster("east", jvm="throughput"), LocalCluster("west", jvm="throughput")
    start_all(clusters)
    source, target = clusters
    try:
        with tempfile.TemporaryDirectory(prefix="bench-bulk-") as name:
            fill(source, topic=TOPIC, records=given.records, size_bytes=given.size)
            number = 0

            def copied(label: str, copy: Copy) -> None:
                nonlocal number
                number += 1
                wanted = prepared(source, target, Path(name), number, at_once)
                began = time.monotonic()
                results = copy(wanted)
                seconds = time.monotonic() - began
                arrived = count(target, topic=f"r{number}.{TOPIC}", partitions=PARTITIONS)
                if arrived != sum(result.records for result, _ in results):
                    raise RuntimeError(f"{label}: {arrived} records arrived")
                cpu = sum(cpu_seconds for _, cpu_seconds in results) / arrived * 1e6
                rates.setdefault(label, []).append(arrived / seconds)
                costs.setdefault(label, []).append(cpu)
                print(f"{label}: {arrived / seconds:,.0f} records/s, {cpu:.2f} µs", flush=True)

            for _ in range(given.rounds):
                for at_once in (1, 2):
                    copied(f"outside, {at_once} processes", outside(at_once))
                    inside(at_once, copied)
    finally:
        for cluster in clusters:
            cluster.stop()
    print(f"\n{machine}\n- load average after: {os.getloadavg()[0]:.2f}\n")
    print("| who | records/s (median) | rounds | of the engine outside | CPU µs per record |")
    print("|---|---:|---|---:|---:|")
    for at_once in (1, 2):
        base = statistics.median(rates[f"outside, {at_once} processes"])
        for label in (f"outside, {at_once} processes", f"Spark, local[{at_once}]"):
            median = statistics.median(rates[label])
            rounds = ", ".join(f"{rate / 1000:,.0f}k" for rate in rates[label])
            cost = statistics.median(costs[label])
            print(f"| {label} | {median:,.0f} | {rounds} | {median / base:.2f} | {cost:.2f} |")


if __name__ == "__main__":
    main()
