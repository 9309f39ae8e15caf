"""The child that copies history: started while wanted, restarted with patience, ended with its pair."""

import pytest

from replicator.control.backfill.spark_process import SparkProcess
from replicator.testing import ManualClock, wait_until


@pytest.fixture
def child(tmp_path, monkeypatch):
    """A child whose program each test writes."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = []

    def make(program):
        (tmp_path / "stand_in.py").write_text(program)
        clock = ManualClock()
        made.append(
            SparkProcess(
                entry_module="stand_in", topology_file=tmp_path / "t.yaml", flow="east->west",
                clock=clock,
            )
        )  # fmt: skip
        return made[-1], clock

    yield make
    for each in made:
        each.close()


def test_a_child_that_fails_says_why_and_is_tried_again_later(child, tmp_path):
    counted, clock = child(
        "import pathlib, sys\n"
        f"file = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        "file.write_text((file.read_text() if file.exists() else '') + ' '.join(sys.argv[1:]) + '\\n')\n"
        "sys.stderr.write('No Java. Install it.\\n')\n"
        "sys.exit(1)\n"
    )
    problem = wait_until(  # its end may be seen before its words are
        lambda: (said := counted.keep(wanted=True)) and "No Java" in said.message and said,
        timeout_seconds=20,
        describe="the reason of a child that failed",
    )
    runs = tmp_path / "runs"
    assert "Install it" in problem.message
    assert "bulk-sync --flow 'east->west'" in problem.remedy
    assert runs.read_text().split() == [str(tmp_path / "t.yaml"), "east->west"]
    assert counted.keep(wanted=True) is not None
    assert len(runs.read_text().splitlines()) == 1  # not before its time
    clock.advance(3.0)
    counted.keep(wanted=True)
    wait_until(
        lambda: len(runs.read_text().splitlines()) == 2, timeout_seconds=20, describe="a second run"
    )


def test_a_child_is_left_to_finish_and_ended_when_another_worker_takes_over(child):
    counted, _ = child("import sys\nsys.stdin.read()\n")
    assert counted.keep(wanted=True) is None
    process = counted._child
    assert process is not None
    assert process.poll() is None
    counted.keep(wanted=False)
    assert process.poll() is None  # its work may be done, and it ends by itself
    counted.end()
    wait_until(lambda: process.poll() is not None, timeout_seconds=20, describe="the child's end")
    assert counted.keep(wanted=False) is None


def test_a_child_ends_when_its_worker_does(child):
    counted, _ = child("import sys\nsys.stdin.read()\n")
    counted.keep(wanted=True)
    process = counted._child
    process.stdin.close()  # what the kernel does when a worker dies
    wait_until(lambda: process.poll() == 0, timeout_seconds=20, describe="the child's end")
