"""Promotion by itself: only when the witness does not see the active side either."""

import time

import pytest
from role_changes import Operator

from replicator.failover.witness_words import note_sightings
from replicator.testing import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FLOW = "east->west"
AFTER_SECONDS = 20.0


def test_a_side_that_the_witness_still_reaches_is_not_replaced_and_one_nobody_reaches_is(
    clusters, scene
):
    east, west = clusters("east", "west", proxied=True)
    (central,) = clusters("central")
    automatic = {
        "witness": {"cluster": "central"}, "after": f"{AFTER_SECONDS:g}s", "interval": "1s",
        "maxLostRecords": 1_000_000,
    }  # fmt: skip
    scene.clusters(east, west, central, topic_on=[east])
    scene.link(
        "active-passive", active="east", passive="west", flows=[FLOW],
        failover={"automatic": automatic},
    )  # fmt: skip
    scene.worker()
    writer = scene.writer(east, rate=200)
    scene.copying(FLOW)
    operator = Operator(scene)
    writer.stop()
    east.proxy.black_hole()
    watched_until = time.monotonic() + 2 * AFTER_SECONDS
    while time.monotonic() < watched_until:  # somebody near the active side still reaches it
        note_sightings(
            operator.plan, "central", ["east"], worker="near", now_ms=round(time.time() * 1000)
        )
        time.sleep(1.0)
    assert operator.role().epoch == 0
    wait_until(
        lambda: operator.role().state == "promoted",
        timeout_seconds=150.0,
        describe=lambda: f"a promotion, but: {operator.role()}",
    )
    role = operator.role()
    assert (role.active, role.epoch) == ("west", 1)
    assert role.by.startswith("witness@")
    scene.writer(west, rate=200).wait_acked(200)
    scene.stop_writing()
