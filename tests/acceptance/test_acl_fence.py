"""The fence of DENY ACLs: writers are kept off by the brokers, and rights are restored exactly."""

import re
import urllib.request

import pytest
from role_changes import LINK, Operator

from replicator.cli.main import run_command
from replicator.testing import SecuritySetup, wait_until
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.topic_acls import topic_acls

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FLOW = "east->west"
BACK = "west->east"
USERS = {"admin": "admin-secret", "ann": "ann-secret", "bob": "bob-secret"}


def rights(cluster):
    return topic_acls(ClusterPlan(cluster.name, tuple(cluster.admin_bootstrap_servers)))


def denied(cluster):
    return {one.principal for one in rights(cluster) if one.permission == "DENY"}


@pytest.fixture
def operator(clusters, scene):
    setup = SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True)
    scene.east, scene.west = clusters("east", "west", security=setup)
    fencing = {"method": "acl", "principals": ["User:ann"]}
    scene.active_passive(scene.east, scene.west, fencing=fencing)
    for cluster in (scene.east, scene.west):
        for user in ("ann", "bob"):
            cluster.allow(user, ["WRITE", "DESCRIBE"], resource="topic")
    scene.east.deny("bob", ["WRITE"], resource="topic", name=scene.topic)
    scene.worker()
    return Operator(scene)


def test_writers_are_refused_by_the_brokers_and_both_ways_lose_nothing(scene, operator):
    east, west = scene.east, scene.west
    writer = scene.writer(east, rate=200, user="ann")
    scene.copying(FLOW)
    before = {cluster.name: rights(cluster) for cluster in (east, west)}
    report = operator.run("switchover", to="west")
    assert (report.outcome, report.fencing) == ("done", "acl"), report
    assert denied(east) == {"User:ann", "User:bob"}
    assert rights(west) == before["west"]
    wait_until(lambda: writer.refused, timeout_seconds=20.0, describe="a refused write")
    writer.stop()
    scene.expect(BACK)
    writer = scene.writer(west, rate=200, user="ann")
    scene.copying(BACK)

    report = operator.run("switchover", to="east")
    assert (report.outcome, report.epoch) == ("done", 2), report
    assert rights(east) == before["east"]
    assert denied(west) == {"User:ann"}
    writer.stop()
    scene.writer(east, rate=200, user="ann")
    scene.copying(FLOW)
    scene.settled()
    for worker in scene.workers:
        worker.terminate()
        assert worker.exit_code(timeout_seconds=60.0) == 0
    line = ["cleanup", "--link", LINK, "-f", str(scene.topology()), "--yes"]
    assert run_command(line) == 0
    assert rights(west) == before["west"], "a link that is given up fences nobody any more"
    assert rights(east) == before["east"]


def test_a_writer_whom_the_fence_does_not_reach_is_noticed_and_rights_are_as_before(
    scene, operator
):
    scene.writer(scene.east, rate=100, user="ann")
    scene.copying(FLOW)
    before = rights(scene.east)
    scene.writer(scene.east, rate=100, user="admin")  # a super user: no ACL binds it
    report = operator.run("switchover", to="west", drain_seconds=8.0)
    assert report.outcome == "rolled-back", report
    assert "writers still write" in report.reason
    assert rights(scene.east) == before
    scene.copying(FLOW)
    scene.settled()


def test_rules_that_nobody_has_on_record_are_told_by_workers_until_they_are_gone(scene, operator):
    """The way to the alert: what the task that looks for them finds is in the status and the metrics of a worker."""
    east, (worker,) = scene.east, scene.workers
    writer = scene.writer(east, rate=100, user="ann")
    scene.copying(FLOW)
    writer.stop()

    def told():
        with urllib.request.urlopen(f"{worker.url()}/metrics", timeout=20) as answer:  # noqa: S310
            metrics = answer.read().decode()
        series = re.findall(
            r'^replicator_problems\{.*code="ACTIVE_FENCED".*\} 1', metrics, re.MULTILINE
        )
        problems = worker.status()[FLOW]["problems"]
        return series, [each for each in problems if each["code"] == "ACTIVE_FENCED"]

    assert told() == ([], [])
    # Left by an operator's process that was killed before its record was written.
    east.deny("ann", ["WRITE"], resource="topic", name=scene.topic)
    series, (problem,) = wait_until(
        lambda: all(told()) and told(), timeout_seconds=100.0, describe="ACTIVE_FENCED"
    )
    assert f'link="{LINK}"' in series[0]
    assert f"DENY WRITE for User:ann stands on {scene.topic}" in problem["detail"]
    east.revoke_all("ann")
    east.allow("ann", ["WRITE", "DESCRIBE"], resource="topic")
    wait_until(
        lambda: told() == ([], []), timeout_seconds=60.0, describe="the end of ACTIVE_FENCED"
    )
    scene.writer(east, rate=100, user="ann")
    scene.copying(FLOW)
    scene.settled()
