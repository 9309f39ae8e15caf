"""The unreplicated tail: records the old cluster acknowledged that never reached the new one."""

import base64
import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from replicator.batches.registry.copied_ranges import CopiedRanges
from replicator.batches.registry.producer_registry import ProducerRegistry
from replicator.clock import Clock
from replicator.errors import UnreachableError
from replicator.failover.clusters.link_clusters import CLIENT_ID
from replicator.identifiers import TopicPartition
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import (
    TIMESTAMP_NOT_AVAILABLE,
    ClientPartition,
    Consumer,
    Message,
    open_consumer,
)
from replicator.kafka.clients.errors import map_kafka_error, may_pass
from replicator.kafka.clients.settings import consumer_config
from replicator.policy.copies.provenance import Arrivals, Headers
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.fetch_one import fetch_record

READ_SECONDS = 300.0
_BATCH = 500


@dataclass(frozen=True, slots=True)
class TailRecord:
    """One record of the tail, as the old cluster has it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def injectable(self) -> bool:
        """Whether the client library can write it unchanged; other records stay in the export only."""
        names_are_text = all(
            name.isprintable() and name == name.encode("utf-8", "replace").decode()
            for name, _ in self.headers
        )
        return names_are_text and self.timestamp_ms > 0

    def as_json(self) -> dict[str, Any]:
        """As it is exported; bytes in base64, because they need not be text."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp_ms,
            "key": _text(self.key),
            "value": _text(self.value),
            "headers": [
                {"name": name.encode("utf-8", "replace").decode(), "value": _text(value)}
                for name, value in self.headers
            ],
        }


def read_tail(
    cluster: ClusterPlan,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    seen_by: str,
    arrivals: Arrivals,
    topology: str,
    clock: Clock,
) -> Generator[TailRecord]:
    """Committed records of half-open ranges, in order of partition and offset; to be closed.

    Those whose way led through ``seen_by`` came from there and are left out, also what whole batches
    brought without a header; ``arrivals`` are those of the cluster that is read.

    Raises:
        ReplicatorError: the cluster does not answer, or a range is not readable to its end.
    """
    config = consumer_config(cluster, client_id=CLIENT_ID)
    subject = f"cluster:{cluster.alias}"
    with _copied_from(cluster, seen_by, topology=topology) as copied:
        for key, (start, end) in sorted(ranges.items()):
            if start >= end:
                continue
            consumer = open_consumer(config, subject=subject)
            try:
                for message in _messages(consumer, key, start, end, subject=subject, clock=clock):
                    record = _record(cluster, message)
                    came = seen_by in arrivals.passed(record.headers, *key)
                    if not came and not (copied and copied.holds(*key, record.offset)):
                        yield record
            finally:
                consumer.close()


@contextmanager
def _copied_from(
    cluster: ClusterPlan, alias: str, *, topology: str
) -> Iterator[CopiedRanges | None]:
    """Tells what whole batches brought to a cluster from another; None where none ever did.

    Raises:
        ReplicatorError: the cluster does not answer.
    """
    with closing(ProducerRegistry(cluster, topology, client_id=CLIENT_ID)) as registry:
        registry.read()
        if all(each.source != alias for each in registry.registered.values()):
            yield None
            return
        source_of = registry.source_of
        ranges = CopiedRanges(cluster, source_of, blocked=(alias,), client_id=CLIENT_ID)
        with closing(ranges):
            yield ranges


def _messages(
    consumer: Consumer, key: TopicPartition, start: int, end: int, *, subject: str, clock: Clock
) -> Iterator[Message]:
    topic, partition = key
    deadline = clock.monotonic() + READ_SECONDS
    consumer.list_topics(topic, timeout=10.0)
    consumer.assign([ClientPartition(topic, partition, start)])
    while True:
        if clock.monotonic() > deadline:
            raise UnreachableError(f"{topic}/{partition} was not read in time", subject=subject)
        for message in consumer.consume(_BATCH, 0.2):
            error = message.error()
            if error is None:
                if (message.offset() or 0) >= end:
                    return
                yield message
            elif error.code() == codes.PARTITION_EOF:
                # The end of what is stable: before the range's end a transaction is still open.
                if (message.offset() or 0) >= end:
                    return
            else:
                failure = map_kafka_error(error, subject=subject, doing=f"read {topic}")
                if not may_pass(failure):
                    raise failure


def _record(cluster: ClusterPlan, message: Message) -> TailRecord:
    kind, timestamp = message.timestamp()
    try:
        headers = cast("Headers", message.headers() or ())
    except SystemError:  # a header name that is no text: only the protocol itself gives it
        raw = fetch_record(
            cluster, message.topic() or "", message.partition() or 0, message.offset() or 0
        )
        headers = [(name.decode("utf-8", "surrogateescape"), value) for name, value in raw.headers]
    return TailRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp_ms=-1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
    )


@dataclass(frozen=True, slots=True)
class Export:
    """What was exported: how many records by partition, where to, and the file's SHA-256."""

    counts: Mapping[TopicPartition, int]
    file: Path
    parquet: Path | None
    digest: str
    oldest_ms: int
    newest_ms: int


def export_tail(
    records: Iterator[TailRecord], file: Path, *, to_parquet: Callable[[Path], Path | None]
) -> Export:
    """Writes JSON lines, and Parquet beside them where ``to_parquet`` can.

    Written under a temporary name first, so that a file under its own name is complete.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    counts: dict[TopicPartition, int] = {}
    digest = hashlib.sha256()
    oldest, newest = -1, -1
    fresh = file.with_suffix(".part")
    with fresh.open("wb") as sink:
        for record in records:
            line = json.dumps(record.as_json(), separators=(",", ":")).encode() + b"\n"
            sink.write(line)
            digest.update(line)
            key = (record.topic, record.partition)
            counts[key] = counts.get(key, 0) + 1
            oldest = record.timestamp_ms if oldest < 0 else min(oldest, record.timestamp_ms)
            newest = max(newest, record.timestamp_ms)
    fresh.replace(file)
    return Export(counts, file, to_parquet(file), digest.hexdigest(), oldest, newest)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
