"""Rights are carried over between clusters whose authorizer enforces them."""

import asyncio
import json
import sys
import urllib.request

import pytest
from confluent_kafka import Producer
from producing import produce
from topology_files import active_passive, write_topology

from replicator.cli.main import run_command
from replicator.clock import SystemClock
from replicator.control.store.state import EMPTY
from replicator.control.tasks.sync.acls import acl_task
from replicator.control.tasks.task import TaskContext
from replicator.errors import AuthorizerMissingError, NotAuthorizedError
from replicator.testing import SecuritySetup, wait_until
from replicator.testing.kit.child_processes import start_child
from replicator.topology.file.load import require_plan
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.fetch_one import fetch_record
from replicator.wire.requests.topic_acls import topic_acls

pytestmark = pytest.mark.timeout(240)

USERS = {"admin": "admin-secret", "replicator": "replicator-secret", "ann": "ann-secret"}
LEAST = {"east": "DESCRIBE", "west": "ALTER"}
"""What ACL sync needs on the cluster resource, beside what copying needs."""


@pytest.fixture
def secured(clusters):
    """East and west with authorizers; the replicator may copy, but knows nothing of ACLs."""
    setup = SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True)
    pair = clusters("east", "west", security=setup)
    for cluster in pair:
        for resource in ("topic", "group", "transactional-id"):
            cluster.allow("replicator", ["ALL"], resource=resource)
    return pair


@pytest.fixture
def topology(tmp_path):
    def write(name, *clusters, user=None, **link):
        path = tmp_path / f"topology-{user}.yaml"
        entries = {one.name: one.topology_entry(user) for one in clusters}
        link = active_passive([], sync={"acls": True}) | link
        return write_topology(path, name, entries, [link], defaults={"discoveryInterval": "1s"})

    return write


@pytest.fixture
def run(capsys):
    def command(*arguments):
        capsys.readouterr()
        code = run_command([*(str(argument) for argument in arguments), "-o", "json"])
        printed = capsys.readouterr()
        assert printed.out, printed.err
        return code, json.loads(printed.out)

    return command


def every_acl(cluster):
    """As the cluster's own users see it."""
    inside = ClusterPlan(cluster.name, tuple(cluster.admin_bootstrap_servers))
    return topic_acls(inside)


def held_by(cluster, user):
    """Rights on topics as (pattern, name, operation, permission)."""
    return {
        (one.pattern, one.name, one.operation, one.permission)
        for one in every_acl(cluster)
        if one.principal == f"User:{user}"
    }


def may_read(path, topic):
    at = require_plan(path).cluster("west")
    try:
        return fetch_record(at, topic, 0, 0, timeout_seconds=20).value == b"v"
    except NotAuthorizedError:
        return False


def may_write(cluster, user, topic):
    outcomes = []
    producer = Producer(cluster.client_settings(user))
    producer.produce(topic, b"v", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(20)
    assert len(outcomes) == 1
    return outcomes[0] is None


def test_plan_shows_rights_apply_adds_them_and_readers_may_read_the_copies(
    secured, topology, run, unique
):
    east, west = secured
    orders, secret = f"{unique}.orders", f"{unique}.secret"
    for topic in (orders, secret):
        for cluster in secured:
            cluster.create_topic(topic)
        produce(west, topic, [b"v"], settings=west.client_settings("admin"))
    east.allow("ann", ["ALL"], name=f"{unique}.", prefixed=True)
    east.allow("ann", ["WRITE", "DESCRIBE_CONFIGS"], name=orders)
    east.deny("ann", ["READ"], name=secret)
    east.allow("ann", ["READ"], resource="group", name="any")
    west.allow("ann", ["READ"], resource="group", name="any")
    for cluster in secured:
        cluster.allow("replicator", [LEAST[cluster.name]], resource="cluster", name="kafka-cluster")
    topics = {"include": [f"{unique}.*"]}
    as_ann = topology(unique, *secured, user="ann", topics=topics)
    path = topology(unique, *secured, user="replicator", topics=topics)

    _, shown = run("plan", "-f", path)
    assert shown["problems"] == []
    of_ann = {
        (change["subject"], change["to"])
        for change in shown["changes"]
        if change["kind"] == "acl" and "User:ann" in change["to"]
    }
    assert of_ann == {
        (f"{unique}.*", "ALLOW READ to User:ann from *"),
        (orders, "ALLOW DESCRIBE_CONFIGS to User:ann from *"),
        (secret, "DENY READ to User:ann from *"),
    }
    assert held_by(west, "ann") == set()
    assert not may_read(as_ann, orders)

    code, done = run("apply", "-f", path, "--yes")
    assert (code, done["problems"]) == (0, [])
    wanted = {
        ("PREFIXED", f"{unique}.", "READ", "ALLOW"),
        ("LITERAL", orders, "DESCRIBE_CONFIGS", "ALLOW"),
        ("LITERAL", secret, "READ", "DENY"),
    }
    wait_until(
        lambda: held_by(west, "ann") == wanted, timeout_seconds=30, describe="the rights on west"
    )
    wait_until(lambda: may_read(as_ann, orders), timeout_seconds=20, describe="the right")
    assert not may_read(as_ann, secret)
    assert may_write(east, "ann", orders)
    assert not may_write(west, "ann", orders)
    _, again = run("plan", "-f", path)
    assert [change for change in again["changes"] if change["kind"] == "acl"] == []


def test_a_missing_right_to_carry_rights_is_named_and_works_once_granted(secured, topology, unique):
    east, west = secured
    east.create_topic(unique)
    east.allow("ann", ["READ"], name=unique)
    path = topology(
        unique, *secured, user="replicator", topics={"include": [unique]}, naming="prefix"
    )
    plan = require_plan(path)
    context = TaskContext(
        plan, plan.pairs[0], SystemClock(), "test", _stores_nothing, lambda: EMPTY, {}
    )
    task = acl_task(context)
    try:
        for cluster, right in ((east, "DESCRIBE"), (west, "ALTER")):
            problems = asyncio.run(task.run())
            (found,) = [each for each in problems if each.detail.startswith(cluster.name)]
            assert (found.code, found.subject) == ("NOT_AUTHORIZED", "dr")
            assert f"Allow {right} on the cluster" in found.remedy
            cluster.allow("replicator", [right], resource="cluster", name="kafka-cluster")

        def carried():
            assert isinstance(asyncio.run(task.run()), tuple)
            return held_by(west, "ann") == {("LITERAL", f"east.{unique}", "READ", "ALLOW")}

        wait_until(carried, timeout_seconds=30, describe="the right on west")
    finally:
        task.close()


def test_without_an_authorizer_it_is_one_problem_with_a_remedy_and_records_go_on(
    east_and_west, topology, run, unique, tmp_path
):
    east, west = east_and_west
    east.create_topic(unique)
    produce(east, unique, [b"v"])
    path = topology(unique, east, west, topics={"include": [unique]})
    with pytest.raises(AuthorizerMissingError):
        every_acl(east)

    _, shown = run("plan", "-f", path)
    found = [each for each in shown["problems"] if each["code"] == "TARGET_REFUSES"]
    assert [each["detail"].partition(":")[0] for each in found] == ["east", "west"]
    assert all("sync.acls to false" in each["remedy"] for each in found)

    log = tmp_path / "worker.log"
    worker = start_child(
        [
            sys.executable, "-m", "replicator", "run", "-f", path, "--processes", "1",
            "--http", "127.0.0.1:0", "--log-format", "json",
        ],
        output=log,
    )  # fmt: skip
    try:
        wait_until(
            lambda: '"url"' in log.read_text().rpartition("\n")[0],
            timeout_seconds=60,
            describe="the HTTP face",
        )
        url = next(
            json.loads(line)["url"]
            for line in log.read_text().splitlines()
            if '"url"' in line and line.endswith("}")
        )

        def status():
            with urllib.request.urlopen(f"{url}/api/v1/status", timeout=30) as answer:  # noqa: S310  our own address
                return json.load(answer)["flows"][0]

        def told():
            flow = status()
            refused = [each for each in flow["problems"] if each["code"] == "TARGET_REFUSES"]
            return refused and flow["lagRecords"] == 0 and flow["topics"]

        wait_until(
            told, timeout_seconds=60, interval_seconds=0.5,
            describe=lambda: f"the problem; the log ends: {log.read_text()[-3000:]}",
        )  # fmt: skip
        with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:  # noqa: S310  our own address
            assert answer.status == 200
    finally:
        worker.kill()
        worker.wait(20)


async def _stores_nothing(_):
    return None
