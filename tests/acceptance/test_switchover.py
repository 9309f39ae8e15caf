"""A planned change of sides under load: nothing is lost, nothing is read again."""

import json

import pytest
from role_changes import Operator

FLOW = "east->west"
BACK = "west->east"


@pytest.fixture(params=["records", pytest.param("batches", marks=pytest.mark.slow)])
def operator(east, west, scene, request):
    """An operator of a link that mirrors under load."""
    scene.active_passive(east, west, fencing={"method": "manual"}, engine=request.param)
    scene.worker()
    scene.east_writer = scene.writer(east, rate=300)
    scene.copying(FLOW)
    return Operator(scene)


def test_a_link_turns_around_under_load_and_back_again(east, west, scene, operator):
    group = f"{scene.name}-billing"
    reader = scene.reader(east, group)
    reader.wait_delivered(500, timeout_seconds=90.0)
    reader.stop()
    operator.on = {("fence", "began"): scene.east_writer.stop}
    report = operator.run("switchover", to="west")
    assert report.outcome == "done", report
    assert report.epoch == 1
    assert report.loss.records == 0
    scene.expect(BACK)
    moved = scene.reader(west, group)
    writer = scene.writer(west, rate=300)
    scene.copying(BACK)
    moved.wait_delivered(500, timeout_seconds=90.0)
    moved.stop()
    flows = scene.asked().status()
    assert FLOW not in flows
    role = operator.role()
    assert (role.active, role.epoch, role.state) == ("west", 1, "mirroring")

    operator.on = {("fence", "began"): writer.stop}
    report = operator.run("switchover", to="east")
    assert (report.outcome, report.epoch) == ("done", 2)
    scene.writer(east, rate=300)
    scene.copying(FLOW)
    scene.settled()


def carried_over(report, group):
    """What the step that verifies positions saw of a group."""
    verified = next(step for step in report.steps if step.step == "verify")
    assert "still reading" not in verified.result, verified
    return json.loads(json.dumps(verified.evidence))["groups"][group]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_that_read_on_while_the_link_turns_skip_nothing_and_read_nothing_again(
    east, west, scene, protocol
):
    scene.active_passive(east, west, fencing={"method": "manual"})
    scene.worker()
    writer = scene.writer(east, rate=300)
    scene.copying(FLOW)
    operator = Operator(scene)
    group = f"{scene.name}-billing"
    reader = scene.reader(east, group, protocol=protocol)
    reader.wait_delivered(300, timeout_seconds=90.0)
    operator.on = {("fence", "began"): writer.stop}
    report = operator.run("switchover", to="west", groups_seconds=60.0)
    assert report.outcome == "done", report
    seen = carried_over(report, group)
    assert (seen["grades"], seen["unread"], seen["reread"]) == (["exact"], 0, 0)
    reader.stop()
    scene.expect(BACK)
    moved = scene.reader(west, group, protocol=protocol)
    scene.writer(west, rate=300)
    scene.copying(BACK)
    moved.wait_delivered(300, timeout_seconds=90.0)
    moved.stop()
    scene.settled()
