"""Links without an active side: groups move and the side that is left is marked; records go on both ways."""

import pytest
from role_changes import LINK, Operator

from replicator.control.status.collect import collect_status
from replicator.errors import InputError


def marked(operator):
    (link,) = collect_status(operator.plan)["links"]
    return link["drained"]


@pytest.mark.slow
def test_groups_leave_a_side_of_an_active_active_link_and_return(east, west, scene):
    scene.clusters(east, west, topic_on=[east, west])
    scene.link(
        "active-active", clusters=["east", "west"], naming="identity",
        flows=["east->west", "west->east"],
    )  # fmt: skip
    scene.worker()
    writer = scene.writer(east, rate=200)
    scene.copying("east->west")
    group = f"{scene.name}-billing"
    reader = scene.reader(east, group)
    reader.wait_delivered(300, timeout_seconds=90.0)
    reader.stop()
    operator = Operator(scene)
    with pytest.raises(InputError, match="which cluster is left"):
        operator.run("switchover")
    report = operator.run("switchover", to="west")
    assert (report.outcome, report.epoch) == ("done", 0), report
    assert [step.step for step in report.steps] == ["move-groups", "mark"]
    assert report.steps[0].evidence["groups"][group]["state"] == "synced"
    assert marked(operator) == ["east"]
    moved = scene.reader(west, group)
    moved.wait_delivered(200, timeout_seconds=90.0)
    moved.stop()
    assert {"east->west", "west->east"} <= scene.asked().status().keys()

    report = operator.run("failback", to="east")
    assert report.outcome == "done", report
    assert marked(operator) == []
    assert report.link == LINK
    writer.wait_acked(10)
    scene.settled()
