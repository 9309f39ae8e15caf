"""SIGKILL at any instant: under exactly-once nothing is lost, repeated or reordered."""

import os
import random
import signal
import time

import pytest

from replicator.testing import wait_until

FLOW = "east->west"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("delivery", "kills"), [("exactly-once", 5), ("at-least-once", 3)])
def test_a_worker_killed_again_and_again_keeps_its_promise(east, west, scene, delivery, kills):
    scene.active_passive(east, west, delivery=delivery)
    scene.guarantee = delivery
    scene.writer(east, rate=1_000)
    draw = random.Random(delivery)
    for _ in range(kills):
        worker = scene.worker("--worker-id", "only")  # a stable name gets its lanes back at once
        scene.copying(FLOW)
        time.sleep(draw.uniform(0.0, 1.0))  # no wait for anything: the instant of death
        worker.kill()
    scene.worker("--worker-id", "only")
    scene.settled()


@pytest.mark.slow
def test_lane_processes_end_with_their_worker(east, west, scene):
    scene.active_passive(east, west)
    worker = scene.worker()
    scene.writer(east)
    scene.copying(FLOW)
    assert worker.lane_pids()
    worker.kill()
    wait_until(
        lambda: not worker.lane_pids(),
        timeout_seconds=10.0,
        describe=lambda: f"lane processes {worker.lane_pids()} to end with their worker",
    )
    scene.worker()
    scene.settled()


def test_a_worker_replaces_a_lane_process_that_was_killed(east, west, scene):
    scene.active_passive(east, west)
    worker = scene.worker()
    scene.writer(east, rate=1_000)
    scene.copying(FLOW)
    os.kill(worker.pid, signal.SIGUSR1)  # as the runbook has it
    wait_until(
        lambda: all(
            place in worker.log.read_text()
            for place in ("pair_runner.py", "in run", "lane_process.py", "in serve")
        ),
        timeout_seconds=10.0,
        describe=lambda: f"the stacks of worker and lane process: {worker.log_tail()}",
    )
    (lost,) = worker.lane_pids()
    worker.kill_lane_process(lost)
    scene.copying(FLOW)
    assert worker.alive
    assert lost not in worker.lane_pids()
    scene.settled()


@pytest.mark.slow
def test_a_stuck_lane_process_is_replaced_and_fenced(east, west, scene):
    scene.active_passive(east, west)
    worker = scene.worker()
    scene.writer(east, rate=1_000)
    scene.copying(FLOW)
    (still,) = worker.lane_pids()
    os.kill(still, signal.SIGSTOP)
    wait_until(
        lambda: still not in worker.lane_pids(),
        timeout_seconds=30,
        describe=lambda: f"the process to be replaced: {worker.log_tail()}",
    )
    scene.copying(FLOW)
    assert worker.alive
    scene.settled()
