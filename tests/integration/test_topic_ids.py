"""What a consumer says of topic ids on a real broker, and how much it says beside them."""

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from replicator.kafka.admin.topic_ids import TopicIdLogger, watch_topic_ids
from replicator.kafka.clients.client import open_consumer, open_producer
from replicator.kafka.clients.metadata_log import MetadataLog
from replicator.kafka.clients.settings import consumer_config, producer_config
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
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


def test_a_producer_hears_of_another_leader_before_it_writes_under_it(clusters, unique):
    (west,) = clusters("west", brokers=3)
    layout = [[1, 2], [2, 1]]
    new = NewTopic(
        unique, num_partitions=2, replica_assignment=layout, config={"min.insync.replicas": "1"}
    )
    west.admin().create_topics([new])[unique].result(30)
    log = MetadataLog()
    watch = CoordinatorWatch(metadata=log)
    plan = ClusterPlan("west", tuple(west.bootstrap_servers))
    settings = producer_config(plan, client_id="leaders", transactional_id=unique)
    producer = open_producer({**settings, **watch.settings()})

    def epochs_once_stored():
        errors = []
        for number in range(2):
            producer.produce(
                unique, b"v", partition=number, callback=lambda error, _: errors.append(error)
            )
        assert producer.flush(60) == 0
        assert errors == [None, None]
        producer.poll(0)  # as before each commit
        return [log.epoch((unique, number)) for number in range(2)]

    producer.init_transactions(30)
    producer.begin_transaction()
    assert epochs_once_stored() == [0, 0]
    west.kill(1)
    assert epochs_once_stored() == [1, 0]


def test_a_start_with_many_partitions_writes_few_lines(east, unique, lines):
    east.create_topic(unique, partitions=PARTITIONS)
    consumer = watching(east, {})
    consumer.assign([TopicPartition(unique, number, 0) for number in range(PARTITIONS)])
    ended = 0
    while ended < PARTITIONS:
        ended += len(consumer.consume(PARTITIONS, 10))
    consumer.close()
    assert len(lines) < 3 * PARTITIONS
