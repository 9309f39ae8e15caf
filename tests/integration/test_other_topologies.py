"""Registries of many other topologies on one cluster, asked for one producer id after the other."""

import time

import pytest

from replicator.batches.registry import other_topologies
from replicator.batches.registry.other_topologies import OtherTopologies
from replicator.batches.registry.producer_registry import register
from replicator.errors import RegistryLostError
from replicator.formats.producer_registry import RegisteredProducer
from replicator.identifiers import checkpoints_topic, control_topic
from replicator.topology.plan import ClusterPlan

TOPOLOGIES = 12


@pytest.fixture
def scene(east, unique, monkeypatch):
    """Topologies that copy from west to east, with one id registered by each; a reader; and a way to register."""
    monkeypatch.setattr(other_topologies, "FOUND_SECONDS", 0.0)
    plan = ClusterPlan("east", tuple(east.bootstrap_servers))
    west = f"west-{unique}"  # other tests have topologies on this cluster
    names = [f"{unique}-{number}" for number in range(TOPOLOGIES)]

    def registers(name, producer_id):
        # Of now, or the broker may delete it at once: these topics are not compacted.
        now = round(time.time() * 1000)
        register(plan, name, RegisteredProducer(producer_id, west, "east", at_ms=now))

    def found(number, name):
        east.create_topic(checkpoints_topic(name, west), partitions=1)
        east.create_topic(control_topic(name), partitions=1)
        registers(name, number)

    for number, name in enumerate(names):
        found(number, name)
    others = OtherTopologies(plan, "ours", blocked=[west], client_id="others")
    yield others, names, registers, found, west
    others.close()


def test_ids_of_any_topology_are_known_also_those_that_come_later(scene):
    others, names, registers, found, west = scene
    for number in range(TOPOLOGIES):
        assert others.source_of(number) == (west, True)
    assert others.source_of(900) == (None, True)
    assert others.grown()
    assert not others.grown()
    registers(names[3], 900)
    assert others.source_of(900) == (west, True)
    assert others.grown()
    found(901, f"{names[0]}-later")
    assert others.source_of(901) == (west, True)
    assert len(others._leaders._connections) == 1, "one broker, one connection"


def test_a_control_topic_that_was_made_anew_is_noticed_though_it_ends_where_the_other_did(
    scene, east
):
    others, names, registers, _, west = scene
    assert others.source_of(5) == (west, True)
    east.delete_topic(control_topic(names[5]))
    east.create_topic(control_topic(names[5]), partitions=1)
    registers(names[5], 905)
    with pytest.raises(RegistryLostError):
        others.source_of(905)


def test_a_connection_that_was_lost_is_made_again(scene):
    others, names, registers, _, west = scene
    assert others.source_of(1) == (west, True)
    for connection in others._leaders._connections.values():
        connection.close()
    registers(names[1], 906)
    assert others.source_of(906) == (west, True)
