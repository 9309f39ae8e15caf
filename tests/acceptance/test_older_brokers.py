"""Brokers of other releases: the oldest that is supported works, an older one is named as such."""

import pytest
from older_kafka import OlderKafka

from replicator.testing import wait_until

FLOW = "east->west"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", ["3.0.2", "3.9.1"])
def test_older_supported_brokers_are_replicated_both_ways_exactly_once(clusters, scene, version):
    (west,) = clusters("west")
    with OlderKafka("east", version) as east:
        scene.clusters(east, west, topic_on=[east, west])
        scene.link("active-active", clusters=["east", "west"], naming="identity",
                   flows=[FLOW, "west->east"])  # fmt: skip
        scene.worker()
        scene.writer(east)
        scene.writer(west)
        scene.copying(FLOW)
        scene.copying("west->east")
        scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_too_old_a_broker_is_named_with_what_it_lacks_and_holds_up_only_its_own_flows(
    clusters, scene
):
    west, central = clusters("west", "central")
    with OlderKafka("east", "2.4.1") as east:
        scene.clusters(east, west, central, topic_on=[east, west])
        scene.link("active-passive", active="east", passive="central", flows=[])
        scene.link("active-passive", active="west", passive="central", naming="prefix",
                   flows=["west->central"])  # fmt: skip
        worker = scene.worker()
        writer = scene.writer(west)
        scene.copying("west->central")
        problem = wait_until(
            lambda: next(iter(worker.status()["east->central"]["problems"]), None),
            timeout_seconds=30,
            describe="a problem of the flow",
        )
        assert (problem["code"], problem["subject"]) == ("UNSUPPORTED_BROKER", "cluster:east")
        assert "fencing of replaced owners (Kafka 2.5)" in problem["detail"]
        assert "Kafka 3.0 or later" in problem["remedy"]
        assert worker.status()["west->central"]["problems"] == []
        writer.stop()
