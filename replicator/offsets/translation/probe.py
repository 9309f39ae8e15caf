"""Looking into target partitions: read a few records, and tell which source offsets they are.

One consumer serves many looks; opening one costs more than a look does. For one thread at a time.
"""

import threading
from typing import Self, cast

from replicator.clock import Clock, SystemClock
from replicator.errors import ReplicatorError, TransientBrokerError, UnreachableError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import (
    ClientPartition,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    open_consumer,
)
from replicator.kafka.clients.errors import ConnectionTrouble, as_kafka_error, map_kafka_error
from replicator.kafka.clients.lost_brokers import has_broker
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.clients.settings import consumer_config
from replicator.offsets.index.runs import Pair, Window, joined
from replicator.offsets.translation.sighting import OTHERS, UNMARKED, CopyMark
from replicator.offsets.translation.translate import LONGEST, Read
from replicator.topology.plan import ClusterPlan

_BATCH = 500
_STEP_SECONDS = 0.1

_MOVED = frozenset({codes.AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, codes.LOG_TRUNCATION})


class PartitionProbe:
    """Reads stretches of one cluster's partitions; thread-safe by waiting for its turn."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str, clock: Clock | None = None) -> None:
        self._cluster = cluster
        self._subject = f"cluster:{cluster.alias}"
        self._client_id = client_id
        self._clock = clock or SystemClock()
        self._trouble = ConnectionTrouble()
        self._lock = threading.Lock()
        self._open: Consumer | None = None
        self._opened_with = OpenedWith()
        self._known_topics: set[str] = set()

    def close(self) -> None:
        """Gives the connections back; a later look opens new ones."""
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None
            self._known_topics.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def look(
        self,
        topic: str,
        partition: int,
        mark: CopyMark,
        read: Read,
        *,
        keep_unmarked: bool = True,
        timeout_seconds: float = 10.0,
    ) -> Window:
        """Reads committed records as ``read`` says; what was read in time is the answer.

        Raises:
            UnreachableError: nothing was read in time.
            TransientBrokerError: the log was cut while it was read; ask for its bounds again.
            ReplicatorError: the topic cannot be read, see its class.
        """
        with self._lock:
            deadline = self._clock.monotonic() + timeout_seconds
            consumer = self._consumer(topic, timeout_seconds)
            consumer.assign([ClientPartition(topic, partition, read.start)])
            try:
                seen = _Seen(read, mark, keep_unmarked=keep_unmarked)
                while not seen.enough:
                    left = deadline - self._clock.monotonic()
                    if left <= 0:
                        break
                    self._take(consumer, seen, min(left, _STEP_SECONDS))
            finally:
                consumer.unassign()
        if seen.position == read.start:
            raise self._late(topic, partition, timeout_seconds)
        return seen.window()

    def record(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        or_next: bool = False,
        timeout_seconds: float = 10.0,
    ) -> Message | None:
        """The record at an offset, or the next one; None when there is none, or it was aborted.

        Raises:
            UnreachableError: no answer in time.
            ReplicatorError: the topic cannot be read, see its class.
        """
        with self._lock:
            deadline = self._clock.monotonic() + timeout_seconds
            consumer = self._consumer(topic, timeout_seconds)
            consumer.assign([ClientPartition(topic, partition, offset)])
            try:
                while self._clock.monotonic() < deadline:
                    message = consumer.poll(_STEP_SECONDS)
                    if message is None:
                        continue
                    error = message.error()
                    if error is None:
                        return message if or_next or message.offset() == offset else None
                    if error.code() == codes.PARTITION_EOF or error.code() in _MOVED:
                        return None
                    raise self._failure(error, topic)
            finally:
                consumer.unassign()
        raise self._late(topic, partition, timeout_seconds)

    def _take(self, consumer: Consumer, seen: "_Seen", seconds: float) -> None:
        """Waits for one event, then takes what is there."""
        first = consumer.poll(seconds)
        if first is None:
            return
        for message in (first, *consumer.consume(_BATCH, 0)):
            error = message.error()
            if error is None:
                seen.record(message)
            elif error.code() == codes.PARTITION_EOF:
                seen.end(message.offset())
            elif error.code() in _MOVED:
                raise TransientBrokerError(
                    f"{message.topic()}/{message.partition()} lost records while it was read",
                    subject=self._subject,
                    remedy="It is tried again by itself.",
                )
            elif not error.retriable():
                raise self._failure(error, message.topic() or "")

    def _consumer(self, topic: str, timeout_seconds: float) -> Consumer:
        if self._open is not None and self._opened_with.outdated():
            self._open.close()
            self._open = None
            self._known_topics.clear()
        if self._open is None:
            self._opened_with = OpenedWith(self._cluster)
            config = consumer_config(
                self._cluster,
                client_id=self._client_id,
                fetch_wait_seconds=0.01,
                partition_fetch_bytes=1024 * 1024,
                queue_bytes=4 * 1024 * 1024,
                on_error=self._trouble,
            )
            config["queued.min.messages"] = 2 * _BATCH
            self._open = open_consumer(config, subject=self._subject)
        if topic not in self._known_topics:
            # Without the look-up the library fetches before it knows a leader: half a second.
            try:
                found = self._open.list_topics(topic, timeout=timeout_seconds)
            except KafkaException as raised:
                raise self._failure(as_kafka_error(raised), topic) from raised
            error = found.topics[topic].error
            if error is not None:
                raise self._failure(error, topic)
            self._known_topics.add(topic)
        return self._open

    def _failure(self, error: KafkaError, topic: str) -> ReplicatorError:
        return map_kafka_error(
            error, subject=self._subject, doing=f"read {topic}", cause=self._trouble.cause()
        )

    def _late(self, topic: str, partition: int, seconds: float) -> ReplicatorError:
        cause = self._trouble.cause()
        if self._open is not None and not has_broker(self._open, topic):
            self.close()  # it may never find one again
        if cause is not None:
            return self._failure(cause, topic)
        return UnreachableError(
            f"cannot read {topic}/{partition} within {seconds:g} seconds",
            subject=self._subject,
            remedy="Check that the partition has a leader.",
        )


class _Seen:
    """What one look has seen so far."""

    def __init__(self, read: Read, mark: CopyMark, *, keep_unmarked: bool) -> None:
        self.position = read.start
        self.enough = False
        self._read = read
        self._mark = mark
        self._keep_unmarked = keep_unmarked
        self._pairs: list[Pair] = []
        self._unmarked: list[int] = []
        self._count = 0

    def record(self, message: Message) -> None:
        offset = message.offset()
        if offset is None or offset < self.position or self.position >= self._read.until:
            return
        if offset >= self._read.until:
            self.end(self._read.until)
            return
        source = self._source_offset(message)
        self.position = offset + 1
        self._count += 1
        if source >= 0:
            self._pairs.append(Pair(source, offset))
        elif source == UNMARKED and self._keep_unmarked:
            self._unmarked.append(offset)
        self.enough = (
            self.enough
            or source >= self._read.stop_at
            or self._count >= (self._read.records if self._pairs else LONGEST)
            or self.position >= self._read.until
        )

    def end(self, offset: int | None) -> None:
        self.position = max(self.position, offset or 0)
        self.enough = True

    def window(self) -> Window:
        return Window(self._read.start, self.position, joined(self._pairs), tuple(self._unmarked))

    def _source_offset(self, message: Message) -> int:
        try:
            headers = cast("list[tuple[str, bytes | None]] | None", message.headers())
        except SystemError:  # a header name that is no text: the records engine never writes one
            return OTHERS
        return self._mark.source_offset(headers)
