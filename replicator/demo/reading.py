"""Reading clusters as an application would: one copied record to explain, and everything at the end."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from replicator.errors import ReplicatorError
from replicator.identifiers import HOPS_HEADER
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.client import Consumer, Message, TopicPartition, open_consumer
from replicator.kafka.codes import PARTITION_EOF
from replicator.kafka.settings import consumer_config
from replicator.testing.history import (
    FINAL,
    ID_HEADER,
    Event,
    Scanned,
    Seen,
    digest,
    digest_headers,
)
from replicator.topology.plan import ClusterPlan

CLIENT_ID = "demo-reader"
_SCAN_SECONDS = 60.0

Headers = Sequence[tuple[str, bytes | None]]


class Found(NamedTuple):
    """A copied record as it stands on its target."""

    cluster: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    hops: bytes


def find_copied_record(
    cluster: ClusterPlan, topics: Sequence[str], *, timeout_seconds: float
) -> Found | None:
    """The newest reachable record with a hop header and a value, None when none came in time."""
    deadline = time.monotonic() + timeout_seconds
    with _reader(cluster, topics, newest=50) as consumer:
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None or message.error() is not None or message.value() is None:
                continue
            hops = dict(_headers(message)).get(HOPS_HEADER)
            if hops is not None and message.key() is not None:
                return Found(
                    str(cluster.alias), *_place(message), message.key(), message.value(), hops
                )
    return None


def scan(cluster: ClusterPlan, topics: Sequence[str]) -> Iterator[Event]:
    """Everything readers of committed records find in these topics, as events of a history.

    Raises:
        ReplicatorError: the end was not reached in time.
    """
    deadline = time.monotonic() + _SCAN_SECONDS
    with _reader(cluster, topics, newest=None) as consumer:
        starts = {(item.topic, item.partition): item.offset for item in consumer.assignment()}
        left = set(starts)
        while left:
            if time.monotonic() > deadline:
                raise ReplicatorError(
                    f"not read to the end within {_SCAN_SECONDS:g} s: {sorted(left)}",
                    subject=f"cluster:{cluster.alias}",
                )
            for message in consumer.consume(1000, 0.1):
                error = message.error()
                if error is None:
                    yield _seen(cluster, message)
                elif error.code() == PARTITION_EOF:
                    topic, partition, end = _place(message)
                    left.discard((topic, partition))
                    yield Scanned(
                        FINAL, str(cluster.alias), topic, partition, starts[topic, partition], end
                    )


def all_committed(cluster: ClusterPlan, topics: Sequence[str]) -> bool:
    """Whether nothing stands in these topics that readers of committed records cannot see yet.

    A transaction is decided a moment before its markers are in every partition.
    """
    with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
        places = _places(admin, topics)
        stable = admin.offsets(places, "latest", isolation="read_committed")
        return stable == admin.offsets(places, "latest", isolation="read_uncommitted")


@contextlib.contextmanager
def _reader(
    cluster: ClusterPlan, topics: Sequence[str], *, newest: int | None
) -> Iterator[Consumer]:
    with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
        places = _places(admin, topics)
        starts = admin.offsets(places, "earliest")
        if newest is not None:
            starts |= {
                place: max(0, end - newest) if isinstance(end, int) else end
                for place, end in admin.offsets(places, "latest").items()
            }
    consumer = open_consumer(
        consumer_config(cluster, client_id=CLIENT_ID, group_id=CLIENT_ID, fetch_wait_seconds=0.05)
    )
    try:
        consumer.assign(
            [
                TopicPartition(*place, start)
                for place, start in starts.items()
                if isinstance(start, int)
            ]
        )
        yield consumer
    finally:
        consumer.close()


def _places(admin: ClusterAdmin, topics: Sequence[str]) -> list[tuple[str, int]]:
    counts = admin.topic_partitions()
    return [(topic, number) for topic in topics for number in range(counts.get(topic, 0))]


def _seen(cluster: ClusterPlan, message: Message) -> Seen:
    headers = _headers(message)
    named = dict(headers)
    topic, partition, offset = _place(message)
    return Seen(
        view=FINAL,
        cluster=str(cluster.alias),
        topic=topic,
        partition=partition,
        offset=offset,
        id=_text(named.get(ID_HEADER)),
        key=digest(message.key()),
        value=digest(message.value()),
        headers=digest_headers(headers),
        timestamp_ms=message.timestamp()[1],
        hops=_text(named.get(HOPS_HEADER)),
    )


def _place(message: Message) -> tuple[str, int, int]:
    return message.topic() or "", message.partition() or 0, message.offset() or 0


def _headers(message: Message) -> Headers:
    return [
        (name, value.encode() if isinstance(value, str) else value)
        for name, value in list(message.headers() or ())
        if isinstance(name, str)
    ]


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "replace")
