"""Lanes of ``auto`` follow the partitions of a running flow: nothing is lost, repeated or reordered by that."""

import pytest
from confluent_kafka.admin import NewTopic

from replicator.testing import wait_until

FLOW = "east->west"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_flow_that_began_small_gets_lanes_for_what_came_later_under_load(east, west, scene):
    scene.active_passive(east, west, topics={"include": [f"{scene.topic}*"]})
    worker, other = scene.worker(), scene.worker()
    scene.writer(east, rate=1_000)
    scene.copying(FLOW)
    lanes = worker.status()[FLOW]["lanes"]
    assert lanes["reason"].startswith("first layout")
    more = NewTopic(f"{scene.topic}.more", 12)
    for made in east.admin().create_topics([more]).values():
        made.result(30)
    wait_until(
        lambda: worker.status()[FLOW]["lanes"]["count"] == 8,
        timeout_seconds=120,
        describe=lambda: f"eight lanes, it has {worker.status()[FLOW]['lanes']}",
        interval_seconds=1.0,
    )
    lanes = worker.status()[FLOW]["lanes"]
    assert "partitions and 2 workers" in lanes["reason"]
    assert lanes["since"] is not None
    wait_until(
        lambda: scene.lanes(worker, FLOW) and scene.lanes(other, FLOW),
        timeout_seconds=60,
        describe="both workers to have some of them",
    )
    scene.copying(FLOW)
    scene.settled()
