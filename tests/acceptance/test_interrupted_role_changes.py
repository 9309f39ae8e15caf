"""The operator's process ends between any two writes of its journal: another one goes on, or takes it back.

Every write counts, on either side. Points are tried in ranges, so that each test takes some minutes; the
last range of a sequence goes on until a run comes to its end without having been interrupted.
"""

import itertools

import pytest
from role_changes import LINK, Killed, Operator

from replicator.control.roles.open_transitions import open_transition
from replicator.control.roles.read import read_roles
from replicator.errors import RefusedError
from replicator.failover.steps.journal import Journal

pytestmark = pytest.mark.slow

SIDES = {"east": "west", "west": "east"}


class Killer:
    """Ends the operator's process right after its nth write; counts what it would write."""

    def __init__(self, monkeypatch, *, after: int | None) -> None:
        self.writes = 0
        self._after = after
        for name in ("_write", "_write_to"):
            monkeypatch.setattr(Journal, name, self._counted(getattr(Journal, name)))

    def _counted(self, whole):
        def write(journal, *arguments, **options):
            outcome = whole(journal, *arguments, **options)
            self.writes += 1
            if self.writes == self._after:
                raise Killed
            return outcome

        return write


def run_killed(operator, monkeypatch, kind, *, after, **fields):
    """The report of a run that is killed after a write; None when it was, and how often it wrote."""
    with monkeypatch.context() as patch:
        killer = Killer(patch, after=after)
        try:
            return operator.run(kind, **fields), killer.writes
        except Killed:
            return None, killer.writes


@pytest.fixture
def pair(east, west, scene):
    """A link that mirrors."""
    scene.active_passive(east, west, fencing={"method": "manual"})
    scene.worker()
    scene.writer(east, rate=200).wait_acked(200)
    scene.copying("east->west")
    scene.settled()
    return {"east": east, "west": west}


def interrupted(scene, pair, monkeypatch, *, after):
    """A switchover under load that is killed; returns where to, and its report if it was not."""
    ann = Operator(scene, "ann")
    active = ann.role().active
    writer = scene.writer(pair[active], rate=200)
    writer.wait_acked(50)
    ann.on = {("fence", "began"): writer.stop}
    report, _ = run_killed(ann, monkeypatch, "switchover", after=after, to=SIDES[active])
    writer.stop()
    return SIDES[active], report


def taken(operator):
    """The report of a rollback; None where it was refused because the new side was promoted."""
    try:
        return operator.run("switchover", roll_back=True)
    except RefusedError as refused:
        if "promoted" not in refused.message:
            raise
        return None


def nothing_open(operator):
    """Whether the first operator was killed right after the last write: there is nothing to go on with."""
    return open_transition(read_roles(operator.plan).states.values(), LINK) is None


def next_is(scene, pair, active):
    """The active side takes writers and is mirrored."""
    back = SIDES[active]
    scene.expect(f"{active}->{back}")
    scene.writer(pair[active], rate=200).wait_acked(20)
    scene.copying(f"{active}->{back}")
    scene.stop_writing()


@pytest.mark.parametrize("after", [5, 19])
def test_another_operator_goes_on_after_the_first_one_was_killed(scene, pair, monkeypatch, after):
    to, report = interrupted(scene, pair, monkeypatch, after=after)
    assert report is None
    bob = Operator(scene, "bob")
    with pytest.raises(RefusedError, match="is open: begun by ann") as refused:
        bob.run("switchover", to=to)
    assert refused.value.exit_code == 3
    assert "--resume" in refused.value.remedy
    done = bob.run("switchover", resume=True)
    assert (done.outcome, bob.role().active, bob.role().epoch) == ("done", to, 1)
    next_is(scene, pair, to)
    scene.settled()


NEVER = 100
"""No sequence writes so often: a range that ends here goes on until a run is not interrupted."""

POINTS = [range(1, 9), range(9, 17), range(17, NEVER)]


def shown(points):
    """A range in the name of a test."""
    return f"{points.start}-{'end' if points.stop == NEVER else points.stop - 1}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("points", POINTS, ids=shown)
def test_a_switchover_killed_after_any_write_can_be_resumed(scene, pair, monkeypatch, points):
    for turned, after in enumerate(points, start=1):
        to, report = interrupted(scene, pair, monkeypatch, after=after)
        bob = Operator(scene, "bob")
        if report is None and not nothing_open(bob):
            done = bob.run("switchover", resume=True)
            assert done.outcome == "done", after
        assert (bob.role().active, bob.role().epoch) == (to, turned), after
        next_is(scene, pair, to)
        if report is not None:
            break
    assert (report is not None) == (points.stop == NEVER), after
    scene.settled()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("points", POINTS, ids=shown)
def test_a_switchover_killed_after_any_write_can_be_rolled_back_until_it_was_promoted(
    scene, pair, monkeypatch, points
):
    taken_back = 0
    for after in points:
        to, report = interrupted(scene, pair, monkeypatch, after=after)
        bob = Operator(scene, "bob")
        if report is None and not nothing_open(bob):
            done = taken(bob)
            if done is None:
                done = bob.run("switchover", resume=True)
                assert (done.outcome, bob.role().active) == ("done", to), after
            else:
                taken_back += 1
                assert (done.outcome, bob.role().active) == ("rolled-back", SIDES[to]), after
                assert bob.role().state == "mirroring"
        next_is(scene, pair, bob.role().active)
        if report is not None:
            break
    if points.stop < NEVER:
        assert taken_back == len(points)  # what can be taken back is in the first ranges
    scene.settled()


@pytest.mark.timeout(600)
def test_a_rollback_that_is_killed_after_any_write_is_never_gone_forward_from(
    scene, pair, monkeypatch
):
    for after in itertools.count(1):
        to, report = interrupted(scene, pair, monkeypatch, after=11)  # the fence holds
        assert report is None
        bob, eve = Operator(scene, "bob"), Operator(scene, "eve")
        report, _ = run_killed(bob, monkeypatch, "switchover", after=after, roll_back=True)
        if report is None and not nothing_open(eve):
            again = eve.run("switchover", resume=True)
            assert (again.outcome, again.reason) == (
                "rolled-back",
                "requested, and the new cluster was not promoted",
            ), after
        role = eve.role()
        assert (role.active, role.state) == (SIDES[to], "mirroring"), after
        next_is(scene, pair, SIDES[to])
        if report is not None:
            break
    assert after > 3
    scene.settled()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "points",
    [*(range(first, first + 6) for first in (1, 7, 13, 19, 25)), range(31, NEVER)],
    ids=shown,
)
def test_a_failover_and_a_failback_killed_after_any_write_are_gone_on_with(
    scene, pair, monkeypatch, points
):
    scene.expect("west->east")
    options = {"export": scene.directory, "manual_fence": True, "tail": "inject"}
    for after in points:
        whole = []
        for kind in ("failover", "failback"):
            ann, bob = Operator(scene, "ann"), Operator(scene, "bob")
            report, _ = run_killed(
                ann, monkeypatch, kind, after=after, to=SIDES[ann.role().active], **options
            )
            whole.append(report is not None)
            if report is None and not nothing_open(bob):
                report = bob.run(kind, resume=True, **options)
            assert report is None or report.outcome == "done", (kind, after, report)
        assert bob.role().active == "east"
        if all(whole):
            break
    assert all(whole) == (points.stop == NEVER), after
    next_is(scene, pair, "east")
    scene.settled()
