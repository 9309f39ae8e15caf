"""The active side is lost: the other one takes over, and no more is lost than was said before."""

import time

import pytest
from exported_tail import read_export
from role_changes import LINK, Killed, divergent

from replicator.testing import wait_until
from replicator.testing.checker.history import Measured, Promised, Salvaged
from replicator.testing.workload.records import record_id

FLOW = "east->west"
BACK = "west->east"
RTO_SECONDS = 30.0
"""5 s of waiting for a side that is gone, some 3 s of work, and what other tests take of the cores."""


def promise(scene, operator, report, took):
    """What the operator was told, and what was measured, for the checker to hold one against the other."""
    assert str(report.loss.records) in operator.asked[0]
    scene.record(
        Promised(LINK, "rpo-records", float(report.loss.records)),
        Promised(LINK, "rto-seconds", RTO_SECONDS),
        Measured(LINK, "rto-seconds", took),
    )


@pytest.mark.timeout(600)
def test_a_killed_side_is_replaced_in_time_and_its_tail_is_put_back(clusters, scene, tmp_path):
    east, west = clusters("east", "west")
    operator, writer = divergent(scene, east, west)
    tail = writer.acked
    east.kill()
    scene.worker()
    began = time.monotonic()
    report = operator.run("failover", to="west", accept_loss=True)
    took = time.monotonic() - began
    assert report.outcome == "done", report
    assert report.loss.records >= tail
    promise(scene, operator, report, took)
    assert (report.epoch, operator.note_role().state) == (1, "promoted")
    later = scene.writer(west, rate=300, epoch=lambda: 1)
    later.wait_acked(300)
    before = scene.ends(west)

    east.restart()
    later.wait_acked(300)
    assert scene.asked().status() == {}, "nothing may run out of the side that came back"
    assert sum(scene.ends(west).values()) - sum(before.values()) <= later.sent + 8
    operator.on = {("fence", "began"): later.stop}
    report = operator.run("failback", tail="inject", export=tmp_path, manual_fence=True)
    assert (report.outcome, report.epoch) == ("done", 2), report
    assert report.loss.records == tail
    operator.note_role()
    (exported,) = tmp_path.glob("*.jsonl")
    records = list(read_export(exported))
    assert len(records) == tail
    scene.record(*(Salvaged(record_id(one.value, list(one.headers))) for one in records))
    scene.expect(BACK)
    scene.writer(east, rate=300, epoch=lambda: 2)
    scene.copying(FLOW)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_tail_that_is_kept_aside_stays_off_the_new_side(clusters, scene, tmp_path):
    east, west = clusters("east", "west")
    operator, writer = divergent(scene, east, west)
    tail = writer.acked
    east.kill()
    scene.worker()
    began = time.monotonic()
    report = operator.run("failover", to="west", accept_loss=True)
    promise(scene, operator, report, time.monotonic() - began)
    operator.note_role()
    east.restart()
    later = scene.writer(west, rate=300, epoch=lambda: 1)
    later.wait_acked(300)
    report = operator.run("failback", tail="keep", export=tmp_path, and_switch=False)
    assert (report.outcome, report.epoch, report.loss.records) == ("done", 1, tail), report
    role = operator.role()
    assert (role.active, role.state) == ("west", "mirroring")
    scene.expect(BACK)
    scene.copying(BACK)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_tail_that_was_put_back_before_a_rollback_is_not_put_back_again(
    clusters, scene, tmp_path
):
    east, west = clusters("east", "west")
    operator, writer = divergent(scene, east, west)
    east.kill()
    scene.worker()
    assert operator.run("failover", to="west", accept_loss=True).outcome == "done"
    operator.note_role()
    east.restart()
    operator.kill_at("realign", "began")
    with pytest.raises(Killed):
        operator.run("failback", tail="inject", export=tmp_path, and_switch=False)
    operator.on = {}
    assert operator.run("failback", roll_back=True).outcome == "rolled-back"
    assert operator.role().state == "promoted"
    before = scene.ends(west)

    report = operator.run("failback", tail="inject", export=tmp_path, and_switch=False)
    assert (report.outcome, report.loss.records) == ("done", writer.acked), report
    put = next(step for step in report.steps if step.step == "inject")
    assert put.evidence["injected"] == writer.acked
    assert scene.ends(west) == before
    tail = next(iter(tmp_path.glob("*.jsonl")))
    records = [record_id(one.value, list(one.headers)) for one in read_export(tail)]
    scene.record(*(Salvaged(one) for one in records))
    scene.expect(BACK)
    scene.writer(west, rate=300, epoch=lambda: 1)
    scene.copying(BACK)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_black_holed_side_is_replaced_in_time(clusters, scene):
    east, west = clusters("east", "west", proxied=True)
    operator, writer = divergent(scene, east, west)
    east.proxy.black_hole()
    scene.worker()
    began = time.monotonic()
    report = operator.run("failover", to="west", accept_loss=True)
    took = time.monotonic() - began
    assert report.outcome == "done", report
    assert took < RTO_SECONDS
    assert report.loss.records >= writer.acked
    promise(scene, operator, report, took)
    later = scene.writer(west, rate=300, epoch=lambda: 1)
    later.wait_acked(300)
    east.proxy.heal()
    later.wait_acked(600)
    wait_until(lambda: scene.asked().get("/livez"), timeout_seconds=10.0, describe="a live worker")
    assert scene.asked().status() == {}
    report = operator.run("failback", tail="keep", and_switch=False, export=scene.directory)
    assert report.outcome == "done", report
    scene.expect(BACK)
    scene.copying(BACK)
    scene.settled()
