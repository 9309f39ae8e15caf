"""The commands as processes of their own: interrupted they end with 130 and say no more than that."""

import os
import signal
import subprocess
import sys

import pytest
from copied_pair import CopiedPair, plain, write

from replicator.testing import wait_until


@pytest.mark.slow
def test_an_interrupted_command_ends_with_130_and_leaves_nothing_running(
    tmp_path, east, west, unique
):
    pair = CopiedPair(tmp_path, unique, east, west)
    pair.apply()
    write(east, pair.topic, plain(100))
    folder = tmp_path / "archive"
    log = tmp_path / "log"
    with log.open("wb") as output:
        command = subprocess.Popen(
            [sys.executable, "-m", "replicator", "archive", "-f", str(pair.file),
             "--cluster", "east", "--topic", pair.topic, "--archive", str(folder),
             "--continuous", "--interval", "1"],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(
            lambda: "Archived 100 records" in log.read_text(),
            timeout_seconds=240,
            describe=lambda: f"a first commit\n{log.read_text()}",
        )
        os.killpg(command.pid, signal.SIGINT)
        assert command.wait(120) == 130
    finally:
        if command.poll() is None:
            os.killpg(command.pid, signal.SIGKILL)
            command.wait(30)
    said = log.read_text()
    assert "Traceback" not in said
    assert said.rstrip().endswith("Interrupted.")
    wait_until(
        lambda: not _in_session(command.pid),
        timeout_seconds=60,
        describe=lambda: f"processes {_in_session(command.pid)} to end",
    )


def _in_session(session):
    listing = subprocess.run(
        ["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    return [row[2] for row in rows if int(row[0]) == session and not row[1].startswith("Z")]
