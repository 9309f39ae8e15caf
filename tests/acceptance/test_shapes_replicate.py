"""Every shape of link, under load: each record is everywhere it belongs, exactly once, in order."""

import pytest

from replicator.testing.checker.routes import prefix

MANY = 1_500


def test_active_passive_copies_every_record_under_its_own_name(east, west, scene):
    scene.active_passive(east, west)
    scene.worker()
    scene.writer(east)
    scene.written(MANY)
    scene.settled()


def test_active_active_keeps_one_topic_the_same_on_both_sides(east, west, scene):
    scene.clusters(east, west, topic_on=[east, west])
    scene.link(
        "active-active",
        clusters=["east", "west"],
        naming="identity",
        flows=["east->west", "west->east"],
    )
    scene.worker()
    for cluster in (east, west):
        scene.writer(cluster)
    scene.written(MANY)
    scene.settled()


def test_a_hub_gathers_the_records_of_its_spokes_under_their_prefixes(east, west, central, scene):
    scene.clusters(east, west, central, topic_on=[east, west])
    scene.link(
        "hub-and-spoke",
        hub="central",
        spokes=["east", "west"],
        direction="to-hub",
        flows=["east->central", "west->central"],
    )
    scene.naming = prefix
    scene.worker()
    for cluster in (east, west):
        scene.writer(cluster)
    scene.written(MANY)
    scene.settled()


@pytest.mark.slow
def test_a_mesh_of_three_holds_every_record_once_on_each_side(east, west, central, scene):
    scene.needs_headers()
    three = (east, west, central)
    scene.mesh(*three)
    scene.worker()
    for cluster in three:
        scene.writer(cluster, rate=150)
    scene.written(MANY)
    scene.settled()


def test_a_ring_of_three_passes_every_record_round_and_stops_before_its_origin(
    east, west, central, scene
):
    scene.needs_headers()
    ring = (east, west, central)
    scene.clusters(*ring, topic_on=ring)
    for source, target in ((east, west), (west, central), (central, east)):
        scene.link(
            "active-passive",
            active=source.name,
            passive=target.name,
            naming="identity",
            flows=[f"{source.name}->{target.name}"],
            relay=True,
        )
    scene.worker()
    for cluster in ring:
        scene.writer(cluster, rate=150)
    scene.written(MANY)
    scene.settled()
