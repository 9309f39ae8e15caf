"""Drills as a person runs them: the real command, clusters of its own, the report and what is left."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replicator.testing import wait_until

LIMIT_SECONDS = 280.0
DRILL = """\
apiVersion: replicator/v1
kind: Drill
metadata: {{name: rehearsal}}
spec:
  link: orders-dr
  kind: {kind}
  load: {{recordsPerSecond: 100, before: 1s, after: 1s}}
  fault: {{{fault}}}
  limits: {{{limits}}}
"""
LIMITS = "maxRtoSeconds: 60, maxLostRecords: 0, maxReread: 0"


def command(directory: Path, *arguments: str) -> list[str]:
    return [
        sys.executable, "-m", "replicator", "drill", *arguments,
        "--reports", str(directory / "reports"),
    ]  # fmt: skip


def run_drill(directory: Path, *, kind: str, fault: str = "", limits: str = LIMITS):
    """Runs a drill in a sandbox to its end: exit code, report, everything it said."""
    temporary = directory / "tmp"
    temporary.mkdir()
    file = directory / "drill.yaml"
    file.write_text(DRILL.format(kind=kind, fault=fault, limits=limits))
    done = subprocess.run(
        command(directory, "run", str(file), "--sandbox", "-o", "json"),
        capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, cwd=directory,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONWARNINGS": "error::ResourceWarning"},
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    left = [path.name for path in temporary.iterdir() if not path.name.startswith("hsperfdata")]
    assert left == [], done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def asked(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        command(directory, *arguments), capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_a_network_cut_is_rehearsed_measured_judged_and_reported(tmp_path):
    code, report, said = run_drill(tmp_path, kind="network-cut", fault="duration: 3s, workers: 1")
    assert (code, report["verdict"]) == (0, "pass"), said
    # The cut itself is part of the interruption, and the link comes back by itself.
    assert 2.5 < report["rtoSeconds"] < 60
    assert report["lostRecords"] == report["rereadRecords"] == report["skippedRecords"] == 0
    assert report["history"]["clean"]
    assert report["history"]["counts"]["acknowledged"] > 300
    (group,) = report["groups"]
    assert group["delivered"] >= report["history"]["counts"]["acknowledged"]
    assert {"network cut", "fault ends", "recovery"} <= {each["step"] for each in report["steps"]}
    assert all(sum(report["timeline"][name]) > 300 for name in ("writes", "copies", "reads"))
    shown = asked(tmp_path, "report", "last")
    assert "PASSED" in shown
    assert max(len(line) for line in shown.splitlines() if "drill-" not in line) < 100
    assert json.loads(asked(tmp_path, "verify", "-o", "json"))["intact"]
    (page,) = (tmp_path / "reports").glob("*.html")
    assert report["checksum"] in page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["black-hole", "refuse"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_every_kind_of_cut_heals_without_a_lost_or_repeated_record(tmp_path, side, how):
    code, _, said = run_drill(
        tmp_path, kind="network-cut", fault=f"duration: 8s, side: {side}, how: {how}"
    )
    assert code == 0, said


@pytest.mark.slow
def test_a_crashed_workers_lanes_move_again_within_the_limit(tmp_path):
    code, report, said = run_drill(tmp_path, kind="worker-crash")
    assert code == 0, said
    assert report["rtoSeconds"] > 1


@pytest.mark.slow
def test_a_switchover_is_rehearsed_without_a_lost_or_repeated_record(tmp_path):
    code, report, said = run_drill(tmp_path, kind="switchover")
    assert code == 0, said
    assert report["transition"]["outcome"] == "done"
    assert {"fence", "promote"} <= {e["step"] for e in report["steps"] if e["part"] == "roles"}
    assert report["interruptions"]["writesSeconds"] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("how", ["black-hole", "kill"])
def test_a_failover_is_rehearsed_with_the_active_side_gone(tmp_path, how):
    code, report, said = run_drill(
        tmp_path, kind="failover", fault=f"how: {how}",
        limits="maxRtoSeconds: 60, maxLostRecords: 500, maxReread: 2000",
    )  # fmt: skip
    assert code == 0, said
    assert report["transition"]["outcome"] == "done"
    assert report["skippedRecords"] == 0
    stated = next(each for each in report["checks"] if each["check"] == "statedLoss")
    assert stated["measured"] == report["lostRecords"]


@pytest.mark.slow
def test_a_limit_that_is_not_met_fails_the_drill(tmp_path):
    code, report, said = run_drill(
        tmp_path, kind="network-cut", fault="duration: 4s", limits="maxRtoSeconds: 1"
    )
    assert (code, report["verdict"]) == (1, "fail"), said
    assert [each["check"] for each in report["checks"] if not each["ok"]] == ["maxRtoSeconds"]


@pytest.mark.slow
def test_ctrl_c_ends_a_drill_and_leaves_its_report_and_nothing_else_behind(tmp_path):
    file = tmp_path / "drill.yaml"
    file.write_text(DRILL.format(kind="network-cut", fault="duration: 5m", limits=LIMITS))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    log = tmp_path / "log"
    with log.open("w") as sink:
        running = subprocess.Popen(
            command(tmp_path, "run", str(file), "--sandbox"),
            stdout=sink, stderr=subprocess.STDOUT, cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(temporary)},
        )  # fmt: skip
        try:
            wait_until(
                lambda: "cut lasts" in log.read_text(),
                timeout_seconds=LIMIT_SECONDS,
                describe=log.read_text,
            )
            running.send_signal(signal.SIGINT)
            assert running.wait(90) == 130, log.read_text()
        finally:
            running.kill()
            running.wait()
    left = [path.name for path in temporary.iterdir() if not path.name.startswith("hsperfdata")]
    assert left == []
    report = json.loads(asked(tmp_path, "report", "last", "-o", "json"))
    assert (report["verdict"], report["aborted"]) == ("fail", "interrupt")
    done = {each["step"]: each for each in report["steps"]}
    assert done["steady state"]["ok"]
    assert (done["cut lasts"]["ok"], done["cut lasts"]["result"]) == (False, "interrupted")
    assert done["fault ends"]["ok"]
    assert report["checks"][0]["detail"] == "aborted by hand."
    assert report["lostRecords"] == 0  # what was under way arrived once the fault had ended
    assert "ABORTED" in asked(tmp_path, "report", "last")
    assert json.loads(asked(tmp_path, "verify", "-o", "json"))["intact"]
