"""Reads a cluster: one copied record to explain, and whether every transaction is complete."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from replicator.identifiers import HOPS_HEADER
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import ClientPartition, Consumer, Message, open_consumer
from replicator.kafka.clients.settings import consumer_config
from replicator.topology.plan import ClusterPlan

CLIENT_ID = "demo-reader"
_LOOK_BACK = 50

Headers = Sequence[tuple[str, bytes | None]]


class Found(NamedTuple):
    """A copied record as its target has it."""

    cluster: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    hops: bytes | None


def find_copied_record(
    cluster: ClusterPlan, topics: Sequence[str], *, marked: bool, timeout_seconds: float
) -> Found | None:
    """The newest reachable record with a key and a value, None when none came in time.

    ``marked``: only one with a hop header; in whole batches no copy has one.
    """
    deadline = time.monotonic() + timeout_seconds
    with _reader(cluster, topics) as consumer:
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None or message.error() is not None or message.value() is None:
                continue
            hops = dict(_headers(message)).get(HOPS_HEADER)
            if (hops is not None or not marked) and message.key() is not None:
                return Found(
                    str(cluster.alias), *_place(message), message.key(), message.value(), hops
                )
    return None


def all_committed(cluster: ClusterPlan, topics: Sequence[str]) -> bool:
    """Whether readers of committed records see everything in these topics.

    A transaction is decided a moment before its markers are in every partition.
    """
    with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
        places = _places(admin, topics)
        stable = admin.offsets(places, "latest", isolation="read_committed")
        return stable == admin.offsets(places, "latest", isolation="read_uncommitted")


@contextlib.contextmanager
def _reader(cluster: ClusterPlan, topics: Sequence[str]) -> Iterator[Consumer]:
    """A consumer a little before the end of every partition."""
    with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
        ends = admin.known_offsets(_places(admin, topics), "latest")
    consumer = open_consumer(
        consumer_config(cluster, client_id=CLIENT_ID, group_id=CLIENT_ID, fetch_wait_seconds=0.05)
    )
    try:
        consumer.assign(
            [ClientPartition(*place, max(0, end - _LOOK_BACK)) for place, end in ends.items()]
        )
        yield consumer
    finally:
        consumer.close()


def _places(admin: ClusterAdmin, topics: Sequence[str]) -> list[tuple[str, int]]:
    counts = admin.topic_partitions()
    return [(topic, number) for topic in topics for number in range(counts.get(topic, 0))]


def _place(message: Message) -> tuple[str, int, int]:
    return message.topic() or "", message.partition() or 0, message.offset() or 0


def _headers(message: Message) -> Headers:
    return [
        (name, value.encode() if isinstance(value, str) else value)
        for name, value in list(message.headers() or ())
        if isinstance(name, str)
    ]
