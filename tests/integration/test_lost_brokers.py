"""Clients that a metadata answer without brokers has left without any broker to ask, and what notices it.

The client library loses them by a race, so the answers are repeated until one of several clients is lost.
"""

import threading
import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from replicator.batches.network.leaders import ask_leaders
from replicator.batches.registry.other_topologies import OtherTopologies
from replicator.dataplane.session.lost_clients import LostClients
from replicator.errors import (
    NotFoundError,
    ReplicatorError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.kafka.clients import lost_brokers
from replicator.kafka.clients.lost_brokers import LostBrokers, has_broker
from replicator.kafka.logs.compacted_log import LogTail
from replicator.kafka.logs.log_writer import LogWriter
from replicator.testing import wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import (
    Api,
    DropRequest,
    Match,
    NameNoBrokers,
    Rule,
)
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import leader_connection
from replicator.wire.groups.group_changes import GroupChanges
from replicator.wire.requests.log_dirs import partition_bytes
from replicator.wire.requests.log_ends import LogEnds
from replicator.wire.requests.open_transactions import open_transactions

WITHOUT_BROKERS = Rule(Match(Api.METADATA, times=None), NameNoBrokers())
COMPACTED = {"cleanup.policy": "compact"}


@pytest.fixture
def proxy(east):
    with ProtocolProxy(east.bootstrap_servers) as proxy:
        yield proxy


def ask_often(clients, topic, *, seconds):
    """Each asks again and again meanwhile, as clients do that find no leader."""
    end = time.monotonic() + seconds

    def ask(client):
        while time.monotonic() < end:
            has_broker(client, topic)

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def lose_some(proxy, clients, topic):
    """Answers without brokers until a client is lost; returns those that are."""
    for _ in range(10):
        proxy.play([WITHOUT_BROKERS])
        ask_often(clients, topic, seconds=1.0)
        proxy.play([])
        deadline = time.monotonic() + 8.0
        lost = clients
        while lost and time.monotonic() < deadline:
            lost = [client for client in lost if not has_broker(client, topic)]
        if lost:
            return lost
    pytest.fail("no client lost its brokers: where the library is mended, this can go")


@pytest.mark.slow
def test_a_client_that_lost_all_brokers_is_found_and_ends_its_lanes_session(
    proxy, east, unique, monkeypatch
):
    monkeypatch.setattr(lost_brokers, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(lost_brokers, "_AGAIN_SECONDS", 0.0)
    east.create_topic(unique)
    settings = {"bootstrap.servers": ",".join(proxy.bootstrap_servers), "group.id": unique}
    clients = [Consumer({**settings, "log_level": 2}) for _ in range(6)]
    try:
        for client in clients:
            client.assign([TopicPartition(unique, 0, 0)])
            assert has_broker(client, unique)
        lost = lose_some(proxy, clients, unique)
        for client in clients:
            watch = LostBrokers(unique)
            found = [watch.found(client) for _ in range(2)]
            assert found == [False, client in lost], "it takes two questions"
        at = ClusterPlan("east", tuple(proxy.bootstrap_servers))
        lane = LostClients(at, at, lost[0], lost[0], client_id="test")
        proxy.play([Rule(Match(Api.METADATA, times=None), DropRequest(reset=True))])
        for _ in range(2):
            lane.stepped(0)  # the cluster is away: the session waits with the client that it has
        proxy.play([])
        lane.stepped(0)
        with pytest.raises(UnreachableError, match="lost all brokers of east"):
            lane.stepped(0)
        waits = lane.asked_in_waits(lambda: False)
        assert waits() is False
        with pytest.raises(UnreachableError, match="lost all brokers of east"):
            waits()
    finally:
        for client in clients:
            client.close()


@pytest.mark.slow
def test_a_tail_goes_on_with_another_client(proxy, east, unique, monkeypatch):
    monkeypatch.setattr(lost_brokers, "QUIET_SECONDS", 0.5)
    monkeypatch.setattr(lost_brokers, "_AGAIN_SECONDS", 0.1)
    east.create_topic(unique, config=COMPACTED)
    tails = [
        LogTail(ClusterPlan("east", tuple(proxy.bootstrap_servers)), unique, client_id="test")
        for _ in range(6)
    ]
    try:
        for tail in tails:
            tail.load(timeout_seconds=20)
        lose_some(proxy, [tail._consumer for tail in tails], unique)
        with LogWriter(
            ClusterPlan("east", tuple(east.bootstrap_servers)), unique, client_id="t"
        ) as writer:
            writer.write([(b"k", b"v")])
        for tail in tails:
            assert wait_until(
                lambda tail=tail: tail.poll(0.2), timeout_seconds=20, describe="the entry"
            ) == [(b"k", b"v")]
    finally:
        for tail in tails:
            tail.close()


def test_an_admin_session_that_found_no_broker_asks_with_another_client(proxy, east, unique):
    """Those of admin clients are lost too seldom to wait for it here; what the session sees is the same."""
    east.create_topic(unique)
    at = ClusterPlan("east", tuple(proxy.bootstrap_servers))
    with ClusterAdmin(at, client_id="test", timeout_seconds=3) as admin:
        assert admin.describe_topics([unique])[unique].partitions == 1
        before = admin._session.client
        proxy.play([Rule(Match(Api.METADATA, times=None), DropRequest(reset=True))])
        with pytest.raises(UnreachableError):
            admin.topic_partitions()
        proxy.play([])
        assert admin.describe_topics([unique])[unique].partitions == 1
        assert admin._session.client is not before


@pytest.mark.parametrize("times", [1, 3, 8])
@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_an_admin_client_that_was_told_of_no_broker_asks_again_who_the_controller_is(
    proxy, east, unique, used, times
):
    """The library waits until a controller is named, and never asks: one answer was ten seconds and an error."""
    east.create_topic(unique)
    at = ClusterPlan("east", tuple(proxy.bootstrap_servers))
    with ClusterAdmin(at, client_id="test", timeout_seconds=20) as admin:
        if used:
            admin.describe_topics([unique])
        proxy.play([Rule(Match(Api.METADATA, times=times), NameNoBrokers())])
        if used:
            has_broker(admin._session.client, unique)
        begun = time.monotonic()
        if used:
            assert admin.describe_topics([unique])[unique].partitions == 1
        else:
            new = f"{unique}.new"
            assert admin.create_topics([NewTopicSpec(new, 1, 1)]) == {new: None}
        assert time.monotonic() - begun < 10


def test_who_knows_of_no_broker_is_not_believed_that_a_topic_does_not_exist(proxy, unique):
    """Our own protocol client: to a reader of a registry "not found" means that nothing was registered."""
    proxy.play([WITHOUT_BROKERS])
    at = ClusterPlan("east", tuple(proxy.bootstrap_servers))
    with pytest.raises(TransientBrokerError, match="answers that no broker lives"):
        ask_leaders(at, [unique], client_id="test", deadline=time.monotonic() + 10.0)
    with pytest.raises(ReplicatorError) as told:
        leader_connection(at, unique, 0, client_id="test", deadline=time.monotonic() + 1.0)
    assert not isinstance(told.value, NotFoundError)
    proxy.play([])
    with pytest.raises(NotFoundError):
        leader_connection(at, unique, 0, client_id="test", deadline=time.monotonic() + 10.0)


def closed(asking, ask):
    try:
        return ask(asking)
    finally:
        asking.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda at, topic: closed(LogEnds(at, client_id="test"), lambda it: it.read([(topic, 0)])),
        lambda at, topic: open_transactions(at, [(topic, 0)], client_id="test"),
        lambda at, _: closed(GroupChanges(at, client_id="test"), lambda it: it.any()),
        lambda at, topic: partition_bytes(at, [topic]),
        lambda at, _: OtherTopologies(at, "mine", blocked=(), client_id="test").source_of(1),
    ],
    ids=["ends", "open transactions", "groups", "sizes", "other topologies"],
)
def test_an_answer_without_brokers_is_no_answer_that_there_is_nothing(proxy, east, unique, ask):
    east.create_topic(unique)
    at = ClusterPlan("east", tuple(proxy.bootstrap_servers))
    ask(at, unique)
    proxy.play([WITHOUT_BROKERS])
    with pytest.raises(TransientBrokerError, match="answers that no broker lives"):
        ask(at, unique)
