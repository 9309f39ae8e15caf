"""Fills source topics fast, and counts what arrived on a target."""

import uuid
from collections.abc import Sequence

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from payload import Codec, Payload

from replicator.testing import LocalCluster

PARTITIONS = 4
_SOURCE_BATCH_BYTES = 250 * 1024
_MOST_BATCH_BYTES = 8 * 1024 * 1024
_PRODUCERS = 2
_QUEUED_RECORDS = 250_000
_COUNT_TIMEOUT_SECONDS = 30.0


def fill(cluster: LocalCluster, *, topic: str, records: int, size_bytes: int) -> int:
    """Creates the topic and writes hex text evenly over its partitions; see ``fill_with``."""
    return fill_with(cluster, topic=topic, payload=Payload("", size_bytes, records))


def fill_with(cluster: LocalCluster, *, topic: str, payload: Payload) -> int:
    """Creates the topic and writes the records evenly over its partitions.

    Returns:
        How many records were written: those asked for, rounded up to whole runs.
    """
    cluster.create_topic(topic, partitions=payload.partitions)
    return write(cluster, topic=topic, payload=payload)


def write(cluster: LocalCluster, *, topic: str, payload: Payload) -> int:
    """Writes into a topic that is there; as ``fill_with``, which tells what it returns."""
    # Two, because each compresses in one thread.
    producers = [
        _producer(cluster, codec=payload.codec, batch_records=payload.batch_records)
        for _ in range(_PRODUCERS)
    ]
    run = [{"value": value} for value in payload.bodies()]
    written = 0
    while written < payload.records:
        for partition in range(payload.partitions):
            producer = producers[partition % _PRODUCERS]
            while len(producer) > _QUEUED_RECORDS - len(run):
                producer.poll(0.01)
            producer.produce_batch(topic, run, partition=partition)
            written += len(run)
    if any(producer.flush(120) for producer in producers):
        raise RuntimeError(f"{topic} could not be filled in time")
    return written


def _producer(cluster: LocalCluster, *, codec: Codec, batch_records: int) -> Producer:
    by_count = batch_records > 0
    return Producer(
        {
            **cluster.client_settings(),
            "acks": "all",
            "linger.ms": 100,
            "batch.size": _MOST_BATCH_BYTES if by_count else _SOURCE_BATCH_BYTES,
            "batch.num.messages": batch_records if by_count else 100_000,
            "message.max.bytes": _MOST_BATCH_BYTES,
            "queue.buffering.max.messages": _QUEUED_RECORDS,
            "compression.type": codec,
        }
    )


def count(cluster: LocalCluster, *, topic: str, partitions: int = PARTITIONS) -> int:
    """Reads a topic to its end as a read-committed reader would, and counts the records."""
    consumer = Consumer(
        {
            **cluster.client_settings(),
            "group.id": f"bench-count-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": 65_536,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    records, ended = 0, 0
    while ended < partitions:
        messages = consumer.consume(5_000, 1.0)
        if not messages and ended == 0:
            _check_alive(consumer, topic)
        for message in messages:
            if message.error() is None:
                records += 1
            else:
                ended += 1  # end of partition is the only event left on an idle, healthy topic
    consumer.close()
    return records


def tail(cluster: LocalCluster, *, topics: Sequence[str], partitions: int = PARTITIONS) -> Consumer:
    """A read-committed consumer at the end of the topics, tuned for the lowest delay."""
    consumer = Consumer(
        {
            **cluster.client_settings(),
            "group.id": f"bench-tail-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
            "fetch.min.bytes": 1,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign(
        [
            TopicPartition(topic, partition, OFFSET_END)
            for topic in topics
            for partition in range(partitions)
        ]
    )
    return consumer


def _check_alive(consumer: Consumer, topic: str) -> None:
    consumer.list_topics(topic, timeout=_COUNT_TIMEOUT_SECONDS)
