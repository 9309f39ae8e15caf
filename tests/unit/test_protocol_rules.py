"""The protocol proxy's rules meet exactly the requests they name, and its frames say what rules ask."""

import gc
import socket
import warnings

import pytest

from replicator.testing import ProtocolProxy
from replicator.testing.faults.protocol_frames import (
    error_response,
    read_request,
    with_addresses,
    with_error,
    with_versions,
)
from replicator.testing.faults.protocol_rules import (
    Api,
    Countdown,
    Delay,
    DropRequest,
    HideApis,
    Match,
    Request,
    Rule,
    Script,
)
from replicator.wire.connection.protocol import message_classes

CONCURRENT_TRANSACTIONS = 51


def frame(api, version, **fields):
    request = message_classes()[api][0](version=version, **fields)
    request.with_header(correlation_id=7, client_id="me")
    return read_request(bytes(request.encode(header=True)), {})


def inner(api, kind, field, version, **values):
    return message_classes()[api][kind].fields[field].data_class(version=version, **values)


def response(api, version, **fields):
    made = message_classes()[api][1](version=version, **fields)
    made.with_header(correlation_id=7)
    return bytes(made.encode(header=True))


def decoded(asked, data):
    kind = message_classes()[asked.request.api][1]
    return kind.decode(data, version=asked.request.version, header=True)


END = Request(Api.END_TXN, 1, "lane")
PRODUCE = Request(Api.PRODUCE, 9, "lane", frozenset({"orders"}))


@pytest.mark.parametrize(
    ("match", "met"),
    [
        (Match(Api.PRODUCE), [1]),
        (Match(Api.PRODUCE, nth=2), [2]),
        (Match(Api.PRODUCE, nth=2, times=2), [2, 3]),
        (Match(Api.PRODUCE, nth=3, times=None), [3, 4]),
        (Match(Api.PRODUCE, topic="orders", times=None), [1, 2, 3, 4]),
        (Match(Api.PRODUCE, topic="other"), []),
        (Match(Api.PRODUCE, client_id="other"), []),
        (Match(Api.PRODUCE, from_version=9), [1]),
        (Match(Api.PRODUCE, from_version=10), []),
        (Match(Api.FETCH), []),
    ],
)
def test_a_rule_meets_the_requests_that_it_names(match, met):
    script = Script([Rule(match, DropRequest())])
    assert [number for number in range(1, 5) if script.apply(PRODUCE)] == met


def test_requests_of_other_kinds_do_not_count():
    script = Script([Rule(Match(Api.PRODUCE, nth=2), DropRequest())])
    assert [bool(script.apply(each)) for each in (PRODUCE, END, PRODUCE, END)] == [
        False, False, True, False,
    ]  # fmt: skip


def test_several_rules_may_meet_one_request_in_their_order():
    slow, lost = Rule(Match(Api.END_TXN), Delay(1.0)), Rule(Match(Api.END_TXN), DropRequest())
    script = Script([slow, lost])
    assert script.apply(END) == (slow, lost)
    assert (script.applied(slow), script.applied(lost)) == (1, 1)


def test_a_countdown_is_over_with_the_request_that_it_waits_for_and_once():
    waits = Countdown(Match(Api.PRODUCE, nth=2))
    assert [waits.is_over(each) for each in (PRODUCE, END, PRODUCE, PRODUCE)] == [
        False, False, True, False,
    ]  # fmt: skip


def test_topics_are_read_from_names_and_from_ids():
    partition = inner(Api.FETCH, 0, "topics", 12, topic="orders", partitions=[])
    assert frame(Api.FETCH, 12, topics=[partition]).request.topics == {"orders"}
    kind = message_classes()[Api.FETCH][0]
    found = frame(Api.DELETE_TOPICS, 1, topic_names=["gone"])
    assert (found.request.client_id, found.correlation_id) == ("me", 7)
    topic_id = kind.fields["topics"].fields["topic_id"].default
    by_id = inner(Api.FETCH, 0, "topics", 13, topic_id=topic_id, partitions=[])
    data = frame(Api.FETCH, 13, topics=[by_id]).data
    assert read_request(data, {topic_id: "orders"}).request.topics == {"orders"}


def test_an_error_answers_each_part_of_a_request():
    topics = [
        inner(
            Api.ADD_PARTITIONS_TO_TXN, 0, "v3_and_below_topics", 3, name="orders", partitions=[0, 4]
        )
    ]
    asked = frame(
        Api.ADD_PARTITIONS_TO_TXN, 3, v3_and_below_transactional_id="t",
        v3_and_below_producer_id=1, v3_and_below_producer_epoch=1, v3_and_below_topics=topics,
    )  # fmt: skip
    (topic,) = decoded(
        asked, error_response(asked, CONCURRENT_TRANSACTIONS)
    ).results_by_topic_v3_and_below
    assert topic.name == "orders"
    assert [
        (each.partition_index, each.partition_error_code) for each in topic.results_by_partition
    ] == [(0, CONCURRENT_TRANSACTIONS), (4, CONCURRENT_TRANSACTIONS)]


def test_an_error_answers_a_request_as_a_whole():
    asked = frame(
        Api.END_TXN, 1, transactional_id="t", producer_id=1, producer_epoch=1, committed=True
    )
    assert decoded(asked, error_response(asked, CONCURRENT_TRANSACTIONS)).error_code == 51
    asked = frame(Api.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=["t"])
    (found,) = decoded(asked, error_response(asked, 15)).coordinators
    assert (found.key, found.error_code, found.node_id) == ("t", 15, -1)


@pytest.mark.parametrize("api", sorted(set(message_classes()) - {Api.API_VERSIONS}))
def test_every_known_request_can_be_answered_with_an_error_in_every_version(api):
    for version in range(message_classes()[api][0].max_version + 1):
        asked = frame(api, version)
        assert decoded(asked, error_response(asked, 41)) is not None


def test_addresses_are_changed_wherever_a_response_has_them():
    broker = inner(Api.METADATA, 1, "brokers", 9, node_id=1, host="kafka-1", port=9092)
    asked = frame(Api.METADATA, 9, topics=None)
    data = response(Api.METADATA, 9, brokers=[broker], cluster_id="c", controller_id=1, topics=[])
    (changed,) = decoded(asked, with_addresses(asked, data, lambda _: ("127.0.0.1", 5))).brokers
    assert (changed.node_id, changed.host, changed.port) == (1, "127.0.0.1", 5)


def test_an_answer_without_an_address_stays_byte_for_byte():
    asked = frame(Api.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=["t"])
    data = error_response(asked, 15)
    assert with_addresses(asked, data, lambda _: ("127.0.0.1", 5)) is data


def test_errors_are_put_into_one_topic_of_a_response():
    asked = frame(Api.METADATA, 9, topics=None)
    topics = [inner(Api.METADATA, 1, "topics", 9, name=name, partitions=[]) for name in "ab"]
    data = response(Api.METADATA, 9, brokers=[], cluster_id="c", controller_id=1, topics=topics)
    found = decoded(asked, with_error(asked, data, 29, "b")).topics
    assert [(each.name, each.error_code) for each in found] == [("a", 0), ("b", 29)]


def test_hidden_keys_are_gone_and_versions_are_limited():
    keys = [
        inner(Api.API_VERSIONS, 1, "api_keys", 3, api_key=key, min_version=0, max_version=99)
        for key in (Api.PRODUCE, Api.FETCH, Api.END_TXN, 9_999)
    ]
    asked = frame(Api.API_VERSIONS, 3, client_software_name="x", client_software_version="1")
    data = response(Api.API_VERSIONS, 3, error_code=0, api_keys=keys)
    hidden = HideApis(frozenset({Api.FETCH}), highest=((Api.END_TXN, 3),))
    found = {
        each.api_key: each.max_version
        for each in decoded(asked, with_versions(asked, data, hidden)).api_keys
    }
    most = message_classes()[Api.PRODUCE][0].max_version
    assert found == {Api.PRODUCE: most, Api.END_TXN: 3, 9_999: 99}


def test_a_proxy_that_stops_while_clients_connect_leaves_no_socket_open():
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        for _ in range(10):
            with ProtocolProxy([f"127.0.0.1:{server.getsockname()[1]}"]) as proxy:
                port = int(proxy.bootstrap_servers[0].rpartition(":")[2])
                clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
            for client in clients:
                client.close()
        with warnings.catch_warnings(record=True) as unclosed:
            warnings.simplefilter("always", ResourceWarning)
            gc.collect()
    assert not unclosed
