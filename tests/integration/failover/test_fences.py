"""A fence is what the cluster has, whatever is on record of it."""

import pytest
from link_lab import Link

from replicator.control.store.role_records import Denial, FenceRecord
from replicator.testing import LocalCluster, SecuritySetup, start_all
from replicator.topology.plan import ClusterPlan
from replicator.wire.topic_acls import topic_acls

USERS = {"admin": "admin-secret", "ann": "ann-secret"}
FENCING = {"method": "acl", "principals": ["User:ann"]}


@pytest.fixture(scope="module")
def secured():
    setup = SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True)
    pair = (LocalCluster("east", security=setup), LocalCluster("west", security=setup))
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


def test_a_fence_on_record_from_an_earlier_transition_does_not_stand_for_rules_that_are_gone(
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
