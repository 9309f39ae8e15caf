"""What a consumer says of topic ids on a real broker, and how much it says beside them."""

import pytest
from confluent_kafka import TopicPartition

from replicator.kafka.admin.topic_ids import TopicIdLogger, watch_topic_ids
from replicator.kafka.clients.client import open_consumer
from replicator.kafka.clients.settings import consumer_config
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan

PARTITIONS = 100


@pytest.fixture
def lines(monkeypatch):
    """Every line that a watching consumer hands on."""
    heard = []
    log = TopicIdLogger.log

    def count(self, level, template, *arguments):
        heard.append(arguments)
        log(self, level, template, *arguments)

    monkeypatch.setattr(TopicIdLogger, "log", count)
    return heard


def watching(cluster, ids):
    """A consumer that keeps each topic's newest id in ``ids``."""
    plan = ClusterPlan("east", tuple(cluster.bootstrap_servers))
    settings = {**consumer_config(plan, client_id="ids"), "enable.partition.eof": True}
    return open_consumer(watch_topic_ids(settings, ids.__setitem__))


def test_a_topic_created_again_is_told_with_its_new_id(east, unique):
    east.create_topic(unique, partitions=1)
    ids = {}
    consumer = watching(east, ids)
    consumer.assign([TopicPartition(unique, 0, 0)])
    wait_until(
        lambda: consumer.poll(0.1) is not None and unique in ids,
        timeout_seconds=20,
        describe="an id",
    )
    first = ids[unique]
    east.delete_topic(unique)
    east.create_topic(unique, partitions=1)
    wait_until(
        lambda: consumer.poll(0.1) is None and ids[unique] != first,
        timeout_seconds=20,
        describe="an id",
    )
    consumer.close()


def test_a_start_with_many_partitions_writes_few_lines(east, unique, lines):
    east.create_topic(unique, partitions=PARTITIONS)
    consumer = watching(east, {})
    consumer.assign([TopicPartition(unique, number, 0) for number in range(PARTITIONS)])
    ended = 0
    while ended < PARTITIONS:
        ended += len(consumer.consume(PARTITIONS, 10))
    consumer.close()
    assert len(lines) < 3 * PARTITIONS
