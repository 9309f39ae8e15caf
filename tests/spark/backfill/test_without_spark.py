"""``bulk-sync`` without a Spark master: processes of this machine copy, and no Java is needed."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from acceptance_worker import WorkerProcess
from seed_lab import SeedLab
from whole_topic import engine_of_newest, read_topic

from replicator.cli.main import run_command
from replicator.control.status.translator import open_translator
from replicator.offsets.index.paths import translation_paths
from replicator.spark.session.processes import child_processes
from replicator.spark.verify.run import VerifyRequest, verify_flow
from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child

FLOW = "east->west"
TASK = b"replicator.spark.copy.task_process"


def copying_processes(driver):
    """Process ids of a driver's tasks."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == driver and TASK in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def runs(pid):
    return Path(f"/proc/{pid}").exists()


def test_history_is_copied_exactly_once_without_java(lab: SeedLab, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # with it Spark cannot start
    lab.source.create_topic(lab.topic, partitions=3)
    lab.produce(3_000, partitions=3)
    lab.applied()
    manifest, before = tmp_path / "manifest.json", child_processes()
    command = ["bulk-sync", "-f", str(lab.file), "--flow", FLOW, "--yes"]
    assert run_command([*command, "--manifest", str(manifest)]) == 0
    told = json.loads(manifest.read_text())
    assert told["records"] == 3_000
    assert told["master"].startswith("processes[")
    assert lab.values(lab.target) == lab.values(lab.source)
    assert set(lab.states().values()) == {"done"}
    assert "3,000 records" in capsys.readouterr().out
    assert child_processes() == before


@pytest.mark.slow
def test_a_killed_process_and_a_killed_command_cost_no_record(lab: SeedLab, tmp_path):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(20_000, size=50)
    lab.applied(throttle={"recordsPerSecond": 4_000})
    command = [sys.executable, "-m", "replicator", "bulk-sync", "-f", lab.file, "--flow", FLOW]
    log = tmp_path / "log"
    child = start_child([*command, "--yes"], output=log)

    def copied(more_than):
        wait_until(
            lambda: sum(lab.positions().values()) > more_than,
            timeout_seconds=60,
            describe=lambda: f"more than {more_than} records\n{log.read_text()}",
        )

    copied(0)
    (task,) = copying_processes(child.pid)
    os.kill(task, signal.SIGKILL)
    copied(sum(lab.positions().values()))
    (task,) = copying_processes(child.pid)
    child.kill()
    wait_until(
        lambda: not runs(task),
        timeout_seconds=20,
        describe="the end of the process whose driver is gone",
    )
    assert set(lab.states().values()) == {"seeding"}
    before = sum(lab.positions().values())
    assert 0 < before < 20_000
    lab.topology()
    again = start_child([*command, "--yes"], output=log)
    assert again.wait(120), log.read_text()
    assert again.exit_code() == 0, log.read_text()
    assert lab.values(lab.target) == lab.values(lab.source)


@pytest.mark.slow
def test_a_signal_ends_the_command_and_its_processes(lab: SeedLab, tmp_path):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(5_000)
    lab.applied(throttle={"recordsPerSecond": 100})
    command = [sys.executable, "-m", "replicator", "bulk-sync", "-f", lab.file, "--flow", FLOW]
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        log = tmp_path / f"log-{code}"
        child = start_child([*command, "--yes"], output=log)
        wait_until(
            lambda child=child: copying_processes(child.pid),
            timeout_seconds=60,
            describe=lambda log=log: f"a process that copies\n{log.read_text()}",
        )
        tasks = copying_processes(child.pid)
        child.signal(number)
        assert child.wait(10), log.read_text()
        assert child.exit_code() == code, log.read_text()
        assert "Traceback" not in log.read_text()
        assert not any(map(runs, tasks))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_history_and_what_lanes_copy_behind_it_are_one_copy_by_default(
    spark, lab: SeedLab, tmp_path
):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(2_000, size=20)
    plan = lab.applied(engine="auto")
    assert run_command(["bulk-sync", "-f", str(lab.file), "--flow", FLOW, "--yes"]) == 0
    seam = max(lab.positions().values())
    lab.produce(500, first=2_000)
    worker = WorkerProcess(lab.file, log=tmp_path / "worker.log", options=("--processes", "1"))
    try:
        lab.until(
            lambda: lab.positions().get((lab.topic, 0), 0) >= 2_500,
            lambda: f"what lanes copy\n{worker.log_tail()}",
        )
    finally:
        worker.end()
    assert engine_of_newest(lab.target, lab.topic) == "batches"
    source, copies = (
        {each.value(): each.offset() for each in read_topic(cluster, lab.topic)}
        for cluster in (lab.source, lab.target)
    )
    assert source.keys() == copies.keys()
    (path,) = translation_paths(plan, "east", "west", lab.topic, 0)
    with contextlib.closing(open_translator(plan, client_id="test")) as translator:
        translator.refresh([path])
        for value, offset in source.items():
            if offset % 97 == 0 or abs(offset - seam) < 5:  # also on either side of the seam
                answer = translator.cross(path, offset)
                assert (answer.grade, answer.offset) == ("exact", copies[value]), (offset, answer)
    result = verify_flow(spark, plan, VerifyRequest(FLOW))
    assert (result["clean"], result["total"]["compared"]) == (True, 2_500), result
