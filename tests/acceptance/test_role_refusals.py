"""What must not be done is refused with a reason and a remedy; two operators never both go on."""

import json
import threading

import pytest
from role_changes import LINK, Operator

from replicator.cli.main import run_command
from replicator.errors import InputError, RefusedError, ReplicatorError
from replicator.failover.run.history import history
from replicator.testing import GroupReader, Recorder, wait_until
from replicator.testing.checker.history import Committed

FLOW = "east->west"
BACK = "west->east"


@pytest.fixture
def mirroring(east, west, scene):
    scene.active_passive(east, west)
    scene.worker()
    scene.busy = scene.writer(east, rate=200)
    scene.copying(FLOW)
    return Operator(scene)


def failed_checks(report):
    return {check.check: check for check in report.checks if not check.ok}


def test_bad_requests_are_refused_and_change_nothing(east, west, scene, mirroring, capsys):
    operator, group = mirroring, f"{scene.name}-billing"
    with pytest.raises(InputError, match="no link 'nothing'"):
        Operator(scene).run_link("nothing", "switchover", to="west")
    with pytest.raises(InputError, match="'south' is not a cluster of link"):
        operator.run("switchover", to="south")
    with pytest.raises(RefusedError, match="east is the active cluster already"):
        operator.run("switchover", to="east")
    with pytest.raises(RefusedError, match="no transition of the link is open"):
        operator.run("switchover", resume=True)

    unfenced = operator.run("switchover", to="west")
    assert unfenced.outcome == "refused"
    assert "--manual-fence" in failed_checks(unfenced)["fencing"].remedy
    unasked = operator.run("switchover", to="west", manual_fence=True, yes=False)
    assert (unasked.outcome, unasked.reason) == ("refused", "not confirmed")

    # One group at work on both sides reads everything twice: no case for the checker.
    seen = Recorder()
    readers = [
        GroupReader(side, [scene.topic], group=group, history=seen).start() for side in (west, east)
    ]

    def at_work():  # a group without a position has nothing that could be carried over
        return {one.cluster for one in seen.events() if isinstance(one, Committed)} == {
            "west",
            "east",
        }

    wait_until(at_work, timeout_seconds=60.0, describe="the group's positions on both sides")
    live = operator.run("switchover", to="west", manual_fence=True)
    assert live.outcome == "refused", live.reason
    assert group in failed_checks(live)["groups off the new side"].detail
    for reader in readers:
        reader.stop()

    lost = operator.run("failback")
    assert "not failed over" in failed_checks(lost)["role"].remedy

    # Lanes that find another topology of these clusters look for its copies, and copy nothing for a moment.
    def planned():
        report = operator.run("switchover", to="west", manual_fence=True, dry_run=True)
        return report if failed_checks(report).keys() != {"copying"} else None

    dry = wait_until(planned, timeout_seconds=60.0, describe="a flow that copies")
    assert dry.outcome == "done"
    assert [step.step for step in dry.steps][:3] == ["prepare", "fence", "drain"]
    assert operator.role().epoch == 0
    assert not operator.role().since_ms

    def refused():
        capsys.readouterr()
        code = run_command(
            ["switchover", "--link", LINK, "--to", "west", "--yes", "-o", "json",
             "-f", str(scene.topology())]
        )  # fmt: skip
        printed = json.loads(capsys.readouterr().out)
        assert code == 3
        assert printed["outcome"] == "refused"
        return {check["check"] for check in printed["checks"] if not check["ok"]}

    failed = wait_until(
        lambda: failed if "copying" not in (failed := refused()) else None,
        timeout_seconds=60.0,
        describe="a flow that copies",
    )
    assert failed == {"fencing"}
    scene.settled()


@pytest.mark.slow
def test_writers_that_bypass_the_fence_roll_the_switchover_back(scene, mirroring):
    report = mirroring.run("switchover", to="west", manual_fence=True, drain_seconds=8.0)
    assert report.outcome == "rolled-back"
    assert "writers still write" in report.reason
    assert (mirroring.role().active, mirroring.role().state) == ("east", "mirroring")
    scene.copying(FLOW)
    scene.settled()


def test_a_writer_that_comes_back_after_the_fence_rolls_the_switchover_back(east, scene, mirroring):
    def sneak() -> None:
        scene.writer(east, rate=100, max_records=5).join()

    mirroring.on = {
        ("fence", "began"): scene.busy.stop,
        ("verify", "began"): sneak,
    }
    report = mirroring.run("switchover", to="west", manual_fence=True)
    assert report.outcome == "rolled-back"
    assert "past the fence" in report.reason
    scene.writer(east, rate=100)
    scene.copying(FLOW)
    scene.settled()


def test_of_two_operators_at_once_one_continues_and_the_other_learns_who_it_is(scene, mirroring):
    scene.busy.stop()
    operators = [mirroring, Operator(scene, "bob")]
    outcomes: dict[str, object] = {}

    def go(operator: Operator) -> None:
        try:
            outcomes[operator.name] = operator.run("switchover", to="west", manual_fence=True)
        except ReplicatorError as error:
            outcomes[operator.name] = error

    threads = [threading.Thread(target=go, args=(operator,)) for operator in operators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [one for one in outcomes.values() if isinstance(one, RefusedError)]
    done = [one for one in outcomes.values() if not isinstance(one, ReplicatorError)]
    assert len(refused) == len(done) == 1, outcomes
    assert refused[0].exit_code == 3
    reasons = ("is open: begun by", "already", "changed since it was checked")
    assert any(reason in refused[0].message for reason in reasons), refused[0].message
    assert (mirroring.role().active, mirroring.role().epoch) == ("west", 1)
    scene.expect(BACK)
    scene.settled()


@pytest.mark.slow
def test_an_answer_that_comes_after_another_operator_reversed_the_link_changes_nothing(
    west, scene, mirroring
):
    scene.busy.stop()
    bob = Operator(scene, "bob")
    bob.before_answer = lambda: mirroring.run("switchover", to="west", manual_fence=True)
    with pytest.raises(RefusedError, match="changed since it was checked: west is active"):
        bob.run("switchover", to="west", manual_fence=True)
    role = mirroring.role()
    assert (role.active, role.epoch, role.state) == ("west", 1, "mirroring")
    (mine,) = (one for one in history(bob.plan, LINK)["entries"] if one["by"] == "bob")
    assert mine["outcome"] == "rolled-back"
    assert "west is active in epoch 1" in mine["reason"]
    scene.expect(BACK)
    scene.writer(west, rate=200).wait_acked(50)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_that_slept_through_a_switchover_writes_nothing_when_it_wakes(
    east, west, scene, mirroring
):
    zombie = scene.asked()
    other = scene.worker()
    wait_until(
        lambda: scene.lanes(other, FLOW), timeout_seconds=60.0, describe="lanes of two workers"
    )
    asleep = scene.lanes(zombie, FLOW)
    assert asleep
    zombie.pause()
    wait_until(
        lambda: len(scene.lanes(other, FLOW)) == 4,
        timeout_seconds=60.0,
        describe="the other worker to have all lanes",
    )
    mirroring.on = {("fence", "began"): scene.busy.stop}
    report = mirroring.run("switchover", to="west", manual_fence=True)
    assert report.outcome == "done", report
    scene.expect(BACK)
    writer = scene.writer(west, rate=200, epoch=lambda: 1)
    scene.copying(BACK)
    zombie.resume()
    writer.wait_acked(1000)
    scene.settled()
