"""The documented rights of Spark's commands: enough, and each is needed."""

import json
import threading
import time

import pytest
from copied_pair import plain, write
from documented_rights import Right, grant, left_without, needs_of, rights_of
from limited_users import LimitedUsers, run, setup_users, user_names
from topology_files import active_passive, write_topology

from replicator.clock import SystemClock
from replicator.control.backfill.handover import (
    read_control_past_open_transactions,
    take_from_lanes,
)
from replicator.errors import NotAuthorizedError, ReplicatorError
from replicator.identifiers import audit_topic, restores_topic
from replicator.spark.copy.bulk_plan import declarations, orders, survey
from replicator.spark.copy.task import copy_order
from replicator.spark.stream.driver import FlowStream
from replicator.testing import LocalCluster, SecuritySetup, start_all, wait_until
from replicator.topology.file.load import require_plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COMMANDS = ("verify", "audit", "archive", "restore", "bulk-sync")
USERS = setup_users(
    *(user_names(who, needs_of(who)) for who in (*COMMANDS, "stream")),
    ["looking", "bulk-sync-with-spark", *(f"late-{number}" for number in range(4))],
)
NAME, FLOW = "rights-of-spark", "east->west"
TOPICS = f"{NAME}."
TOPIC = f"{TOPICS}a"


@pytest.fixture(scope="module")
def users(spark, tmp_path_factory):
    """A flow whose history was copied, and an archive of it, under an administrator's login."""
    setup = SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True)
    pair = east, west = LocalCluster("east", security=setup), LocalCluster("west", security=setup)
    start_all(pair)
    try:
        folder = tmp_path_factory.mktemp("rights")
        file = write_topology(
            folder / "topology.yaml", NAME, pair, [active_passive([f"{TOPICS}*"])]
        )
        east.create_topic(TOPIC, partitions=2)
        done("apply", "--yes", "-f", file)
        write(east, TOPIC, plain(20))
        done("bulk-sync", "--flow", FLOW, "--yes", "-f", file)
        archived = ("--topic", TOPIC, "--archive", folder / "archive")
        done("archive", "--cluster", "east", *archived, "-f", file)
        yield LimitedUsers({"east": east, "west": west}, folder, file, NAME, TOPICS)
    finally:
        for cluster in pair:
            cluster.stop()


def done(*arguments):
    ran = run(*arguments)
    assert ran.code == 0, ran.said


def command(users, who, number):
    """The command line; each time there is something to do."""
    if who == "archive":
        folder = users.folder / f"archive-{number}"
        return ["archive", "--cluster", "east", "--topic", TOPIC, "--archive", folder]
    if who == "restore":
        archived = ["--archive", users.folder / "archive"]
        return ["restore", "--cluster", "west", *archived, "--as", f"{TOPICS}restored-{number}"]
    write(users.clusters["east"], TOPIC, plain(5))
    if who == "audit":  # which counts what is new and was copied
        done("bulk-sync", "--flow", FLOW, "--yes", "-f", users.file)
    return [who, "--flow", FLOW, *(["--yes"] if who == "bulk-sync" else [])]


def without_own_topics(users):
    """The topics that `audit` and `restore` make when they run first."""
    west = users.clusters["west"]
    for name in west.admin().list_topics(timeout=20).topics:
        if name in {audit_topic(NAME, "east"), restores_topic(NAME)}:
            west.delete_topic(name)


@pytest.mark.parametrize("who", COMMANDS)
def test_the_documented_rights_are_enough_and_a_missing_one_is_named(users, who):
    needs = needs_of(who)
    first, *others = user_names(who, needs)
    file = users.granted(first, rights_of(needs))
    ran = run(*command(users, who, 0), "-f", file)
    assert ran.code == 0, ran.said
    told = {}
    for number, (user, need) in enumerate(zip(others, needs, strict=True), start=1):
        file = users.granted(user, left_without(rights_of(needs), need.rights))
        if any(right.operation == "CREATE" for right in need.rights):
            without_own_topics(users)
        told[need] = run(*command(users, who, number), "-f", file)
    unnamed = "\n".join(
        f"{need}: exit code {ran.code}\n{ran.said}" for need, ran in told.items()
        if ran.code == 0 or not users.names(ran.said, need)
    )  # fmt: skip
    assert not unnamed, unnamed


def test_without_describe_on_the_cluster_estimates_come_from_the_first_records(users):
    write(users.clusters["east"], TOPIC, plain(5))

    def estimated(file):
        found, _ = json.JSONDecoder().raw_decode(run("plan", "-f", file, "-o", "json").said)
        (seed,) = found["seed"]
        return seed["bytes"]

    sampled = estimated(users.granted("looking", rights_of(needs_of("looking"))))
    assert 0 < sampled < estimated(users.file), "on disk a record has a header, too"


def seeded(users):
    """The state of each partition that a bulk run has or had."""
    plan = require_plan(users.file)
    control = read_control_past_open_transactions(plan, plan.pairs[0])
    return {one.partition: one.state for one in control.seeds("east") if one.topic == TOPIC}


def test_bulk_sync_with_spark_names_the_user_and_the_right_and_takes_nothing(users):
    write(users.clusters["east"], TOPIC, plain(5))
    needs = rights_of(needs_of("bulk-sync"))
    reading = Right("east", "topic", "orders.", True, "READ")
    file = users.granted("bulk-sync-with-spark", left_without(needs, [reading]))
    began = time.monotonic()
    ran = run("bulk-sync", "--flow", FLOW, "--yes", "--master", "local[2]", "-f", file)
    assert ran.code == 1
    assert (
        f"our user lacks READ on topic '{TOPIC}' of east; it logs in as 'bulk-sync-with-spark'. "
        "Nothing was taken from the workers. Allow it by ACLs"
    ) in ran.said
    assert time.monotonic() - began < 30
    assert set(seeded(users).values()) == {"done"}


@pytest.mark.parametrize("engine", ["records", "batches"])
@pytest.mark.parametrize(
    "missing",
    [
        Right("east", "topic", "orders.", True, "READ"),
        Right("west", "topic", "orders.", True, "WRITE"),
    ],
    ids=str,
)
def test_a_right_that_is_missing_in_a_task_ends_it_within_half_a_minute(users, engine, missing):
    """As where executors log in otherwise than the driver, or a right is taken away meanwhile."""
    number = (engine == "batches") + 2 * (missing.cluster == "west")
    name = f"{NAME}-task-{number}"
    link = active_passive([f"{name}.*"], engine=engine, naming="prefix")
    file = write_topology(users.folder / f"{name}.yaml", name, users.clusters.values(), [link])
    users.clusters["east"].create_topic(f"{name}.a")
    done("apply", "--yes", "-f", file)
    write(users.clusters["east"], f"{name}.a", plain(5))
    limited = LimitedUsers(users.clusters, users.folder, file, name, f"{name}.")
    for prefix in (f"{name}.", f"east.{name}."):
        rights = left_without(rights_of(needs_of("bulk-sync")), [missing])
        grant(users.clusters, f"late-{number}", rights, topology=name, topics=prefix)
    theirs = require_plan(limited.granted(f"late-{number}", ()))
    plan = require_plan(file)
    found = survey(plan, plan.pairs[0])
    take_from_lanes(
        plan, found.pair, declarations(found, run="job.1", by="test", at_ms=1), clock=SystemClock()
    )
    (order,) = orders(theirs, theirs.pairs[0], found.ranges, run="job.1", at_once=1)
    began = time.monotonic()
    with pytest.raises(NotAuthorizedError) as refused:
        copy_order(order)
    assert time.monotonic() - began < 30
    said = refused.value.paragraph()
    assert f"{name}.a/0: cluster {missing.cluster}: cannot {missing.operation.lower()}" in said
    assert "by an ACL" in said
    copied = ["bulk-sync", "--flow", FLOW, "--yes", "-f", file]
    done(*copied)  # another run, of somebody who may, goes on by itself


@pytest.fixture(scope="module")
def streamed(users):
    """A flow that Spark runs, and its topology as an administrator has it."""
    name, east = f"{NAME}-stream", users.clusters["east"]
    link = active_passive([f"{name}.*"], runtime="spark")
    file = write_topology(users.folder / f"{name}.yaml", name, users.clusters.values(), [link])
    east.create_topic(f"{name}.a")
    done("apply", "--yes", "-f", file)
    return LimitedUsers(users.clusters, users.folder, file, name, f"{name}.")


def streamed_as(streamed, spark, user, rights):
    """Runs a stream as a user until it copied or failed: what it raised, and whether it copied."""
    path = streamed.granted(user, rights)
    stream = FlowStream(spark, path, FLOW, by="test", clock=SystemClock())
    stopping, failed = threading.Event(), []

    def serve():
        try:
            stream.serve(interval_seconds=1.0, stopping=stopping)
        except ReplicatorError as error:
            failed.append(error.paragraph())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        wait_until(
            lambda: failed or stream.copied[0] >= 5,
            timeout_seconds=120, describe=lambda: f"five records, not {stream.copied}",
        )  # fmt: skip
    finally:
        stopping.set()
        thread.join(90)
    return failed, stream.returned


def test_the_documented_rights_of_a_stream_are_enough_and_a_missing_one_is_named(streamed, spark):
    needs, topic = needs_of("stream"), f"{streamed.topology}.a"
    first, *others = user_names("stream", needs)
    write(streamed.clusters["east"], topic, plain(5))
    assert streamed_as(streamed, spark, first, rights_of(needs)) == ([], True)
    unnamed = []
    for user, need in zip(others, needs, strict=True):
        write(streamed.clusters["east"], topic, plain(5))
        failed, _ = streamed_as(streamed, spark, user, left_without(rights_of(needs), need.rights))
        if not failed or not streamed.names(failed[0], need):
            unnamed.append(f"{need}: {failed}")
    assert not unnamed, "\n".join(unnamed)
