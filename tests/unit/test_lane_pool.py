"""Lane processes: begun when lanes need them, replaced when they die, slowly where they die at once."""

import os
import signal
import time
from pathlib import Path

import pytest

from replicator.dataplane.process.process_pool import LanePool
from replicator.dataplane.process.spawn import start_child
from replicator.dataplane.transport.messages import LogLine, decode_command
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec, PartitionWork
from replicator.policy.capacity.memory_shares import MemoryShare
from replicator.policy.values import StartFrom
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan

SETTINGS = LaneSettings("exactly-once", 0.2, "full", ("west",), StartFrom(), "quarantine", "stop")

STAYS = "import socket, sys\nsocket.socket(fileno=int(sys.argv[1])).recv(1)\n"
"""Ends, as a lane process does, with the socket to its worker."""


@pytest.fixture
def pools(tmp_path, monkeypatch):
    """Pools whose processes run the program of the test; each of their starts is counted."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # Only what the processes run is another program: they are real ones.
    monkeypatch.setattr(
        "replicator.dataplane.process.process_pool.start_child", lambda: start_child("stand_in")
    )
    opened = []

    def make(program, *, children=1, processes=1):
        runs = tmp_path / "runs"
        runs.touch()
        counting = f"open({str(runs)!r}, 'a').write('x')\n"
        (tmp_path / "stand_in.py").write_text(counting + program)
        said = []
        started = [start_child("stand_in") for _ in range(children)]
        pool = LanePool(started, processes=processes, on_event=said.append)
        opened.append(pool)
        return pool, said, lambda: len(runs.read_text())

    yield make
    for pool in opened:
        pool.close()


def pids(pool):
    return {process.pid for process in pool._processes}


def test_a_lane_process_has_few_heaps_unless_its_environment_says_otherwise(pools, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "7")
    pool, _, _ = pools(STAYS)
    (pid,) = pids(pool)
    said = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert b"MALLOC_ARENA_MAX=7" in said
    assert b"MALLOC_MMAP_THRESHOLD_=262144" in said


def test_processes_begin_when_lanes_are_expected_and_never_more_than_allowed(pools):
    pool, _, _ = pools(STAYS, processes=3)
    for lanes, processes in ((0, 1), (1, 1), (2, 2), (9, 3), (1, 3)):
        pool.expect(lanes)
        assert len(pids(pool)) == processes


def test_a_process_that_is_killed_is_replaced_at_once(pools):
    pool, said, _ = pools(STAYS, children=2, processes=2)
    (first, second) = pool._processes
    first._child.kill()
    wait_until(
        lambda: first.pid not in pids(pool) and len(pids(pool)) == 2,
        timeout_seconds=30,
        describe="another process",
    )
    assert second.pid in pids(pool)
    assert said == []


def test_processes_that_die_at_once_are_tried_again_with_patience_and_reported(pools):
    pool, said, runs = pools("import sys\nsys.exit(7)\n")
    wait_until(
        lambda: len(said) == 2, timeout_seconds=60, describe=lambda: f"two words, not {said}"
    )
    assert runs() == 3  # the first is followed at once, the others only after a pause
    assert [line.fields for line in said if isinstance(line, LogLine)] == [
        {"exit_code": "7", "next_in_seconds": "2"},
        {"exit_code": "7", "next_in_seconds": "4"},
    ]
    pool.close()
    assert runs() == 3


SPEAKS = """import os, socket, sys
connection = socket.socket(fileno=int(sys.argv[1]))
connection.sendall(b'{"kind": "stats", "lanes": []}\\n')
connection.recv(1)
"""


STANDS_STILL = "a lane process stands still and is replaced"


def replaced(pool, process):
    def another():
        pool.replace_silent()
        return process.pid not in pids(pool)

    wait_until(another, timeout_seconds=30, describe="another process")


def lane(number, *, topics=0):
    return LaneSpec(
        "shop", "link", ClusterPlan("east", ("e:1",)), ClusterPlan("west", ("w:1",)),
        number, 1, SETTINGS, tuple(PartitionWork(f"t{each}", 0, f"t{each}", "id") for each in range(topics)),
    )  # fmt: skip


def test_a_stuck_process_is_replaced_and_one_that_is_starting_is_not(pools, monkeypatch):
    monkeypatch.setattr("replicator.dataplane.process.process_pool.SILENT_SECONDS", 0.5)
    pool, said, _ = pools(STAYS)
    pool.replace_silent()
    assert said == []
    pool.close()

    pool, said, _ = pools(SPEAKS)
    (first,) = pool._processes
    wait_until(lambda: first.begun, timeout_seconds=30, describe="its first word")
    first._child.send_signal(signal.SIGSTOP)
    replaced(pool, first)
    assert [line.event for line in said] == [STANDS_STILL]


def test_a_process_that_never_comes_up_is_replaced_each_time_with_more_patience(pools, monkeypatch):
    monkeypatch.setattr("replicator.dataplane.process.process_pool.START_SECONDS", 1.0)
    monkeypatch.setattr("replicator.dataplane.process.process_pool.CRASH_LOOP_SECONDS", 0.0)
    pool, said, _ = pools(STAYS)
    began = time.monotonic()
    for _ in range(2):
        replaced(pool, pool._processes[0])
    assert time.monotonic() - began > 3.0, "one second, then two"
    assert [line.event for line in said] == ["a lane process does not come up and is replaced"] * 2


def test_a_process_that_takes_no_orders_holds_up_nobody_and_its_lanes_are_given_back(
    pools, monkeypatch
):
    monkeypatch.setattr("replicator.dataplane.process.process_pool.SILENT_SECONDS", 0.5)
    pool, said, _ = pools(SPEAKS)
    (first,) = pool._processes
    wait_until(lambda: first.begun, timeout_seconds=30, describe="its first word")
    first._child.send_signal(signal.SIGSTOP)
    for number in range(3):
        pool.start(lane(number, topics=10_000))  # a megabyte each, more than a socket takes
    replaced(pool, first)
    assert isinstance(said[0], LogLine)
    assert said[0].event == STANDS_STILL
    wait_until(lambda: len(said) == 4, timeout_seconds=30, describe=lambda: f"three, not {said}")
    assert {(event.lane, event.reason) for event in said[1:]} == {
        (number, "its process died") for number in range(3)
    }


WRITES_STACKS = """import select, socket, sys
from replicator.thread_stacks import show_stacks_on_signal
show_stacks_on_signal()
connection = socket.socket(fileno=int(sys.argv[1]))
def stands_here():
    connection.sendall(b'{"kind": "stats", "lanes": []}\\n')
    while not select.select([connection], [], [], 0.1)[0]:
        pass
stands_here()
"""
"""Looks around again and again: a signal that comes while the last one is being answered does not end a wait."""


def test_a_process_says_where_it_stands_when_asked_and_before_it_is_replaced(
    pools, monkeypatch, capfd
):
    monkeypatch.setattr("replicator.dataplane.process.process_pool.SILENT_SECONDS", 0.0)
    monkeypatch.setattr("replicator.dataplane.process.pooled_process.STACKS_SECONDS", 5.0)
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{root}")
    pool, _, _ = pools(WRITES_STACKS)
    (first,) = pool._processes
    wait_until(lambda: first.begun, timeout_seconds=30, describe="its first word")
    pool.show_stacks()
    said = []

    def shown():
        said.append(capfd.readouterr().err)
        return "in stands_here" in "".join(said)

    wait_until(shown, timeout_seconds=30, describe=lambda: f"its stack, not {said}")
    assert first.exit_code is None
    said.clear()
    replaced(pool, first)
    assert shown()


def test_processes_that_do_not_end_are_killed_together(pools, monkeypatch):
    monkeypatch.setattr("replicator.dataplane.process.process_pool.CLOSE_SECONDS", 1.0)
    pool, _, runs = pools("import time\ntime.sleep(600)\n", children=6, processes=6)
    wait_until(lambda: runs() == 6, timeout_seconds=60, describe="six processes")
    began = time.monotonic()
    pool.close()
    assert time.monotonic() - began < 4.0, "not one second for each of them"
    assert all(process.exit_code == -signal.SIGKILL for process in pool._processes)


def test_after_a_sleep_of_the_worker_itself_no_process_is_blamed(pools, monkeypatch):
    monkeypatch.setattr("replicator.dataplane.process.process_pool.SILENT_SECONDS", 0.0)
    pool, said, _ = pools(SPEAKS)
    (first,) = pool._processes
    wait_until(lambda: first.begun, timeout_seconds=30, describe="its first word")
    pool._judged_at -= 60
    pool.replace_silent()
    assert said == []
    assert first.exit_code is None


def noting(place):
    """A program that keeps what its worker sends it."""
    return (
        "import socket, sys\n"
        f"with open({str(place)!r}, 'ab', buffering=0) as kept:\n"
        "    connection = socket.socket(fileno=int(sys.argv[1]))\n"
        "    while said := connection.recv(65536):\n"
        "        kept.write(said)\n"
    )


def test_lanes_divide_the_memory_and_are_told_when_their_part_gets_smaller(pools, tmp_path):
    sent = tmp_path / "sent"
    pool, _, _ = pools(noting(sent))
    pool._memory = pool._share = MemoryShare(800, 7)

    def start(number):
        pool.start(lane(number))

    def shares():
        whole, _, _ = (sent.read_bytes() if sent.exists() else b"").rpartition(b"\n")
        lines = whole.splitlines()  # the last line may be on its way
        specs = [decode_command(line).spec for line in lines]
        return [(spec.lane, spec.memory.size_bytes, spec.memory.expansion) for spec in specs]

    def told(*wanted):
        found = [(lane, size, 7) for lane, size in wanted]
        wait_until(lambda: shares() == found, timeout_seconds=30, describe=lambda: f"{shares()}")

    start(0)
    told((0, 800))
    start(1)
    told((0, 800), (0, 400), (1, 400))
    pool.expect(6)  # eight in all: the next one gets no more than its part of that
    start(2)
    told((0, 800), (0, 400), (1, 400), (0, 100), (1, 100), (2, 100))
    start(3)
    told((0, 800), (0, 400), (1, 400), (0, 100), (1, 100), (2, 100), (3, 100))
