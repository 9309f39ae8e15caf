"""Each fault of the protocol proxy is what its name says, for real clients and brokers."""

import socket
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from whole_topic import read_topic

from replicator.testing import wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import (
    Answer,
    Api,
    Delay,
    DropRequest,
    DropResponse,
    Duplicate,
    HideApis,
    Hold,
    LimitRate,
    Match,
    Rule,
)
from replicator.wire.connection.protocol import ApiVersionsRequest, message_classes

TOPIC_AUTHORIZATION_FAILED, NOT_LEADER = 29, 6
SECONDS = 15


@pytest.fixture
def behind(east, unique):
    """Starts a proxy before the shared cluster with rules; the topic of the test exists."""
    east.create_topic(unique)

    @contextmanager
    def start(*rules, **options):
        with ProtocolProxy(east.bootstrap_servers, rules, **options) as proxy:
            yield proxy

    return start


def settings(proxy, **more):
    return {"bootstrap.servers": ",".join(proxy.bootstrap_servers), "log_level": 0, **more}


def producer(proxy, **more):
    return Producer(settings(proxy, **{"enable.idempotence": True, "linger.ms": 0, **more}))


def write(client, topic, value=b"v"):
    """Seconds until the record was acknowledged; raises what the delivery report says."""
    failed = []
    begun = time.monotonic()
    client.produce(topic, value, partition=0, on_delivery=lambda e, _: e and failed.append(e))
    assert client.flush(SECONDS) == 0
    if failed:
        raise KafkaException(failed[0])
    return time.monotonic() - begun


def values(cluster, topic):
    """Committed values, from beside the proxy."""
    return [message.value() for message in read_topic(cluster, topic)]


def test_without_rules_all_goes_through_it_and_clients_stay_behind_it(behind, east, unique):
    with behind() as proxy:
        client = producer(proxy)
        write(client, unique)
        metadata = client.list_topics(timeout=SECONDS)
        ports = {f"{each.host}:{each.port}" for each in metadata.brokers.values()}
        assert ports == set(proxy.bootstrap_servers)
        asked = {request.api for request in proxy.requests if unique in request.topics}
        assert {Api.PRODUCE, Api.METADATA} <= asked
    assert values(east, unique) == [b"v"]


def test_a_dropped_request_never_arrives_and_is_repeated(behind, east, unique):
    rule = Rule(Match(Api.PRODUCE, topic=unique), DropRequest(reset=True))
    with behind(rule) as proxy:
        write(producer(proxy), unique)
        assert [proxy.applied(rule), counted(proxy, Api.PRODUCE)] == [1, 2]
    assert values(east, unique) == [b"v"]


def test_a_dropped_response_hides_what_was_done(behind, east, unique):
    rule = Rule(Match(Api.PRODUCE, topic=unique), DropResponse(reset=True))
    with behind(rule) as proxy:
        write(producer(proxy, **{"enable.idempotence": False}), unique)
        assert proxy.applied(rule) == 1
    assert values(east, unique) == [b"v", b"v"]


def test_a_delay_is_waited_in_both_directions(behind, unique):
    match = Match(Api.PRODUCE, topic=unique, nth=2)
    with behind(Rule(match, Delay(request_seconds=0.3, response_seconds=0.3))) as proxy:
        client = producer(proxy)
        write(client, unique)
        assert write(client, unique) >= 0.6


def test_an_error_is_answered_without_the_broker(behind, east, unique):
    rule = Rule(Match(Api.PRODUCE, topic=unique), Answer(TOPIC_AUTHORIZATION_FAILED))
    with behind(rule) as proxy, pytest.raises(KafkaException) as refused:
        write(producer(proxy), unique)
    assert refused.value.args[0].code() == TOPIC_AUTHORIZATION_FAILED
    assert values(east, unique) == []


def test_an_error_is_answered_although_the_broker_did_it(behind, east, unique):
    rule = Rule(Match(Api.PRODUCE, topic=unique), Answer(NOT_LEADER, forwarded=True))
    with behind(rule) as proxy:
        write(producer(proxy), unique)
        assert counted(proxy, Api.PRODUCE) == 2
    assert values(east, unique) == [b"v"]  # an idempotent producer's repetition is known


def test_hidden_apis_make_an_older_broker(behind, unique):
    hidden = HideApis(frozenset({Api.DESCRIBE_CONFIGS}), highest=((Api.PRODUCE, 7),))
    with behind(Rule(Match(Api.API_VERSIONS, times=None), hidden)) as proxy:
        write(producer(proxy), unique)
        assert {each.version for each in proxy.requests if each.api == Api.PRODUCE} == {7}
        # Held in a name: without one the client is gone before its answer, whatever the broker can do.
        client = AdminClient(settings(proxy))
        asked = client.describe_configs([ConfigResource(ResourceType.TOPIC, unique)])
        with pytest.raises(KafkaException) as refused:
            next(iter(asked.values())).result(SECONDS)
        assert refused.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE


def test_a_limited_rate_holds_large_requests_back(behind, unique):
    rule = Rule(Match(Api.PRODUCE, topic=unique, times=None), LimitRate(400_000))
    with behind(rule) as proxy:
        assert write(producer(proxy), unique, b"x" * 200_000) >= 0.5


def test_idle_connections_are_closed(behind):
    with behind(idle_seconds=0.3) as proxy:
        host, _, port = proxy.bootstrap_servers[0].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
            assert connection.recv(1) == b""


def test_what_is_held_without_a_reset_waits_until_it_is_released(behind, east, unique):
    with behind(Rule(Match(Api.PRODUCE, topic=unique), Hold(reset=False))) as proxy:
        client = producer(proxy)
        client.produce(unique, b"v", partition=0)
        wait_until(lambda: proxy.held == 1, timeout_seconds=SECONDS, describe="the request")
        assert values(east, unique) == []
        proxy.release()
        assert client.flush(SECONDS) == 0
    assert values(east, unique) == [b"v"]


def test_a_held_request_comes_late_after_its_own_repetition(behind, east, unique):
    rule = Rule(Match(Api.PRODUCE, topic=unique), Hold(until=Match(Api.PRODUCE, nth=2)))
    with behind(rule) as proxy:
        client = producer(proxy, **{"enable.idempotence": False})
        write(client, unique, b"first")
        write(client, unique, b"second")
        assert (proxy.delivered, proxy.held) == (1, 0)
    assert values(east, unique) == [b"first", b"second", b"first"]


def test_a_duplicate_arrives_twice_and_the_client_repeats_it_too(behind, east, unique):
    with behind(Rule(Match(Api.PRODUCE, topic=unique), Duplicate())) as proxy:
        write(producer(proxy, **{"enable.idempotence": False}), unique)
        assert proxy.delivered == 1
    assert values(east, unique) == [b"v", b"v", b"v"]


def test_features_of_the_cluster_are_passed_on(behind, east):
    """A client that finds the transaction version behind the proxy must find the true one."""
    with behind() as proxy:
        beside, through = map(finalized, (east.bootstrap_servers, proxy.bootstrap_servers))
    assert through == beside
    assert "transaction.version" in through


def counted(proxy, api):
    return sum(request.api == api for request in proxy.requests)


def finalized(servers):
    host, _, port = servers[0].rpartition(":")
    request = ApiVersionsRequest(
        version=3, client_software_name="test", client_software_version="1"
    )
    request.with_header(correlation_id=1, client_id="test")
    with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
        connection.sendall(bytes(request.encode(header=True, framed=True)))
        with connection.makefile("rb") as stream:
            data = stream.read(int.from_bytes(stream.read(4), "big"))
    body = message_classes()[Api.API_VERSIONS][1].decode(data, version=3, header=True)
    return {each.name: each.max_version_level for each in body.finalized_features}
