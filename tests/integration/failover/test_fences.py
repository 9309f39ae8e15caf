"""A fence is what the cluster has, whatever is on record of it."""

import asyncio
import contextlib

import pytest
from link_lab import Link, failed

from replicator.clock import SystemClock
from replicator.control.records.role_records import Denial, FenceRecord
from replicator.control.tasks.registry import tasks_of
from replicator.control.tasks.task import TaskContext
from replicator.control.tasks.watch.denied_writers import DeniedWritersTask
from replicator.policy.copies.acl_rules import write_denial
from replicator.testing import LocalCluster, SecuritySetup, start_all, wait_until
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.topic_acls import topic_acls

USERS = {"admin": "admin-secret", "ann": "ann-secret"}
FENCING = {"method": "acl", "principals": ["User:ann"]}


@pytest.fixture(scope="module")
def secured():
    setup = SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True)
    open_to_all = {"allow.everyone.if.no.acl.found": "true"}
    pair = (
        LocalCluster("east", security=setup, config=open_to_all),
        LocalCluster("west", security=setup),
    )
    start_all(pair)
    yield pair
    for cluster in pair:
        cluster.stop()


def denied(cluster):
    inside = ClusterPlan(cluster.name, tuple(cluster.admin_bootstrap_servers))
    return {
        (one.name, one.principal) for one in topic_acls(inside) if one.permission == "DENY"
    }  # fmt: skip


def stale(link, cluster, *, epoch, denials=()):
    return FenceRecord(
        link="dr", cluster=cluster, method="acl", state="held", transition="earlier", epoch=epoch,
        at_ms=1, by="bob", denials=denials,
    )  # fmt: skip


def test_a_fence_on_record_from_an_earlier_transition_does_not_replace_rules_that_are_gone(
    secured, tmp_path, unique
):
    link = Link(tmp_path, unique, *secured, fencing=FENCING)
    link.apply({0: 0, 1: 0})
    gone = Denial(pattern="LITERAL", name=link.topic, principal="User:ann")
    link.store(link.west, stale(link, "east", epoch=0, denials=(gone,)))
    report = link.run("failover", accept_loss=True)
    assert report.outcome == "done", report
    assert (link.topic, "User:ann") in denied(link.east)
    held = link.control(link.west).fence("dr", "east")
    assert (held.transition, held.state, held.denials) == (report.id, "held", (gone,))

    # Its rules are removed by hand while it is passive: the next change that needs them adds them again.
    with link.clusters() as clusters:
        removed = [one for one in topic_acls(link.plan.cluster("east")) if one.permission == "DENY"]
        clusters.admin(clusters.old).delete_acls(removed)
    assert denied(link.east) == set()
    report = link.run("failback", and_switch=False, export=tmp_path)
    assert report.outcome == "done", report
    assert (link.topic, "User:ann") in denied(link.east)


def test_topics_without_rules_are_named_before_a_deny_shuts_their_readers_out(
    secured, tmp_path, unique
):
    link = Link(tmp_path, unique, *secured, fencing=FENCING)
    link.apply({0: 0, 1: 0})
    check = failed(link.run("switchover", dry_run=True))["fencing"]
    assert f"no ACL speaks of {link.topic}" in check.detail
    assert "ALLOW" in check.remedy
    link.east.allow("ann", ["READ", "WRITE"], resource="topic", name=link.topic)
    wait_until(
        lambda: "fencing" not in failed(link.run("switchover", dry_run=True)),
        timeout_seconds=10.0, describe="the rule to be seen",
    )  # fmt: skip

    # Where nobody is let in without a rule, a DENY takes nothing from readers.
    link.role("west", "mirroring", 1)
    assert "fencing" not in failed(link.run("switchover", dry_run=True))


def watching(link):
    """The task of a worker that looks for rules which nobody has on record; what it finds in one look."""
    (pair,) = link.plan.pairs

    def controls():
        with link.clusters() as clusters:
            return {str(one.alias): clusters.control(one) for one in (clusters.old, clusters.new)}

    context = TaskContext(
        plan=link.plan, pair=pair, clock=SystemClock(), client_id="test", store=None,
        control=lambda: controls()["west"], figures={}, controls=controls,
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        tasks = [stack.enter_context(contextlib.closing(one)) for one in tasks_of(context)]
        (task,) = (one for one in tasks if isinstance(one, DeniedWritersTask))
    return lambda: asyncio.run(task.run())


def test_rules_of_a_fence_that_nobody_has_on_record_are_found_on_the_cluster(
    secured, tmp_path, unique
):
    link = Link(tmp_path, unique, *secured, fencing=FENCING)
    link.apply({0: 0, 1: 0})
    look = watching(link)
    assert look() == look() == ()

    # The operator's process is killed once the rules are there, and its record is rolled back.
    rule = write_denial(link.topic, "User:ann")
    with link.clusters() as clusters:
        clusters.admin(clusters.old).create_acls([rule])
        wait_until(
            lambda: rule in topic_acls(clusters.old), timeout_seconds=10, describe="the rule"
        )
        assert look() == (), "one look may meet a fence that is just being put up or removed"
        (problem,) = look()
        assert (problem.code, problem.subject) == ("ACTIVE_FENCED", "dr")
        assert (
            f"DENY WRITE for User:ann stands on {link.topic} (1 of 1 topics) on east"
            in problem.detail
        )
        assert "--remove --operation Write" in problem.remedy

        # A fence on record is told by everybody who reads it, and a passive cluster is to be fenced.
        held = Denial(pattern="LITERAL", name=link.topic, principal="User:ann")
        link.store(link.west, stale(link, "east", epoch=0, denials=(held,)))
        assert look() == look() == ()
        clusters.admin(clusters.old).delete_acls([rule])
    link.role("west", "mirroring", 1)
    assert look() == look() == ()
