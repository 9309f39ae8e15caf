"""Every command on a standalone cluster whose executors have nothing, one of them killed in the middle."""

import json
import os
import signal
import sys

import pytest
from seed_lab import SeedLab
from standalone_spark import StandaloneSpark

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child

FLOW = "east->west"
RECORDS = 120_000
PARTITIONS = 4
MASKS = """
from dataclasses import replace

def mask(record):
    return replace(record, value=record.value.replace(b"x", b"y"))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = StandaloneSpark(tmp_path_factory.mktemp("standalone"))
    yield cluster
    cluster.close()


class Run:
    """A command on the cluster."""

    def __init__(self, cluster, folder, *words):
        self._cluster = cluster
        self._log = folder / f"{words[0]}.log"
        self._child = start_child(
            [sys.executable, "-m", "replicator", *words, *cluster.options],
            output=self._log,
            environment={"PYTHONPATH": str(folder), "COLUMNS": "200"},
        )

    def said(self):
        return self._log.read_text()

    def loses_an_executor(self, *, after=lambda: True):
        """Kills one that works, once the condition holds."""
        busy: list[str] = []

        def working():
            assert self._child.exit_code() is None, f"{self.said()}\n{self._cluster.seen}"
            busy[:] = self._cluster.busy_executors() if after() else []
            return bool(busy)

        wait_until(
            working, timeout_seconds=240, describe=lambda: f"an executor at work\n{self.said()}"
        )
        self._cluster.kill_executor(busy[0])
        assert self._child.exit_code() is None, self.said()
        return self

    def signalled(self, number):
        self._child.signal(number)
        return self

    def ended(self):
        assert self._child.wait(400), self.said()
        assert "Traceback" not in self.said()
        return self._child.exit_code()


@pytest.fixture
def masked(lab: SeedLab, monkeypatch):
    """History behind a transform that only this machine has."""
    (lab.folder / "house_masks.py").write_text(MASKS)
    monkeypatch.syspath_prepend(str(lab.folder))
    lab.source.create_topic(lab.topic, partitions=PARTITIONS)
    lab.produce(RECORDS, partitions=PARTITIONS, size=80)
    lab.applied(transforms=["house_masks:mask"])
    return lab


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_executors_lack_is_named_before_anything_is_taken_from_the_workers(cluster, lab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(100)
    lab.applied()
    run = Run(cluster, lab.folder, "bulk-sync", "-f", lab.file, "--flow", FLOW, "--yes")
    assert run.ended() == 2
    said = run.said()
    assert "Spark's executors have no confluent-kafka, cramjam" in said
    assert f"on {os.uname().nodename}" in said
    assert "--ship" in said
    assert lab.states() == {}


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_each_command_survives_the_loss_of_an_executor_and_ships_what_tasks_need(
    cluster, masked, tmp_path
):
    lab, file = masked, masked.file
    flow = ["-f", file, "--flow", FLOW, "--ship"]

    def copied():
        return sum(lab.positions().values())

    def started(*words):
        return Run(cluster, tmp_path, *words)

    lab.topology(transforms=["house_masks:mask"], throttle={"recordsPerSecond": RECORDS // 20})
    manifest = tmp_path / "manifest.json"
    bulk = started("bulk-sync", *flow, "--yes", "--manifest", manifest)
    assert bulk.loses_an_executor(after=lambda: copied() > RECORDS // 20).ended() == 0, bulk.said()
    assert json.loads(manifest.read_text())["records"] == RECORDS
    lab.topology(transforms=["house_masks:mask"])

    verify = started("verify", *flow, "--report", tmp_path / "report")
    assert verify.loses_an_executor().ended() == 0, verify.said()
    assert f"Both clusters agree: {RECORDS:,} records" in verify.said()

    audit = started("audit", *flow)
    assert audit.loses_an_executor().ended() == 0, audit.said()
    assert "Complete: 100 %" in audit.said()

    archive = ["--archive", tmp_path / "archive", "--topic", lab.topic, "-f", file, "--ship"]
    written = started("archive", "--cluster", "east", *archive)
    assert written.loses_an_executor().ended() == 0, written.said()
    assert f"Archived {RECORDS:,} records" in written.said()

    again = f"again.{lab.topic}"
    restored = started("restore", "--cluster", "west", *archive, "--as", again)
    assert restored.loses_an_executor().ended() == 0, restored.said()
    assert f"Restored {RECORDS:,} records" in restored.said()
    assert lab.values(lab.target, again) == lab.values(lab.source)

    lab.topology(transforms=["house_masks:mask"], runtime="spark",
                 throttle={"recordsPerSecond": RECORDS // 20})  # fmt: skip
    lab.produce(RECORDS, partitions=PARTITIONS, size=80, first=RECORDS)
    stream = started("stream", *flow, "--interval", "1")
    stream.loses_an_executor(after=lambda: copied() > RECORDS + RECORDS // 20)
    wait_until(
        lambda: copied() >= 2 * RECORDS,
        timeout_seconds=300,
        describe=lambda: f"all to be copied, not {copied()}\n{stream.said()}",
    )
    assert stream.signalled(signal.SIGTERM).ended() == 143
    masks = [
        value.replace(b"x", b"y") for part in lab.values(lab.source).values() for value in part
    ]
    copies = [value for part in lab.values(lab.target).values() for value in part]
    assert copies == masks
