"""The active side is lost: the other one takes over, and the loss is what was printed."""

import time

import pytest
from role_changes import LINK, Operator

from replicator.testing import wait_until
from replicator.testing.history import Measured, Promised

FLOW = "east->west"
BACK = "west->east"
RTO_SECONDS = 15.0


def mirrored(scene, east, west, **fields):
    """A link that mirrors under load, and its operator."""
    scene.active_passive(east, west, **fields)
    scene.worker()
    writer = scene.writer(east, rate=300)
    scene.copying(FLOW)
    operator = Operator(scene)
    wait_until(
        lambda: contact(operator) is not None,
        timeout_seconds=30.0,
        describe="a contact on record",
    )
    return operator, writer


def contact(operator):
    from replicator.control.bootstrap import read_control

    plan = operator.plan
    state = read_control(plan.topology, plan.cluster("west"), client_id="test")
    found = state.contact("east", LINK)
    return found if found is not None and found.topics[0].records_per_second else None


def test_a_killed_active_side_is_replaced_and_comes_back_without_writing_a_record(
    clusters, scene, tmp_path
):
    east, west = clusters("east", "west")
    operator, writer = mirrored(scene, east, west)
    east.kill()
    began = time.monotonic()
    report = operator.run("failover", to="west", accept_loss=True)
    took = time.monotonic() - began
    print("FAILOVER", took, report.rto_seconds, report.loss, [(s.step, s.seconds, s.result) for s in report.steps], operator.asked)
    assert report.outcome == "done"
    assert (report.epoch, operator.role().state) == (1, "promoted")
    later = scene.writer(west, rate=300)
    later.wait_acked(300)
    assert took < RTO_SECONDS
    writer.stop(timeout_seconds=120.0)
    ends = scene.ends(west)
    east.restart()
    later.wait_acked(300)

    operator.on = {("fence", "began"): later.stop}
    report = operator.run("failback", tail="inject", export=tmp_path, manual_fence=True)
    print("FAILBACK", report.outcome, report.reason, report.loss, [(s.step, round(s.seconds, 2), s.result) for s in report.steps])
    assert report.outcome == "done", report
    scene.expect(FLOW, BACK)
    scene.writer(east, rate=300)
    scene.copying(FLOW)
    r = scene.settled()
    print(r.paragraph())
