"""The commands as processes of their own: interrupted they end with 130 and say no more than that."""

import os
import signal
import subprocess
import sys
import time

import pytest
from copied_pair import CopiedPair, plain, write

from replicator.cli.main import run_command
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.spark.archive_files.manifest import (
    ArchivedRange,
    ArchivedTopic,
    Commit,
    manifest_name,
)
from replicator.testing import wait_until
from replicator.testing.cluster.topics import delete_topic


class Command:
    """A command in a session of its own, as a terminal starts one."""

    def __init__(self, log, *arguments, program=("-m", "replicator")):
        self._log = log
        with log.open("wb") as output:
            self._child = subprocess.Popen(
                [sys.executable, *program, *map(str, arguments)],
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def said(self):
        return self._log.read_text()

    def interrupted(self):
        """Ctrl-C reaches every process of the terminal; the exit code."""
        os.killpg(self._child.pid, signal.SIGINT)
        return self._child.wait(120)

    def signalled(self, number):
        """Sends a signal to the command alone, as a supervisor does; the exit code."""
        self._child.send_signal(number)
        return self._child.wait(5)

    def end(self):
        if self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait(30)

    def left(self):
        """What still runs of it."""
        listing = subprocess.run(
            ["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split(None, 2) for line in listing.splitlines()]
        session = self._child.pid
        return [row[2] for row in rows if int(row[0]) == session and not row[1].startswith("Z")]

    def starts_java(self):
        return any("java" in each for each in self.left())


@pytest.fixture
def command(tmp_path):
    started = []

    def start(*arguments):
        started.append(Command(tmp_path / "log", *arguments))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def pair(tmp_path, east, west, unique):
    """An applied flow, slow enough to be interrupted."""
    pair = CopiedPair(tmp_path, unique, east, west, throttle={"recordsPerSecond": 50})
    pair.apply()
    return pair


def interrupt(command):
    """Interrupts it, and looks at how it ends."""
    assert command.interrupted() == 130
    said = command.said()
    assert "Traceback" not in said
    assert said.rstrip().endswith("Interrupted.")
    wait_until(
        lambda: not command.left(),
        timeout_seconds=60,
        describe=lambda: f"processes {command.left()} to end",
    )


SLOW_JOB = """
import sys
import time
from replicator.spark.session.session import spark_session
from replicator.spark.session.settings import SparkSettings
reached = sys.argv[1]
def slow(batches):
    import time
    for batch in batches:
        open(reached, "w").close()
        time.sleep(600)
        yield batch
try:
    with spark_session(SparkSettings(master="local[2]"), name="slow") as session:
        session.range(2).mapInArrow(slow, "id bigint").collect()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("moment", ["starting", "running"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_jvm_and_the_python_workers_within_five_seconds(
    tmp_path, moment, number, code
):
    reached = tmp_path / "reached"
    running = Command(tmp_path / "log", reached, program=["-c", SLOW_JOB])
    try:
        wait_until(
            running.starts_java if moment == "starting" else reached.exists,
            timeout_seconds=120,
            describe=lambda: f"Spark to be {moment}\n{running.said()}",
        )
        deadline = time.monotonic() + 5
        assert running.signalled(number) == code
        wait_until(
            lambda: not running.left(),
            timeout_seconds=max(0.0, deadline - time.monotonic()),
            describe=lambda: f"processes {running.left()} to end",
        )
        assert not running.said()
    finally:
        running.end()


def test_what_is_wrong_with_a_command_is_reported_before_spark_starts(
    tmp_path, pair, monkeypatch, capsys
):
    archive = tmp_path / "archive"
    (archive / "_manifest").mkdir(parents=True)
    topic = ArchivedTopic(pair.topic, "id", 1, {})
    made = Commit(1, "append", 0, "east", "id", (ArchivedRange(pair.topic, 0, 0, 1, 1),),
                  topics=(topic,))  # fmt: skip
    (archive / "_manifest" / manifest_name(1)).write_text(made.to_json())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # with it Spark cannot start
    flow = ["--flow", "east->west"]
    restore = ["restore", "--cluster", "west", "--archive"]
    for arguments, said in (
        (["verify", "--flow", "x->y"], "no flow 'x->y'"),
        (["audit", "--flow", "x->y"], "no flow 'x->y'"),
        (["bulk-sync", "--flow", "x->y"], "no flow 'x->y'"),
        (["stream", "--flow", "x->y"], "no flow 'x->y'"),
        (["verify", *flow, "--topic", "nope"], "does not replicate nope"),
        (["audit", *flow, "--topic", "nope"], "does not replicate nope"),
        (["bulk-sync", *flow, "--topic", "nope"], "no topic 'nope'"),
        (["stream", *flow], "workers run its links"),
        (["archive", "--cluster", "east", "--archive", "x", "--topic", "nope"], "no such topic: nope"),
        (["archive", "--cluster", "x", "--archive", "x", "--topic", "t"], "no cluster 'x'"),
        ([*restore, str(tmp_path / "x")], "there is no archive here"),
        ([*restore, str(archive), "--topic", "nope"], "the archive has no topic nope"),
    ):  # fmt: skip
        capsys.readouterr()
        assert run_command([*arguments, "-f", str(pair.file)]) == 2, arguments
        assert said in capsys.readouterr().err
    assert run_command(["verify", *flow, "-f", str(pair.file)]) == 1
    assert f"JAVA_HOME is {tmp_path}, where there is no bin/java" in capsys.readouterr().err


def test_a_deleted_target_topic_is_named_before_history_is_copied(pair, capsys):
    east, west = pair.east, pair.west
    records = plain(20)
    write(east, pair.topic, records)
    write(west, pair.topic, pair.copies_of(records))
    pair.checkpoint(copied_to=20, pairs=((0, 0), (19, 19)))
    command = ["bulk-sync", "-f", str(pair.file), "--flow", "east->west", "--yes"]
    assert run_command(command) == 0
    assert "Nothing to copy" in capsys.readouterr().out
    delete_topic(west.admin(), name=pair.topic)
    assert run_command(command) == 3
    assert f"{pair.topic} was deleted: what the flow" in capsys.readouterr().err
    west.create_topic(pair.topic, partitions=1)
    assert run_command(command) == 3
    assert f"{pair.topic} was deleted and created again" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupted_command_ends_with_130_and_leaves_nothing_running(tmp_path, pair, command):
    write(pair.east, pair.topic, plain(100))
    running = command(
        "archive", "-f", pair.file, "--cluster", "east", "--topic", pair.topic,
        "--archive", tmp_path / "archive", "--continuous", "--interval", "1",
    )  # fmt: skip
    wait_until(
        lambda: "Archived 100 records" in running.said(),
        timeout_seconds=240,
        describe=lambda: f"a first commit\n{running.said()}",
    )
    interrupt(running)


@pytest.mark.slow
def test_an_interrupted_copy_ends_its_tasks_and_can_be_given_back(pair, command, capsys):
    write(pair.east, pair.topic, plain(50_000))
    running = command("bulk-sync", "-f", pair.file, "--flow", "east->west", "--yes")

    def copied():
        found = read_checkpoints(pair.plan.topology, pair.plan.pairs[0], client_id="test")
        return max((each.offset for each in found.values()), default=0)

    wait_until(copied, timeout_seconds=240, describe=lambda: f"the copy to begin\n{running.said()}")
    interrupt(running)
    assert 0 < copied() < 50_000
    release = ["bulk-sync", "-f", str(pair.file), "--flow", "east->west", "--release"]
    assert run_command(release) == 0
    assert "Returned to the workers: 1 partition." in capsys.readouterr().out
