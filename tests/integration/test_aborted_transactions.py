"""Aborting a transaction while requests of it are on their way."""

import time

import pytest
from confluent_kafka import Producer

from replicator.kafka.logs.producer_calls import abort_transaction
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Delay, Match, Rule

NO_LEADER_HERE = 6
LATE_SECONDS = 1.0


@pytest.fixture
def proxy(east):
    with ProtocolProxy(east.bootstrap_servers) as proxy:
        yield proxy


def test_a_request_that_asks_to_try_again_does_not_hold_up_the_abort_behind_it(proxy, east, unique):
    """The client puts its records back when it has thrown away all others, and waits for them."""
    east.create_topic(unique)
    producer = Producer(
        {
            "bootstrap.servers": ",".join(proxy.bootstrap_servers), "transactional.id": unique,
            "linger.ms": 0,
        }
    )  # fmt: skip
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(unique, b"first")
    producer.commit_transaction(30)
    produce = Match(Api.PRODUCE, topic=unique)
    proxy.play(
        [Rule(produce, Delay(request_seconds=LATE_SECONDS)), Rule(produce, Answer(NO_LEADER_HERE))]
    )
    seen = len(proxy.requests)
    producer.begin_transaction()
    producer.produce(unique, b"aborted")
    deadline = time.monotonic() + 10
    while all(each.api != Api.PRODUCE for each in proxy.requests[seen:]):
        assert time.monotonic() < deadline
        producer.poll(0.01)
    began = time.monotonic()
    abort_transaction(producer, 30)
    assert time.monotonic() - began < 10
    producer.begin_transaction()
    producer.produce(unique, b"behind it")
    producer.commit_transaction(30)
