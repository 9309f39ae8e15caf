"""Brokers die, networks swallow bytes, clusters are down: replication goes on by itself."""

import time

import pytest

from replicator.testing import wait_until

FLOW = "east->west"
DARK_SECONDS = 20.0
SHORTER_DARK_SECONDS = 8.0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_brokers_that_were_killed_under_load_cost_nothing(clusters, scene):
    east, west = clusters("east", "west")
    scene.active_passive(east, west)
    scene.worker()
    writer = scene.writer(east, rate=1_000)
    scene.copying(FLOW)
    scene.survives_killed_brokers(writer, FLOW)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_network_that_swallows_everything_is_survived(clusters, scene):
    east, west = clusters("east", "west", proxied=True)
    scene.active_passive(east, west)
    scene.worker()
    scene.writer(east, rate=500)
    scene.copying(FLOW)
    for cluster, seconds in ((west, DARK_SECONDS), (east, SHORTER_DARK_SECONDS)):
        cluster.proxy.black_hole()
        time.sleep(seconds)  # how long the fault lasts
        cluster.proxy.heal()
        scene.copying(FLOW)
    scene.settled()


def test_a_cluster_that_is_down_holds_up_only_its_own_flows(clusters, scene):
    east, west, central = clusters("east", "west", "central")
    scene.clusters(east, west, central, topic_on=[east])
    for target in ("west", "central"):
        scene.link("active-passive", active="east", passive=target, flows=[f"east->{target}"])
    west.kill()
    worker = scene.worker()
    scene.writer(east)
    scene.copying("east->central")

    told: dict[str, object] = {}

    def only_west_is_held_up() -> bool:
        ready, flows = worker.get("/readyz"), worker.status()
        told.update(ready=ready, flows=flows)
        problems = [(each["code"], each["subject"]) for each in flows["east->west"]["problems"]]
        return (
            not ready["ok"]
            and any("'west'" in reason for reason in ready["reasons"])
            and not any("'central'" in reason for reason in ready["reasons"])
            and ("UNREACHABLE", "cluster:west") in problems
            and flows["east->central"]["problems"] == []
        )

    wait_until(only_west_is_held_up, timeout_seconds=60.0, describe=lambda: str(told))
    west.restart()
    scene.copying("east->west")
    wait_until(
        lambda: worker.get("/readyz")["ok"],
        timeout_seconds=30.0,
        describe=lambda: f"the worker to be ready, but: {worker.get('/readyz')}",
    )
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_leaders_that_move_in_a_cluster_of_three_cost_nothing(east, clusters, scene):
    (west,) = clusters("west", brokers=3)
    scene.active_passive(east, west)
    scene.worker()
    writer = scene.writer(east, rate=500)
    scene.copying(FLOW)
    for broker in (0, 1, 2):  # each leads something: records, checkpoints, the coordinator
        west.kill(broker)
        writer.wait_acked(200, timeout_seconds=60.0)
        scene.copying(FLOW)  # two of three brokers are enough
        west.restart(broker)
    scene.copying(FLOW)
    scene.settled()
