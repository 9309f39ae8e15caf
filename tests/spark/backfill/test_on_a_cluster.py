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
RECORDS = 100_000
PARTITIONS = 4
TRANSFORMS = ["house_masks:mask"]
SLOWLY = {"recordsPerSecond": RECORDS // 20}
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
    lab.applied(transforms=TRANSFORMS)
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
def test_history_is_copied_compared_and_audited_though_executors_are_lost(
    cluster, masked, tmp_path
):
    lab, flow = masked, ["-f", masked.file, "--flow", FLOW, "--ship"]
    lab.topology(transforms=TRANSFORMS, throttle=SLOWLY)
    manifest = tmp_path / "manifest.json"
    bulk = Run(cluster, tmp_path, "bulk-sync", *flow, "--yes", "--manifest", manifest)
    copied_some = lambda: sum(lab.positions().values()) > RECORDS // 20  # noqa: E731
    assert bulk.loses_an_executor(after=copied_some).ended() == 0, bulk.said()
    assert json.loads(manifest.read_text())["records"] == RECORDS
    assert as_masked(lab) == lab.values(lab.target)

    lab.topology(transforms=TRANSFORMS)
    verify = Run(cluster, tmp_path, "verify", *flow, "--report", tmp_path / "report")
    assert verify.loses_an_executor().ended() == 0, verify.said()
    assert f"Both clusters agree: {RECORDS:,} records" in verify.said()
    assert "no differences. Report: " in verify.said()

    audit = Run(cluster, tmp_path, "audit", *flow)
    assert audit.loses_an_executor().ended() == 0, audit.said()
    assert "Complete: 100 %" in audit.said()


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_history_is_archived_and_restored_though_executors_are_lost(cluster, masked, tmp_path):
    lab = masked
    words = ["--archive", tmp_path / "archive", "--topic", lab.topic, "-f", lab.file, "--ship"]
    archive = Run(cluster, tmp_path, "archive", "--cluster", "east", *words)
    assert archive.loses_an_executor().ended() == 0, archive.said()
    assert f"Archived {RECORDS:,} records" in archive.said()
    again = f"again.{lab.topic}"
    restore = Run(cluster, tmp_path, "restore", "--cluster", "west", *words, "--as", again)
    assert restore.loses_an_executor().ended() == 0, restore.said()
    assert f"Restored {RECORDS:,} records" in restore.said()
    assert lab.values(lab.target, again) == lab.values(lab.source)


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_a_flow_is_streamed_though_an_executor_is_lost(cluster, masked, tmp_path):
    lab = masked
    lab.topology(transforms=TRANSFORMS, runtime="spark", throttle=SLOWLY)
    flow = ["-f", lab.file, "--flow", FLOW, "--ship"]
    stream = Run(cluster, tmp_path, "stream", *flow, "--interval", "1")
    copied = lambda: sum(lab.positions().values())  # noqa: E731
    stream.loses_an_executor(after=lambda: copied() > RECORDS // 20)
    wait_until(
        lambda: copied() >= RECORDS,
        timeout_seconds=400,
        describe=lambda: f"all to be copied, not {copied()}\n{stream.said()}",
    )
    assert stream.signalled(signal.SIGTERM).ended() == 143
    assert as_masked(lab) == lab.values(lab.target)
    assert "ended, its partitions are returned" in stream.said()


def as_masked(lab):
    return {
        number: [value.replace(b"x", b"y") for value in values]
        for number, values in lab.values(lab.source).items()
    }
