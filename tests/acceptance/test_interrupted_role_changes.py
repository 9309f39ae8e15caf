"""The operator's process ends between any two writes of its journal: another one goes on, or takes it back."""

import itertools

import pytest
from role_changes import LINK, Killed, Operator

from replicator.control.role_reading import read_roles
from replicator.errors import RefusedError
from replicator.failover.journal import Journal, open_transition

FLOW = "east->west"
SIDES = {"east": "west", "west": "east"}


class Killer:
    """Ends the operator's process right after its nth write; counts what it would write."""

    def __init__(self, monkeypatch, *, after: int | None) -> None:
        self.writes = 0
        whole = Journal.write

        def write(journal, records):
            whole(journal, records)
            self.writes += 1
            if self.writes == after:
                raise Killed

        monkeypatch.setattr(Journal, "write", write)


@pytest.fixture
def pair(east, west, scene):
    scene.active_passive(east, west, fencing={"method": "manual"})
    scene.worker()
    scene.writer(east, rate=200).wait_acked(200)
    scene.copying(FLOW)
    scene.stop_writing()
    return {"east": east, "west": west}


def interrupted(scene, pair, monkeypatch, *, after):
    """A switchover under load that is killed; returns where to, and the second operator."""
    first, second = Operator(scene, "ann"), Operator(scene, "bob")
    active = first.role().active
    writer = scene.writer(pair[active], rate=200)
    writer.wait_acked(50)
    for one in (first, second):
        one.on = {("fence", "began"): writer.stop}
    with monkeypatch.context() as patch:
        killer = Killer(patch, after=after)
        try:
            report = first.run("switchover", to=SIDES[active])
        except Killed:
            report = None
    writer.stop()
    return SIDES[active], second, report, killer


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
    states = read_roles(operator.plan).states.values()
    return all(open_transition(state, LINK) is None for state in states)


def next_is(scene, pair, active):
    """The active side takes writers and is mirrored."""
    back = SIDES[active]
    scene.expect(f"{active}->{back}")
    scene.writer(pair[active], rate=200).wait_acked(50)
    scene.copying(f"{active}->{back}")
    scene.stop_writing()


@pytest.mark.parametrize("after", [4, pytest.param(13, marks=pytest.mark.slow)])
def test_another_operator_goes_on_after_the_first_one_was_killed(scene, pair, monkeypatch, after):
    to, second, report, _ = interrupted(scene, pair, monkeypatch, after=after)
    assert report is None
    with pytest.raises(RefusedError, match="is open: begun by ann") as refused:
        second.run("switchover", to=to)
    assert refused.value.exit_code == 3
    assert "--resume" in refused.value.remedy
    done = second.run("switchover", resume=True)
    assert (done.outcome, second.role().active, second.role().epoch) == ("done", to, 1)
    next_is(scene, pair, to)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_switchover_killed_after_any_write_is_gone_on_with(scene, pair, monkeypatch):
    for after in itertools.count(1):
        to, second, report, killer = interrupted(scene, pair, monkeypatch, after=after)
        if report is not None:
            assert killer.writes < after
            break
        if nothing_open(second):
            assert second.role().active == to
            next_is(scene, pair, to)
            continue
        done = second.run("switchover", resume=True)
        assert (done.outcome, second.role().active) == ("done", to), after
        assert second.role().epoch == after
        next_is(scene, pair, to)
    assert after > 10
    scene.expect("west->east")
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_switchover_killed_after_any_write_is_taken_back_until_it_was_promoted(
    scene, pair, monkeypatch
):
    taken_back = 0
    for after in itertools.count(1):
        to, second, report, _ = interrupted(scene, pair, monkeypatch, after=after)
        if report is not None:
            break
        if nothing_open(second):
            next_is(scene, pair, to)
            continue
        done = taken(second)
        if done is None:
            done = second.run("switchover", resume=True)
            assert (done.outcome, second.role().active) == ("done", to)
        else:
            taken_back += 1
            assert (done.outcome, second.role().active) == ("rolled-back", SIDES[to])
            assert second.role().state == "mirroring"
        next_is(scene, pair, second.role().active)
    assert taken_back > 6
    scene.expect("west->east")
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_failover_and_a_failback_killed_after_any_write_are_gone_on_with(
    scene, pair, monkeypatch, tmp_path
):
    scene.expect("west->east")
    whole: set[str] = set()
    for after in itertools.count(1):
        for kind in ("failover", "failback"):
            ann, bob = Operator(scene, "ann"), Operator(scene, "bob")
            options = {"export": tmp_path, "manual_fence": True}
            with monkeypatch.context() as patch:
                Killer(patch, after=None if kind in whole else after)
                try:
                    report = ann.run(kind, to=SIDES[ann.role().active], **options)
                    whole.add(kind)
                except Killed:
                    report = None
            if report is None and not nothing_open(bob):
                report = bob.run(kind, resume=True, **options)
            assert report is None or report.outcome == "done", (kind, after, report)
        assert bob.role().active == "east"
        if len(whole) == 2:
            break
    next_is(scene, pair, "east")
    scene.settled()
