"""Where figures come from: machine, versions, date, command."""

import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import confluent_kafka

import replicator
from replicator.testing.cluster.brokers.jars import broker_jars, find_java


def facts(*, command: str, full: bool) -> str:
    """A markdown list."""
    cores = os.cpu_count() or 1
    memory = re.search(r"MemTotal:\s+(\d+)", _read("/proc/meminfo"))
    model = re.search(r"model name\s*:\s*(.+)", _read("/proc/cpuinfo"))
    where = f"{model[1] if model else platform.machine()}, {cores} cores"
    gibibytes = int(memory[1]) / 1048576 if memory else 0
    short = "" if full else " (short run: fewer records and rounds, noisier)"
    clients = (
        f"confluent-kafka {confluent_kafka.version()}, librdkafka {confluent_kafka.libversion()[0]}"
    )
    lines = [
        f"Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; load average before: {os.getloadavg()[0]:.2f}",
        f"Machine: {where}, {gibibytes:.0f} GiB, Linux {platform.release()}",
        "Both brokers, writers, readers and the copier share the machine",
        f"Kafka and MirrorMaker 2: {broker_jars().version} on {_java()}",
        f"replicator {replicator.__version__} on CPython {platform.python_version()}, {clients}",
        f"Command: `{command}`{short}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def command_line() -> str:
    """This run, as it would be typed."""
    return " ".join(["python", f"tests/bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])


def _java() -> str:
    shown = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=False)
    lines = (shown.stderr or shown.stdout).splitlines()
    return lines[0] if lines else "Java"


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
