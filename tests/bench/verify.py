"""Comparing both sides of a flow by ``verify``: how long, with how much memory, on one core and on two.

``python tests/bench/verify.py [--records N] [--rounds R] [--size BYTES]``

The copy is made by the product's own task. Each round is the command as people start it; its seconds are
those it tells itself, without the start of Spark. CPU and memory are of the command and all it starts
(Python, Java, Python workers), the brokers' left out. Printed as a markdown table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bulk import TOPIC, outside, prepared
from load import fill
from machine import command_line, facts
from usage import ProcessTree

from replicator.testing import LocalCluster, start_all

LOOK_SECONDS = 0.5
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Round:
    """One comparison."""

    seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    compared: int


def compare(topology: Path, cores: int) -> Round:
    """Runs the command and watches it.

    Raises:
        RuntimeError: it found a difference, or failed.
    """
    command = [sys.executable, "-m", "replicator", "verify", "-f", str(topology)]
    command += ["--flow", "east->west", "--master", f"local[{cores}]", "-o", "json"]
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out)
        tree = ProcessTree(child.pid)
        while True:
            tree.usage()
            try:
                code = child.wait(LOOK_SECONDS)
                break
            except subprocess.TimeoutExpired:
                continue
        out.seek(0)
        told = out.read()
    if code != 0:
        raise RuntimeError(f"verify ended with {code}: {told.decode(errors='replace')[:500]}")
    result = json.loads(told)
    used = tree.usage()
    return Round(
        result["seconds"], used.cpu_seconds, used.peak_rss_bytes, result["total"]["compared"]
    )


def table(rounds: dict[int, Sequence[Round]]) -> str:
    """Medians by number of cores."""
    lines = [
        "| who | seconds (median) | rounds | records/s of each side | CPU s, with start | peak memory |",
        "|---|---:|---|---:|---:|---:|",
    ]
    for cores, done in rounds.items():
        seconds = statistics.median(each.seconds for each in done)
        lines.append(
            f"| local[{cores}] | {seconds:.1f} | {', '.join(f'{r.seconds:.0f}' for r in done)} "
            f"| {done[0].compared / seconds:,.0f} "
            f"| {statistics.median(each.cpu_seconds for each in done):.0f} "
            f"| {max(each.peak_rss_bytes for each in done) / MEBIBYTE:,.0f} MiB |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    machine = facts(command=command_line(), full=True)
    clusters = LocalCluster("east", jvm="throughput"), LocalCluster("west", jvm="throughput")
    start_all(clusters)
    source, target = clusters
    rounds: dict[int, list[Round]] = {1: [], 2: []}
    try:
        with tempfile.TemporaryDirectory(prefix="bench-verify-") as name:
            fill(source, topic=TOPIC, records=given.records, size_bytes=given.size)
            began = time.monotonic()
            outside(2)(prepared(source, target, Path(name), 1, 2))
            print(f"copied in {time.monotonic() - began:.0f} s", flush=True)
            for _ in range(given.rounds):
                for cores, done in rounds.items():
                    done.append(compare(Path(name) / "topology-1.yaml", cores))
                    print(f"local[{cores}]: {done[-1]}", flush=True)
    finally:
        for cluster in clusters:
            cluster.stop()
    print(f"\n{machine}\n- load average after: {os.getloadavg()[0]:.2f}\n")
    print(table(rounds))


if __name__ == "__main__":
    main()
