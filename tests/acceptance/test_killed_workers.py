"""SIGKILL to workers at any instant: under exactly-once nothing is lost, repeated or reordered."""

import random
import time

import pytest

from replicator.testing import wait_until

KILLS = 5
TAKE_OVER_SECONDS = 12.0


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_worker_killed_again_and_again_keeps_its_promise(east, west, scene, delivery):
    scene.active_passive(east, west, delivery=delivery)
    scene.guarantee = delivery
    worker = scene.worker()
    scene.writer(east, rate=1_000)
    scene.copying("east->west")
    draw = random.Random(delivery)
    for _ in range(KILLS):
        time.sleep(draw.uniform(0.0, 1.0))  # the instant of death is what varies
        worker.kill()
        worker = scene.worker()
        scene.copying("east->west")
    scene.settled()


def test_lanes_of_a_killed_worker_move_again_with_another(east, west, scene):
    flow = "east->west"
    scene.active_passive(east, west)
    victim, survivor = two_workers_sharing(scene, flow)
    scene.writer(east)
    scene.copying(flow)
    victim.kill()
    scene.past(flow, scene.source_ends(flow), timeout_seconds=TAKE_OVER_SECONDS)
    assert survivor.lanes(flow) == {0, 1, 2, 3}
    scene.settled()


def test_lane_processes_end_with_their_worker(east, west, scene):
    scene.active_passive(east, west)
    worker = scene.worker()
    scene.writer(east)
    scene.copying("east->west")
    assert worker.lane_pids()
    worker.kill()
    wait_until(
        lambda: not worker.lane_pids(),
        timeout_seconds=2.0,
        describe=lambda: f"lane processes {worker.lane_pids()} to end with their worker",
    )
    scene.worker()
    scene.settled()


def test_a_worker_replaces_a_lane_process_that_was_killed(east, west, scene):
    scene.active_passive(east, west)
    worker = scene.worker()
    scene.writer(east, rate=1_000)
    scene.copying("east->west")
    (lost,) = worker.lane_pids()
    worker.kill_lane_process(lost)
    scene.copying("east->west")
    assert worker.alive
    assert lost not in worker.lane_pids()
    scene.settled()


def two_workers_sharing(scene, flow):
    """Two workers of which each has some of the lanes."""
    workers = scene.worker(), scene.worker()
    wait_until(
        lambda: all(worker.lanes(flow) for worker in workers),
        timeout_seconds=60.0,
        describe=lambda: f"lanes to be shared, there are {workers[0].status()[flow]['workers']}",
    )
    return workers
