"""Role changes that come one upon the other: replaced, rolled back, overtaken, or back before anything was copied."""

import contextlib
from dataclasses import replace

import pytest
from link_lab import Link, typed

from replicator.clock import SystemClock
from replicator.control.records.role_records import RoleRecord
from replicator.control.roles.link_facts import link_facts
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.clusters.lag import stored_checkpoints
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.steps.fence_steps import fence_writers
from replicator.failover.steps.journal import Journal, TakenOverError
from replicator.failover.steps.transition_context import TransitionContext
from replicator.testing import LocalCluster, SecuritySetup, start_all
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule
from replicator.testing.kit.ports import free_ports
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.topic_acls import topic_acls

NOT_ALLOWED = 53
"""TRANSACTIONAL_ID_AUTHORIZATION_FAILED: the client gives the producer up, and what it sent is not known."""


class Killed(BaseException):
    """The operator's process ends here."""


class UntilStep(list):
    """Events of a run that is killed as a step begins."""

    def __init__(self, step):
        super().__init__()
        self._step = step

    def append(self, event):
        super().append(event)
        if (event.step, event.state) == (self._step, "began"):
            raise Killed


def killed_at(lab, step, kind, **fields):
    lab.events = UntilStep(step)
    with pytest.raises(Killed):
        lab.run(kind, **fields)
    lab.events = []


def role(lab, cluster):
    return lab.control(cluster).role("dr")


def positions(lab, source, target):
    """Where the flow out of a cluster stands."""
    with lab.clusters(source, target) as clusters:
        found = stored_checkpoints(clusters, clusters.old)
    return {number: one.offset for (_, number), one in found.items()}


def test_a_failover_that_is_rolled_back_leaves_a_promoted_link_promoted(link):
    """As mirroring it would refuse the failback, and nothing would ever be copied to the other cluster."""
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    assert lab.run("failover", to="west", accept_loss=True).outcome == "done"
    killed_at(lab, "promote", "failover", to="east", accept_loss=True)
    report = lab.run("failover", roll_back=True)
    assert report.outcome == "rolled-back", report
    assert (role(lab, lab.west).active, role(lab, lab.west).state) == ("west", "promoted")
    assert lab.run("failback", and_switch=False, export=lab.directory).outcome == "done"


def test_what_never_arrived_before_two_failovers_is_copied_after_the_failback(link):
    """East's last three records were never copied, and east is active again before anything was copied back."""
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    lab.write(lab.east, 3)
    assert lab.run("failover", to="west", accept_loss=True).outcome == "done"
    assert lab.run("failover", to="east", accept_loss=True).outcome == "done"
    lab.write(lab.east, 2)
    killed_at(lab, "catch-up", "failback", export=lab.directory, and_switch=False)
    assert positions(lab, "east", "west") == {0: 5, 1: 5}


def test_a_tail_that_was_injected_between_is_not_copied_after_the_failback(link):
    """The failback to east had put its tail on west, and was ended by a failover before it went on."""
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    lab.write(lab.east, 3)
    assert lab.run("failover", to="west", accept_loss=True).outcome == "done"
    killed_at(lab, "realign", "failback", tail="inject", export=lab.directory, and_switch=False)
    again = lab.run("failover", to="east", accept_loss=True, take_over=True)
    assert again.outcome == "done", again
    lab.write(lab.east, 2)
    killed_at(lab, "catch-up", "failback", export=lab.directory, and_switch=False)
    assert positions(lab, "east", "west") == {0: 8, 1: 5}


def test_a_failover_that_is_refused_leaves_the_one_as_it_is_that_it_was_to_replace(link):
    """Ended before the last look, it would stand with writers fenced and nobody to resume it."""
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    killed_at(lab, "promote", "failover", to="west", accept_loss=True)
    (held,) = lab.control(lab.west).transitions("dr")

    def goes_on():
        now = role(lab, lab.west)
        lab.store(lab.west, now.model_copy(update={"revision": now.revision + 1}))

    lab.before_answer = goes_on
    with pytest.raises(RefusedError, match="the link changed since it was checked"):
        lab.run("failover", to="west", accept_loss=True, take_over=True)
    states = {one.id: one.state for one in lab.control(lab.west).transitions("dr")}
    assert states.pop(held.id) == "open"
    assert list(states.values()) == ["rolled-back"]
    assert lab.run("failover", roll_back=True).outcome == "rolled-back"
    assert role(lab, lab.west).state == "mirroring"


def test_who_got_no_answer_does_not_take_the_journal_back_from_who_took_over(link):
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    killed_at(lab, "promote", "failover", to="west", accept_loss=True)
    (held,) = lab.control(lab.west).transitions("dr")
    unanswered = Rule(Match(Api.END_TXN), Answer(NOT_ALLOWED))
    with ProtocolProxy(lab.west.bootstrap_servers) as proxy, contextlib.ExitStack() as closing:
        west = replace(lab.plan.cluster("west"), bootstrap_servers=tuple(proxy.bootstrap_servers))
        plan = replace(lab.plan, clusters=(lab.plan.cluster("east"), west))
        there = LinkClusters(plan, plan.link("dr"), plan.cluster("east"), west)
        ann = Journal(closing.enter_context(there), held, clock=SystemClock())
        closing.callback(ann.close)
        ann.seize()
        proxy.play([unanswered])
        with pytest.raises(ReplicatorError):
            ann.write([ann.header])
        assert proxy.applied(unanswered) == 1
        bob = Journal(closing.enter_context(lab.clusters()), held, clock=SystemClock())
        closing.callback(bob.close)
        bob.seize()
        with pytest.raises(TakenOverError):
            ann.write([ann.header])
        bob.write([bob.header])


USERS = {"admin": "admin-secret", "ann": "ann-secret"}


@pytest.fixture(scope="module")
def secured():
    setup = SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True)
    pair = (LocalCluster("east", security=setup), LocalCluster("west", security=setup))
    start_all(pair)
    yield pair
    for cluster in pair:
        cluster.stop()


@pytest.fixture
def fenced(secured, tmp_path, unique):
    """A link whose writers are fenced by rules."""
    lab = Link(tmp_path, unique, *secured, fencing={"method": "acl", "principals": ["User:ann"]})
    lab.apply({0: 0, 1: 0})
    return lab


def denied(lab, cluster):
    inside = ClusterPlan(cluster.name, tuple(cluster.admin_bootstrap_servers))
    rules = (one for one in topic_acls(inside) if one.name == lab.topic)
    return {one.principal for one in rules if one.permission == "DENY"}


def test_a_failback_that_is_rolled_back_leaves_the_passive_cluster_fenced(fenced):
    whole, fenced.plan = fenced.plan, fenced.without("east")
    away = {"accept_loss": True, "unreachable_after_seconds": 2.0}
    assert fenced.run("failover", to="west", **away).outcome == "done"
    fenced.plan = whole
    killed_at(fenced, "catch-up", "failback", export=fenced.directory, and_switch=False)
    report = fenced.run("failback", roll_back=True)
    assert report.outcome == "rolled-back", report
    assert role(fenced, fenced.west).active == "west"
    assert denied(fenced, fenced.east) == {"User:ann"}


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["both-answer", "the-other-is-lost"])
def test_a_fence_of_who_slept_while_it_was_rolled_back_is_told_by_all_and_removed_by_a_command(
    fenced, lost
):
    """Brokers fence nobody who changes rules, so who wakes removes none either: somebody may have fenced again."""
    killed_at(fenced, "promote", "failover", to="west", accept_loss=True)
    (held,) = fenced.control(fenced.west).transitions("dr")
    with fenced.clusters() as clusters:
        ann = Journal(clusters, held, clock=SystemClock())
        with contextlib.closing(ann):
            ann.seize()
            fencing = fenced.plan.link("dr").procedure.fencing
            run = TransitionContext(clusters, ann, None, SystemClock(), lambda _: None, fencing)
            true, slept = clusters.admin(clusters.old).create_acls, []

            def create_acls(bindings):
                slept.append(fenced.run("failover", roll_back=True).outcome)
                return true(bindings)

            clusters.admin(clusters.old).create_acls = create_acls
            with pytest.raises(TakenOverError) as told:
                fence_writers(run, clusters.old, fencing)
    assert slept == ["rolled-back"]
    assert f"put up again here: DENY WRITE for User:ann on {fenced.topic}" in told.value.message
    command = "replicator switchover --link dr --rollback"
    assert command in told.value.remedy
    assert denied(fenced, fenced.east) == {"User:ann"}
    states = [fenced.control(one) for one in (fenced.east, fenced.west)]
    facts = link_facts(states, fenced.plan.link("dr"), role(fenced, fenced.east).role())
    (problem,) = facts.problems
    assert problem.code == "ACTIVE_FENCED"
    assert command in problem.remedy

    if lost:  # the role change may be open there, and may have promoted it
        (address,), (port,) = fenced.west.bootstrap_servers, free_ports(1)
        without = fenced.directory / "without-west.yaml"
        without.write_text(fenced.file.read_text().replace(address, f"127.0.0.1:{port}"))
        said = typed(fenced, command, code=3, file=without)
        assert "west does not answer" in said
        command = "replicator failover --link dr --to east"
        assert command in " ".join(said.split())
        assert denied(fenced, fenced.east) == {"User:ann"}
        typed(fenced, f"{command} --accept-loss --yes", file=without)
        assert (role(fenced, fenced.east).active, denied(fenced, fenced.east)) == ("east", set())
        return
    said = typed(fenced, command, code=3)  # rolled back: the link was not switched
    assert "rolled-back a fence of east had stayed" in " ".join(said.split())
    assert denied(fenced, fenced.east) == set()
    after = role(fenced, fenced.east)
    assert (after.active, after.state) == ("east", "mirroring")
    assert "no transition of the link is open" in " ".join(typed(fenced, command, code=3).split())


def test_who_was_overtaken_does_not_fence_the_cluster_that_is_active_now(fenced):
    """Its journal's cluster was out of reach when the link was failed over to the other one."""
    killed_at(fenced, "promote", "failover", to="west", accept_loss=True)
    (held,) = fenced.control(fenced.west).transitions("dr")
    fenced.store(
        fenced.east,
        RoleRecord(link="dr", epoch=2, active="east", state="promoted", since=1, by="bob"),
    )
    with fenced.clusters() as clusters:
        ann = Journal(clusters, held, clock=SystemClock())
        with contextlib.closing(ann):
            ann.seize()
            fencing = fenced.plan.link("dr").procedure.fencing
            run = TransitionContext(clusters, ann, None, SystemClock(), lambda _: None, fencing)
            with pytest.raises(TakenOverError, match="the link has moved on"):
                fence_writers(run, clusters.old, fencing)
    assert denied(fenced, fenced.east) == set()
