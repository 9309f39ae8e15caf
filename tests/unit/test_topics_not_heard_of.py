"""A broker that has not heard of a topic yet is not believed alone: to a registry its word would mean "empty"."""

import struct
import time

import pytest
from tiny_broker import API_VERSIONS, LoopbackBroker

from replicator.errors import NotFoundError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import leader_connection

METADATA, UNKNOWN_TOPIC = 3, 3


def text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


class Member(LoopbackBroker):
    """One of the brokers of a cluster; leads the topic's only partition where ``heard_of`` it."""

    versions = ((API_VERSIONS, 0, 0), (METADATA, 1, 1))

    def __init__(self, *, heard_of: bool):
        self.heard_of, self.asked = heard_of, 0
        self.members = [self]
        super().__init__()

    def answer(self, key):
        if key == API_VERSIONS:
            return super().answer(key)
        self.asked += 1
        brokers = b"".join(
            struct.pack(">i", number) + text(b"127.0.0.1") + struct.pack(">ih", each.address[1], -1)
            for number, each in enumerate(self.members)
        )
        leader = next((number for number, each in enumerate(self.members) if each.heard_of), -1)
        partition = struct.pack(">hiiiii", 0, 0, leader, 1, leader, 0)
        found = struct.pack(">h", 0 if self.heard_of else UNKNOWN_TOPIC) + text(b"t") + b"\0"
        parts = struct.pack(">i", 1) + partition if self.heard_of else struct.pack(">i", 0)
        return (
            struct.pack(">i", len(self.members))
            + brokers
            + struct.pack(">ii", 0, 1)
            + found
            + parts
        )


@pytest.fixture
def cluster():
    started = []

    def start(*heard_of):
        members = [Member(heard_of=each) for each in heard_of]
        started.extend(members)
        for each in members:
            each.members = members
        return members

    yield start
    for each in started:
        each.stop()


def leader(member):
    plan = ClusterPlan("west", (f"127.0.0.1:{member.address[1]}",))
    with leader_connection(
        plan, "t", 0, client_id="c", deadline=time.monotonic() + 5
    ) as connection:
        return connection.address


def test_another_broker_that_knows_the_topic_is_believed(cluster):
    members = cluster(False, False, True)
    assert leader(members[0]) == members[2].address


def test_a_topic_that_no_broker_knows_does_not_exist(cluster):
    members = cluster(False, False)
    with pytest.raises(NotFoundError):
        leader(members[0])
    assert [each.asked for each in members] == [1, 1]


def test_a_broker_that_knows_it_is_asked_alone(cluster):
    members = cluster(True, True)
    leader(members[1])
    assert [each.asked for each in members] == [0, 1]


def test_one_that_does_not_answer_keeps_nobody_from_the_answer_of_the_rest(cluster):
    members = cluster(False, False, True)
    members[1].stop()
    assert leader(members[0]) == members[2].address
