"""The demo as a person runs it: the real command, real clusters, its exit code and what it leaves."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from replicator.testing import wait_until

LIMIT_SECONDS = 240.0


class Running:
    """A demo under way, with everything it has printed so far."""

    def __init__(self, *arguments: str, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "replicator", "demo", "--no-wait", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(directory), "NO_COLOR": "1"},
        )
        self.directory = directory
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with self.process.stdout as stdout:
            self.lines.extend(iter(stdout.readline, ""))

    @property
    def text(self) -> str:
        return " ".join("".join(self.lines).split())

    def wait_for(self, words: str) -> None:
        def said() -> bool:
            assert self.process.poll() is None or words in self.text, self.text
            return words in self.text

        wait_until(said, timeout_seconds=LIMIT_SECONDS, describe=f"'{words}' in the demo's output")

    def end(self) -> int:
        code = self.process.wait(LIMIT_SECONDS)
        self._reader.join()
        return code

    def partitions_left_behind(self) -> list[str]:
        pids = map(int, re.findall(r"\(pid (\d+)\)", self.text))
        files = [path.name for path in self.directory.iterdir() if path.name != "hsperfdata_root"]
        return [*(f"process {pid}" for pid in pids if Path(f"/proc/{pid}").exists()), *files]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(*arguments: str) -> Running:
        started.append(Running(*arguments, directory=tmp_path))
        return started[-1]

    yield start
    for each in started:
        with contextlib.suppress(ProcessLookupError):
            each.process.kill()
        each.end()


def test_the_demo_proves_exactly_once_over_a_killed_worker_and_leaves_nothing(demo):
    shown = demo("--shape", "active-active", "--seconds", "4")

    assert shown.end() == 0, shown.text
    assert "replicator-hops: east/orders/" in shown.text
    assert "SIGKILL to worker-" in shown.text
    assert "all of them move again" in shown.text
    assert "verdict: every record is on each cluster exactly once" in shown.text
    assert "drained after SIGTERM" in shown.text
    assert shown.partitions_left_behind() == []


@pytest.mark.slow
def test_a_record_that_nobody_wrote_makes_the_demo_fail(demo):
    shown = demo("--shape", "active-passive", "--seconds", "4")
    shown.wait_for("records are copied")
    west = re.search(r"west (127\.0\.0\.1:\d+)", shown.text)[1]
    intruder = Producer({"bootstrap.servers": west})
    intruder.produce("orders", b"planted", partition=0)
    assert intruder.flush(30) == 0

    assert shown.end() == 1, shown.text
    assert "phantom: 1" in shown.text
    assert "verdict: NOT CLEAN" in shown.text
    assert shown.partitions_left_behind() == []


def test_ctrl_c_stops_everything_and_exits_130(demo):
    shown = demo("--seconds", "60")
    shown.wait_for("workers started")
    shown.process.send_signal(signal.SIGINT)

    assert shown.end() == 130, shown.text
    assert "nothing is left behind" in shown.text
    assert shown.partitions_left_behind() == []
