"""Fills source topics fast, and counts what arrived on a target."""

import random
import uuid
from collections.abc import Sequence

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from replicator.testing import LocalCluster

PARTITIONS = 4
_SOURCE_BATCH_BYTES = 250 * 1024
_RUN = 1_000
_PAYLOADS = 1_000
_COUNT_TIMEOUT_SECONDS = 30.0


def payloads(*, size_bytes: int, seed: int = 1) -> list[bytes]:
    """Semi-random records: hex text, so that a codec would gain about half and no more."""
    draw = random.Random(seed)
    return [
        draw.randbytes((size_bytes + 1) // 2).hex().encode()[:size_bytes] for _ in range(_PAYLOADS)
    ]


def fill(cluster: LocalCluster, *, topic: str, records: int, size_bytes: int) -> int:
    """Creates the topic and writes the records evenly over its partitions.

    Returns:
        How many records were written: ``records`` rounded up to whole runs.
    """
    cluster.create_topic(topic, partitions=PARTITIONS)
    producer = Producer(
        {
            **cluster.client_settings(),
            "acks": "all",
            "linger.ms": 100,
            "batch.size": _SOURCE_BATCH_BYTES,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 500_000,
            "compression.type": "none",
        }
    )
    run = [{"value": value} for value in payloads(size_bytes=size_bytes)][:_RUN]
    written = 0
    while written < records:
        for partition in range(PARTITIONS):
            while len(producer) > 400_000:
                producer.poll(0.01)
            producer.produce_batch(topic, run, partition=partition)
            written += len(run)
    if producer.flush(120):
        raise RuntimeError(f"{topic} could not be filled in time")
    return written


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
