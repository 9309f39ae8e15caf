"""The documented rights of Spark's commands: enough, and each is needed."""

import json
import threading

import pytest
from copied_pair import plain, write
from documented_rights import left_without, needs_of, rights_of
from limited_users import LimitedUsers, run, setup_users, user_names
from topology_files import active_passive, write_topology

from replicator.clock import SystemClock
from replicator.errors import ReplicatorError
from replicator.identifiers import audit_topic, restores_topic
from replicator.spark.copy.stream import FlowStream
from replicator.testing import LocalCluster, SecuritySetup, start_all, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COMMANDS = ("verify", "audit", "archive", "restore")
USERS = setup_users(
    *(user_names(who, needs_of(who)) for who in COMMANDS), ["looking", "bulk-sync", "stream"]
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
    return [who, "--flow", FLOW]


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


def test_the_documented_rights_of_bulk_sync_are_enough(users):
    write(users.clusters["east"], TOPIC, plain(5))
    file = users.granted("bulk-sync", rights_of(needs_of("bulk-sync")))
    ran = run("bulk-sync", "--flow", FLOW, "--yes", "-f", file)
    assert ran.code == 0, ran.said


def test_the_documented_rights_of_a_stream_are_enough(users, spark):
    """Missing ones are tried again and again, as everything that fails in a stream."""
    name, east = f"{NAME}-stream", users.clusters["east"]
    link = active_passive([f"{name}.*"], runtime="spark")
    file = write_topology(users.folder / f"{name}.yaml", name, users.clusters.values(), [link])
    east.create_topic(f"{name}.a")
    done("apply", "--yes", "-f", file)
    write(east, f"{name}.a", plain(5))
    others = LimitedUsers(users.clusters, users.folder, file, name, f"{name}.")
    path = others.granted("stream", rights_of(needs_of("stream")))
    stream = FlowStream(spark, path, FLOW, by="test", clock=SystemClock())
    stopping, failed = threading.Event(), []

    def serve():
        try:
            stream.serve(interval_seconds=1.0, stopping=stopping)
        except ReplicatorError as error:
            failed.append(error)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        wait_until(
            lambda: failed or stream.copied[0] == 5,
            timeout_seconds=120, describe=lambda: f"five records, not {stream.copied}",
        )  # fmt: skip
    finally:
        stopping.set()
        thread.join(90)
    assert failed == []
    assert stream.returned
