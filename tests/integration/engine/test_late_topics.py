"""`startFrom: latest` is about what was there when the flow was first applied; nothing that comes later is cut."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from replicator.testing import wait_until


def write(cluster, topic, partition, numbers):
    producer = Producer(cluster.client_settings())
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(30) == 0


def values(cluster, topic):
    """Partition and value of every committed record; none while the topic is not there."""
    consumer = Consumer(
        {**cluster.client_settings(), "group.id": "late", "enable.partition.eof": True}
    )
    try:
        partitions = consumer.list_topics(timeout=20).topics
        if topic not in partitions:
            return set()
        left = set(partitions[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        found = set()
        while left:
            message = consumer.poll(20)
            assert message is not None
            if message.error() is None:
                found.add((message.partition(), int(message.value())))
            else:
                left.discard(message.partition())
        return found
    finally:
        consumer.close()


@pytest.mark.slow
def test_topics_and_partitions_that_appear_while_no_worker_runs_are_copied_whole(
    worker, east, west, unique
):
    first, late = f"{unique}.first", f"{unique}.late"
    east.create_topic(first)
    write(east, first, 0, range(10))
    worker.cluster(east)
    worker.cluster(west)
    worker.link("orders", "east", "west", [f"{unique}.*"], startFrom="latest")
    worker.start()

    def begun():
        write(east, first, 0, [100])
        return (0, 100) in values(west, first)

    wait_until(begun, timeout_seconds=60, describe=worker.log_text)
    worker.stop()
    east.create_topic(late)
    write(east, late, 0, range(20))
    east.admin().create_partitions([NewPartitions(first, 2)])[first].result(30)
    write(east, first, 1, range(20))
    worker.start()

    wait_until(
        lambda: {(1, n) for n in range(20)} <= values(west, first)
        and {(0, n) for n in range(20)} == values(west, late),
        timeout_seconds=60, describe=lambda: f"{values(west, first)} {values(west, late)}",
    )  # fmt: skip
    assert not {(0, n) for n in range(10)} & values(west, first)
