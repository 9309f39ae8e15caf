"""The side with the journal of an open role change is lost: the link can be brought on, and stays so."""

import pytest
from role_changes import LINK, Killed, Operator

from replicator.errors import RefusedError
from replicator.failover.run.history import history

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FLOW = "east->west"
BACK = "west->east"
NOTE = 'echo "$REPLICATOR_CLUSTER" >> "$0"'


@pytest.fixture
def sides(clusters):
    return clusters("east", "west")


def mirrored(scene, source, flow):
    """Some records more, all of them on both sides; nobody writes afterwards."""
    scene.expect(flow)
    scene.writer(source, rate=200).wait_acked(200)
    scene.settled()


def test_writers_that_an_unfinished_switchover_fenced_are_let_back_in(scene, sides):
    east, west = sides
    shut, opened = scene.directory / "shut", scene.directory / "opened"
    for file in (shut, opened):
        file.touch()
    scene.active_passive(
        east, west,
        fencing={
            "method": "command",
            "fence": ["sh", "-c", NOTE, str(shut)], "unfence": ["sh", "-c", NOTE, str(opened)],
        },
    )  # fmt: skip
    scene.worker()
    mirrored(scene, east, FLOW)
    ann, bob = Operator(scene, "ann"), Operator(scene, "bob")
    ann.kill_at("verify", "began")
    with pytest.raises(Killed):
        ann.run("switchover", to="west")
    assert (shut.read_text(), opened.read_text()) == ("east\n", "")

    west.kill()
    with pytest.raises(RefusedError, match="as far as can be seen: west does not answer"):
        bob.run("switchover", resume=True)
    report = bob.run("failover", to="east", accept_loss=True)
    assert (report.outcome, report.epoch) == ("done", 2), report
    assert opened.read_text() == "east\n"
    writer = scene.writer(east, rate=200)
    writer.wait_acked(200)

    west.restart()
    with pytest.raises(RefusedError, match="no transition of the link is open"):
        ann.run("switchover", resume=True)
    back = bob.run("failback", and_switch=False, export=scene.directory)
    assert (back.outcome, back.loss.records) == ("done", 0), back
    assert (bob.role().active, bob.role().state) == ("east", "mirroring")
    outcomes = {entry["id"]: entry["outcome"] for entry in history(bob.plan, LINK)["entries"]}
    assert sorted(outcomes.values()) == ["done", "done", "superseded"]
    scene.copying(FLOW)
    scene.settled()


def test_a_failback_that_was_open_when_its_side_was_lost_is_not_gone_on_with(scene, sides):
    east, west = sides
    scene.active_passive(east, west, fencing={"method": "manual"})
    scene.worker()
    mirrored(scene, east, FLOW)
    ann, bob = Operator(scene, "ann"), Operator(scene, "bob")
    assert bob.run("failover", to="west", accept_loss=True).outcome == "done"
    ann.kill_at("fence", "began")
    with pytest.raises(Killed):
        ann.run("failback", export=scene.directory)
    mirrored(scene, west, BACK)  # it had realigned: west is mirrored

    west.kill()
    report = bob.run("failover", to="east", accept_loss=True)
    assert (report.outcome, report.epoch) == ("done", 2), report
    writer = scene.writer(east, rate=200)
    writer.wait_acked(200)
    west.restart()
    with pytest.raises(RefusedError, match="no transition of the link is open"):
        ann.run("failback", resume=True, export=scene.directory)
    role = bob.role()
    assert (role.active, role.epoch, role.state) == ("east", 2, "promoted")
    report = bob.run("failback", and_switch=False, export=scene.directory)
    assert (report.outcome, report.loss.records) == ("done", 0), report
    scene.copying(FLOW)
    scene.settled()
