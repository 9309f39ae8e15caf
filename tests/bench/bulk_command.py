"""``bulk-sync`` as people start it against a worker that copies the same history: time and CPU, start included.

``python tests/bench/bulk_command.py [--records N] [--size BYTES] [--rounds R] [--cores N]``

Once in processes of this machine, and once on Spark with a local master of as many cores. All take turns in one run, with both engines, each into topics of its own. CPU is that of the command and all it
starts (Python, Java, Python workers), or of the worker and its lane processes, until the last record is committed; the
brokers' is left out. ``copy`` is what the manifest calls ``seconds``: from the moment at which the lanes are asked for
the partitions; what comes before it is the start. Printed as a markdown table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from load import fill
from machine import command_line, facts
from usage import ProcessTree

from replicator.clock import SystemClock
from replicator.control.operator.apply import apply_plan
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.testing import LocalCluster, start_all
from replicator.topology.file.load import require_plan
from replicator.topology.plan import Plan

TOPIC = "history"
PROCESSES, SPARK = "bulk-sync in processes", "bulk-sync on Spark"
OTHER, WITH_CONF = "bulk-sync of the other checkout", "bulk-sync with --conf"
LOOK_SECONDS = 0.2
GIVE_UP_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Run:
    """One copy: seconds in all and of the copy alone, and CPU seconds."""

    seconds: float
    copy_seconds: float
    cpu_seconds: float


def applied(
    clusters: tuple[LocalCluster, LocalCluster], folder: Path, number: int, engine: str
) -> tuple[Path, Plan]:
    """A topology of its own, applied: nothing of it is copied yet."""
    source, target = clusters
    link = {
        "name": "bulk", "shape": "active-passive", "active": source.name, "passive": target.name,
        "topics": {"include": [TOPIC]}, "naming": {"template": f"r{number}.{{topic}}"},
        "engine": engine,
    }  # fmt: skip
    document = {
        "apiVersion": "replicator/v1", "kind": "Topology", "metadata": {"name": f"bulk{number}"},
        "spec": {
            "clusters": {one.name: one.topology_entry() for one in clusters},
            "links": [link],
        },
    }  # fmt: skip
    file = folder / f"topology-{number}.yaml"
    file.write_text(json.dumps(document))
    plan = require_plan(file)
    apply_plan(plan, clock=SystemClock())
    return file, plan


def by_command(file: Path, options: list[str], checkout: Path | None = None) -> Run:
    """The command, from its start to its end; that of another ``checkout`` where one is given."""
    manifest = file.with_suffix(".manifest")
    command = [
        sys.executable, "-m", "replicator", "bulk-sync", "-f", str(file), "--flow", "east->west",
        "--yes", "--manifest", str(manifest), *options,
    ]  # fmt: skip
    began = time.monotonic()
    environment = dict(os.environ)
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout)
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=checkout, env=environment)
    tree = ProcessTree(child.pid)
    while child.poll() is None:
        used = tree.usage()
        time.sleep(LOOK_SECONDS)
    seconds = time.monotonic() - began
    if child.returncode:
        raise RuntimeError(f"bulk-sync ended with {child.returncode}")
    return Run(seconds, json.loads(manifest.read_text())["seconds"], used.cpu_seconds)


def by_worker(file: Path, plan: Plan, records: int) -> Run:
    """A worker, from its start until its checkpoints cover everything."""
    began = time.monotonic()
    with file.with_suffix(".log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "replicator", "run", "-f", str(file), "--http", "127.0.0.1:0"],
            stdout=log, stderr=log,
        )  # fmt: skip
    tree = ProcessTree(child.pid)
    moving_at = 0.0
    try:
        while True:
            used = tree.usage()
            found = read_checkpoints(plan.topology, plan.pairs[0], client_id="bench")
            copied = sum(each.offset for each in found.values())
            now = time.monotonic()
            moving_at = moving_at or (now if copied else 0.0)
            if copied >= records:
                return Run(now - began, now - (moving_at or now), used.cpu_seconds)
            if child.poll() is not None or now - began > GIVE_UP_SECONDS:
                raise RuntimeError(f"the worker copied {copied} of {records} records")
            time.sleep(LOOK_SECONDS)
    finally:
        child.terminate()
        child.wait(30)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument(
        "--conf", action="append", default=[], help="another round of bulk-sync with it"
    )
    parser.add_argument("--other", type=Path, help="another checkout, measured beside this one")
    given = parser.parse_args()
    machine = facts(command=command_line(), full=True)
    extra = [part for each in given.conf for part in ("--conf", each)]
    master = ["--master", f"local[{given.cores}]"]
    runs: dict[str, list[Run]] = {}
    clusters = LocalCluster("east", jvm="throughput"), LocalCluster("west", jvm="throughput")
    start_all(clusters)
    try:
        with tempfile.TemporaryDirectory(prefix="bench-bulk-") as name:
            fill(clusters[0], topic=TOPIC, records=given.records, size_bytes=given.size)
            number = 0
            for _ in range(given.rounds):
                for engine in ("records", "batches"):
                    others = [OTHER] * (given.other is not None) + [WITH_CONF] * bool(extra)
                    for who in ("a worker", PROCESSES, SPARK, *others):
                        number += 1
                        file, plan = applied(clusters, Path(name), number, engine)
                        run = (
                            by_worker(file, plan, given.records)
                            if who == "a worker"
                            else by_command(
                                file,
                                []
                                if who == PROCESSES
                                else master + (extra if who == WITH_CONF else []),
                                given.other if who == OTHER else None,
                            )
                        )
                        runs.setdefault(f"{who}, {engine}", []).append(run)
                        print(f"{who}, {engine}: {run}", flush=True)
    finally:
        for cluster in clusters:
            cluster.stop()
    print(f"\n{machine}\n")
    print("| who | seconds in all | of it the copy | records/s in all | CPU s |")
    print("|---|---:|---:|---:|---:|")
    for label, done in runs.items():
        seconds = statistics.median(each.seconds for each in done)
        copy = statistics.median(each.copy_seconds for each in done)
        cpu = statistics.median(each.cpu_seconds for each in done)
        print(
            f"| {label} | {seconds:.1f} | {copy:.1f} | {given.records / seconds:,.0f} | {cpu:.1f} |"
        )


if __name__ == "__main__":
    main()
