"""Whole batches under faults, judged by the history checker, with both transaction protocols."""

import itertools
import random
import time

import pytest
from acceptance_scene import Scene
from transaction_versions import use_transaction_version
from whole_topic import engine_of_newest

from replicator.testing import wait_until
from replicator.testing.checker.routes import prefix
from replicator.testing.workload.watcher import Watcher

FLOW = "east->west"
SILENCE_SECONDS = 3.0
"""The longest while in which nothing arrives when a lane changes its engine."""

VERSIONS = pytest.mark.parametrize("transaction_version", [2, 1])


def batches_scene(scene, east, west, **fields) -> None:
    scene.naming = prefix
    scene.active_passive(east, west, naming="prefix", engine="batches", **fields)


@pytest.mark.slow
@pytest.mark.timeout(540)
@VERSIONS
def test_workers_and_brokers_killed_under_load_cost_nothing(clusters, scene, transaction_version):
    east, west = clusters("east", "west")
    use_transaction_version(west, transaction_version)
    batches_scene(scene, east, west)
    writer = scene.writer(east, rate=1_000)
    draw = random.Random(transaction_version)
    for _ in range(4):
        worker = scene.worker("--worker-id", "only")  # a stable name gets its lanes back at once
        scene.copying(FLOW)
        time.sleep(draw.uniform(0.0, 1.0))  # no wait for anything: the instant of death
        worker.kill()
    scene.worker("--worker-id", "only")
    scene.copying(FLOW)
    scene.survives_killed_brokers(writer, FLOW)


def both_ways(scene, east, west, **fields) -> None:
    scene.clusters(east, west, topic_on=[east, west])
    scene.link(
        "active-active", clusters=["east", "west"], naming="identity", engine="batches",
        flows=["east->west", "west->east"], **fields,
    )  # fmt: skip


@pytest.mark.slow
def test_whole_batches_go_both_ways_between_two_clusters_and_none_comes_back(east, west, scene):
    both_ways(scene, east, west)
    scene.worker()
    for cluster in (east, west):
        scene.writer(cluster)
    scene.written(1_500)
    scene.settled()
    flows = scene.asked().status()
    assert (
        engine_of_newest(east, scene.topic) == engine_of_newest(west, scene.topic) == "batches"
    ), flows


@pytest.fixture
def back(scene, east, west, tmp_path):
    """The way back of a scene, by a file and workers of its own."""
    (tmp_path / "back").mkdir()
    back = Scene(name=f"{scene.name}-back", directory=tmp_path / "back")
    back.topic = scene.topic
    back.clusters(east, west)
    yield back
    back.close(show_logs=True)


@pytest.fixture
def hand_out(scene, back, east, west):
    """Both clusters hand out to each other, each by a file of its own, under load; returns the way back."""

    def write_files(engine):
        scene.clusters(east, west, topic_on=[east, west])
        there = {"hub": "east", "spokes": ["west"], "flows": ["east->west"]}
        scene.link("hub-and-spoke", direction="from-hub", **there)
        again = {"hub": "west", "spokes": ["east"], "flows": ["west->east"]}
        back.link("hub-and-spoke", direction="from-hub", engine=engine, **again)
        scene.expect("west->east")
        for cluster in (east, west):
            scene.writer(cluster)
        return back

    return write_files


@pytest.mark.slow
@pytest.mark.parametrize("begun", ["one after the other", "at once"])
@pytest.mark.parametrize("engine", ["auto", "records"])
def test_two_hubs_that_hand_out_to_each_other_by_files_of_their_own_bring_nothing_back(
    scene, hand_out, engine, begun
):
    back = hand_out(engine)
    back.worker()
    if begun == "one after the other":
        back.copying("west->east")  # its lanes know of no other topology
    scene.worker()
    scene.written(1_500)

    def shown():
        flow = scene.asked().status()["east->west"]
        return flow["engine"], flow["engineReason"]

    wait_until(
        lambda: shown() == ("batches", ""),
        timeout_seconds=120, describe=lambda: f"whole batches, there are {shown()}",
    )  # fmt: skip
    scene.written(1_500)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_record_by_record_after_whole_batches_brings_nothing_back(east, west, scene):
    both_ways(scene, east, west)
    worker = scene.worker()
    for cluster in (east, west):
        scene.writer(cluster)
    scene.written(1_000)
    for flow in ("east->west", "west->east"):
        scene.copying(flow)
    worker.kill()  # with copies in both logs that no lane has looked at yet
    scene.edit_link(engine="records")
    scene.worker()
    scene.written(1_000)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(540)
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_nothing_comes_back_while_workers_and_brokers_are_killed(clusters, scene, delivery):
    east, west = clusters("east", "west")
    both_ways(scene, east, west, delivery=delivery)
    scene.guarantee = delivery
    for cluster in (east, west):
        scene.writer(cluster, rate=500)
    for _ in range(3):
        worker = scene.worker("--worker-id", "only")
        for flow in ("east->west", "west->east"):
            scene.copying(flow)
        worker.kill()
    scene.worker("--worker-id", "only")
    for cluster in (east, west):
        cluster.kill()
        cluster.restart()
        for flow in ("east->west", "west->east"):
            scene.copying(flow)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_leaders_of_the_target_killed_one_by_one_cost_nothing(clusters, scene):
    (east,) = clusters("east")
    (west,) = clusters("west", brokers=3)
    batches_scene(scene, east, west)
    scene.worker()
    writer = scene.writer(east, rate=1_000)
    scene.copying(FLOW)
    for broker in range(3):
        west.kill(broker)
        writer.wait_acked(2_000, timeout_seconds=60.0)
        west.restart(broker)
        scene.copying(FLOW)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_an_edited_file_switches_engines_under_load(east, west, scene):
    batches_scene(scene, east, west)
    scene.worker()
    scene.writer(east, rate=500)
    scene.copying(FLOW)
    watcher = Watcher(west, f"east.{scene.topic}").start()
    shown = []

    def copied_by(engine):
        flow = scene.asked().status()[FLOW]
        shown.append((flow["engine"], flow["engineReason"]))
        return engine_of_newest(west, f"east.{scene.topic}") == engine

    for engine in ("records", "batches"):
        scene.edit_link(engine=engine)
        wait_until(
            lambda engine=engine: copied_by(engine),
            timeout_seconds=60,
            interval_seconds=1.0,
            describe=lambda engine=engine: f"records copied by the {engine} engine",
        )
        scene.copying(FLOW)
    assert ("records", "new-id") in shown
    wait_until(
        lambda: copied_by("batches") and shown[-1] == ("batches", ""),
        timeout_seconds=30, describe=lambda: f"whole batches in status: {shown}",
    )  # fmt: skip
    watcher.stop()
    scene.settled()
    times = sorted(each.at for each in watcher.arrivals())
    silences = sorted(later - before for before, later in itertools.pairwise(times))
    assert silences[-1] < SILENCE_SECONDS, silences[-5:]
