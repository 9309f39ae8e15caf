"""The operator's process is killed by SIGKILL at an instant of its journal; another one goes on, or takes it back."""

import json

import pytest
from journal_watch import Command, JournalWatch
from role_changes import LINK, Operator

FLOW = "east->west"
BACK = "west->east"
SWITCHOVER = ("switchover", "--link", LINK)


@pytest.fixture
def operator(east, west, scene):
    """A link that mirrors, with nobody writing: the fence is a word."""
    scene.active_passive(east, west, fencing={"method": "manual"})
    scene.worker()
    scene.writer(east, rate=300).wait_acked(200)
    scene.copying(FLOW)
    scene.stop_writing()
    return Operator(scene)


def killed_at(scene, cluster, instant, *words):
    """Runs a command as ann and kills it as soon as its journal says so; returns whether that was before its end.

    The entry may be read so late, on a machine that has much to do, that the transition has ended before the kill.
    """
    with JournalWatch(cluster, scene.name) as journal:
        command = Command(scene, "ann", *words, "--yes")
        seen = journal.until(instant, or_else=lambda: not command.running)
        command.kill()
        journal.look_at_all()
    assert seen, command.said()
    return not {"done", "rolled-back"} & set(journal.states)


def report_of(said):
    """The report that a command printed as JSON, behind what it said on the way."""
    return json.loads(said[said.index("{\n") :])


def next_is(scene, active, source, flow):
    """The active side takes writers and is mirrored."""
    scene.expect(flow)
    scene.writer(source, rate=300).wait_acked(50)
    scene.copying(flow)
    scene.settled()
    assert Operator(scene).role().active == active


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "instant",
    [
        pytest.param(("prepare", "intent"), marks=SLOW),
        pytest.param(("fence", "intent"), marks=SLOW),
        pytest.param(("fence", "done"), marks=SLOW),
        pytest.param(("verify", "done"), marks=SLOW),
        ("promote", "intent"),
        pytest.param(("promote", "done"), marks=SLOW),
        pytest.param(("turn", "intent"), marks=SLOW),
        pytest.param(("release", "intent"), marks=SLOW),
    ],
    ids=" ".join,
)
def test_a_switchover_whose_process_was_killed_is_resumed_by_another_operator(
    west, scene, operator, instant
):
    in_time = killed_at(scene, west, instant, *SWITCHOVER, "--to", "west")
    code, said = Command(scene, "bob", *SWITCHOVER, "--resume", "--yes", "-o", "json").ended()
    if not in_time:
        assert "no transition of the link is open" in said
        next_is(scene, "west", west, BACK)
        return
    assert code == 0, said
    report = report_of(said)
    assert (report["outcome"], report["epoch"]) == ("done", 1)
    assert report["by"].startswith("bob@")
    assert [step["step"] for step in report["steps"]] == [
        "prepare", "fence", "drain", "verify", "promote", "turn", "release",
    ]  # fmt: skip
    next_is(scene, "west", west, BACK)


@pytest.mark.slow
def test_the_second_operator_learns_who_began_it_and_what_to_do(west, scene, operator):
    killed_at(scene, west, ("drain", "intent"), *SWITCHOVER, "--to", "west")
    code, said = Command(scene, "bob", *SWITCHOVER, "--to", "west", "--yes").ended()
    assert code == 3, said
    assert "is open: begun by ann@" in said
    for words in ("--resume", "--rollback"):
        assert f"replicator switchover --link {LINK} {words}" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "instant",
    [("prepare", "intent"), ("fence", "intent"), ("fence", "done"), ("verify", "done")],
    ids=" ".join,
)
def test_a_switchover_whose_process_was_killed_is_rolled_back_by_another_operator(
    east, west, scene, operator, instant
):
    killed_at(scene, west, instant, *SWITCHOVER, "--to", "west")
    code, said = Command(scene, "bob", *SWITCHOVER, "--rollback", "--yes", "-o", "json").ended()
    assert code == 3, said
    assert report_of(said)["outcome"] == "rolled-back"
    role = operator.role()
    assert (role.active, role.state) == ("east", "mirroring")
    next_is(scene, "east", east, FLOW)


@pytest.mark.slow
@pytest.mark.parametrize(
    "instant",
    [("salvage", "intent"), ("realign", "intent"), ("catch-up", "intent"), ("promote", "intent")],
    ids=" ".join,
)
def test_a_failback_whose_process_was_killed_is_resumed_by_another_operator(
    east, west, scene, operator, instant
):
    done = operator.run("failover", to="west", accept_loss=True)
    assert done.outcome == "done"
    scene.writer(west, rate=300).wait_acked(100)
    scene.stop_writing()
    failback = ("failback", "--link", LINK, "--export", str(scene.directory))
    killed_at(scene, west, instant, *failback)
    code, said = Command(scene, "bob", *failback, "--resume", "--yes", "-o", "json").ended()
    assert code == 0, said
    report = report_of(said)
    assert (report["outcome"], report["loss"]["records"]) == ("done", 0)
    scene.expect(BACK)
    next_is(scene, "east", east, FLOW)
