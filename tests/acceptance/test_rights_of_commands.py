"""The documented rights of single commands on Kafka: enough, and a missing one is named."""

import base64
import itertools
import json
import time
from dataclasses import replace

import pytest
from documented_rights import left_without, needs_of, rights_of
from limited_users import LimitedUsers, run, setup_users, user_names
from producing import produce
from topology_files import active_passive, write_topology

from replicator.dataplane.copy.quarantine_record import quarantine_id
from replicator.identifiers import membership_group, progress_group, quarantine_topic
from replicator.testing import LocalCluster, SecuritySetup, commit_positions, start_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COMMANDS = ("quarantine", "adopting", "cleaning up")
USERS = setup_users(*(user_names(who, needs_of(who)) for who in COMMANDS))
FLOW, LINK = "east->west", "dr"
OFFSETS = "mm2-offsets.east.internal"


@pytest.fixture(scope="module")
def pair():
    setup = SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True)
    found = LocalCluster("east", security=setup), LocalCluster("west", security=setup)
    start_all(found)
    yield {cluster.name: cluster for cluster in found}
    for cluster in found:
        cluster.stop()


@pytest.fixture
def users(pair, tmp_path, unique):
    """A topology of the test's own with one topic on both clusters; nothing is applied."""
    topics = f"{unique}."
    file = write_topology(
        tmp_path / "topology.yaml", unique, pair.values(), [active_passive([f"{topics}*"])]
    )
    pair["east"].create_topic(f"{topics}a")
    return LimitedUsers(pair, tmp_path, file, unique, topics)


def done(*arguments):
    ran = run(*arguments)
    assert ran.code == 0, ran.said


def write(cluster, topic, value, **fields):
    produce(cluster, topic, [{"value": value, **fields}], as_admin=True)


def unnamed(who, prepare, command):
    """Of somebody without one of the rights: where it was not named, and what was said instead.

    ``prepare`` makes something to do and gives the users; ``command`` the words for a need.
    """
    needs = needs_of(who)
    _, *others = user_names(who, needs)
    found = []
    for user, need in zip(others, needs, strict=True):
        users = prepare(need)
        file = users.granted(user, left_without(rights_of(needs), need.rights))
        ran = run(*command(need), "-f", file)
        if ran.code == 0 or not users.names(ran.said, need):
            found.append(f"{need}: exit code {ran.code}\n{ran.said}")
    return "\n".join(found)


def allowed(users, who):
    """The topology of somebody with all of the rights."""
    needs = needs_of(who)
    return users.granted(user_names(who, needs)[0], rights_of(needs))


def test_records_in_quarantine_are_put_back_or_let_go(users):
    topic, west = f"{users.topics}a", users.clusters["west"]
    done("apply", "--yes", "-f", users.file)
    kept = []

    def keep(_need=None):
        offset = len(kept)
        about = {
            "v": 1, "id": quarantine_id(FLOW, topic, 0, offset), "flow": FLOW, "link": LINK,
            "topic": topic, "partition": 0, "offset": offset, "targetTopic": topic,
            "timestamp": round(time.time() * 1000), "timestampType": "CreateTime",
            "keyBase64": base64.b64encode(b"key").decode(), "valueNull": False,
            "valueOmitted": False, "error": "too large", "code": "MSG_SIZE_TOO_LARGE",
            "at": round(time.time() * 1000), "rawBase64": None,
        }  # fmt: skip
        headers = [("replicator-quarantine", json.dumps(about).encode())]
        write(west, quarantine_topic(users.topology, "east"), b"value", key=b"{}", headers=headers)
        kept.append(about["id"])
        return users

    missed = unnamed("quarantine", keep, lambda _: ["quarantine", "replay", kept[-1], "--yes"])
    assert not missed, missed
    file = allowed(users, "quarantine")
    for verb in ("replay", "discard"):
        keep()
        done("quarantine", verb, kept[-1], "--yes", "-f", file)


def test_progress_is_taken_over_from_mirrormaker_2(users):
    topic, west = f"{users.topics}a", users.clusters["west"]
    for cluster in users.clusters.values():
        if cluster is west:
            cluster.create_topic(topic)
        write(cluster, topic, b"value", key=b"key")
    properties = users.folder / "mm2.properties"
    properties.write_text(
        "clusters = east, west\n"
        "east.bootstrap.servers = 127.0.0.1:1\nwest.bootstrap.servers = 127.0.0.1:2\n"
        f"east->west.enabled = true\neast->west.topics = {topic}\n"
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
    )
    west.create_topic(OFFSETS, config={"cleanup.policy": "compact"})
    key = ["MirrorSourceConnector", {"cluster": "east", "partition": 0, "topic": topic}]
    write(west, OFFSETS, b'{"offset":0}', key=json.dumps(key).encode())
    adopt = ["import-mm2", properties, "--adopt", "--yes"]
    numbers = itertools.count()

    def fresh(_need):
        """Another topology: what an attempt left must not spare the next one anything."""
        name = f"{users.topology}-{next(numbers)}"
        link = active_passive([f"{users.topics}*"])
        file = write_topology(users.folder / name, name, users.clusters.values(), [link])
        return replace(users, file=file, topology=name)

    missed = unnamed("adopting", fresh, lambda _: adopt)
    assert not missed, missed
    ran = run(*adopt, "-f", allowed(users, "adopting"))
    assert ran.code == 0, ran.said
    assert "Taken over: 1 partitions" in ran.said


def test_what_a_link_left_is_removed(users):
    east, west = users.clusters.values()

    links = [active_passive([f"{users.topics}*"])]
    second = active_passive([f"{users.topology}-second.*"], name="second")
    both = replace(
        users,
        file=write_topology(
            users.folder / "both", users.topology, users.clusters.values(), [*links, second]
        ),
    )

    def left(need=None):
        """Records go with the topics that hold them, but where another link needs these."""
        found = both if need is not None and min(need.rights).operation == "WRITE" else users
        done("apply", "--yes", "-f", found.file)
        position = {(f"{users.topics}a", 0): 0}
        commit_positions(west, membership_group(users.topology, "east"), position)
        commit_positions(east, progress_group(users.topology, "west"), position)
        return found

    remove = ["cleanup", "--link", LINK, "--yes"]
    missed = unnamed("cleaning up", left, lambda _: remove)
    assert not missed, missed
    left()
    ran = run(*remove, "-f", allowed(users, "cleaning up"))
    assert ran.code == 0, ran.said
    assert "Removed: " in ran.said
