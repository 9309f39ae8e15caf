"""Everything that stands in a topic now, as a reader of committed records gets it."""

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from replicator.identifiers import HOPS_HEADER
from replicator.testing import LocalCluster

PATIENCE_SECONDS = 60.0


def read_topic(
    cluster: LocalCluster,
    topic: str,
    partitions: Iterable[int] | None = None,
    *,
    start: int = 0,
    **settings: Any,
) -> list[Message]:
    """The records up to the end that each partition had at the first answer, by partition and offset.

    A transaction is decided a moment before its markers stand in every partition, and a reader is
    told of an end before them; this one reads on until they are passed.

    Args:
        cluster: asked directly, whatever stands between it and the program under test.
        topic: must exist.
        partitions: all when not given.
        start: offset at which each partition is begun.
        settings: of the consumer, with underscores for dots.
    """
    consumer = Consumer(
        {
            **cluster.client_settings(),
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "fetch.wait.max.ms": 20,  # the end of a log is told by an empty answer
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    try:
        if partitions is None:
            metadata = consumer.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic]
            partitions = metadata.partitions
        left = set(partitions)
        consumer.assign([TopicPartition(topic, number, start) for number in left])
        found: list[Message] = []
        ends: dict[int, int] = {}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while left:
            assert time.monotonic() < deadline, f"{topic} cannot be read to its end: {left}"
            for message in consumer.consume(500, 0.1):
                error, number, behind = message.error(), message.partition(), message.offset()
                if error is None:
                    found.append(message)
                    behind += 1
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise AssertionError(error)
                # Under load no end may ever be told; what is read is compared with the first one known.
                if number not in ends:
                    ends[number] = _high_watermark(consumer, topic, number)
                    assert ends[number] >= 0, "an answer says where the log ends"
                if behind >= ends[number]:
                    left.discard(number)
    finally:
        consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def _high_watermark(consumer: Consumer, topic: str, partition: int) -> int:
    """Where a partition ended at its last fetch, open transactions included."""
    place = TopicPartition(topic, partition)
    return consumer.get_watermark_offsets(place, timeout=PATIENCE_SECONDS, cached=True)[1]


def engine_of_newest(cluster: LocalCluster, topic: str) -> str:
    """The engine that copied the last record of partition 0: only the records engine adds a header."""
    found = read_topic(cluster, topic, [0])
    names = [name for name, _ in (found[-1].headers() or [] if found else [])]
    return "records" if HOPS_HEADER in names else "batches"
