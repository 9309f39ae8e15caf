"""Reading ranges of partitions inside a task: every record once, in order, and never one too many.

The end of a range may be an offset that no reader ever sees (a transaction marker, a compacted
record), so a range ends at the first record behind it or at the library's end-of-partition event.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, cast

from replicator.clock import Clock, SystemClock
from replicator.dataplane.copy.source_message import Headers, SourceMessage, read_headers
from replicator.errors import ReplicatorError, SourceDataLostError, UnreachableError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import (
    ClientPartition,
    KafkaError,
    KafkaException,
    open_consumer,
)
from replicator.kafka.clients.errors import (
    ConnectionTrouble,
    as_kafka_error,
    map_kafka_error,
    may_pass,
)
from replicator.kafka.clients.settings import Isolation, consumer_config
from replicator.spark.base.ranges import Range
from replicator.topology.plan import ClusterPlan

BATCH_RECORDS = 5_000
SILENT_SECONDS = 60.0
"""How long a range may give nothing at all before it is given up."""
QUEUE_BYTES = 32 * 1024 * 1024
_STEP_SECONDS = 0.2
_GONE = {KafkaError.OFFSET_OUT_OF_RANGE, codes.AUTO_OFFSET_RESET, codes.LOG_TRUNCATION}


@dataclass(frozen=True, slots=True)
class Scanned:
    """Some records of one range, in order, with their headers (UNREADABLE where they are)."""

    range: Range
    messages: Sequence[SourceMessage]
    headers: Sequence[Headers | None]


class RangeScanner:
    """Reads ranges one after the other with one consumer; for one thread."""

    def __init__(
        self,
        cluster: ClusterPlan,
        *,
        isolation: Isolation = "read_committed",
        client_id: str = "replicator-spark",
        lost_is_error: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """``lost_is_error``: offsets that are gone raise; else reading goes on behind them."""
        self._subject = f"cluster:{cluster.alias}"
        self._trouble = ConnectionTrouble()
        self._lost_is_error = lost_is_error
        self._clock = clock or SystemClock()
        config = consumer_config(
            cluster,
            client_id=client_id,
            isolation=isolation,
            queue_bytes=QUEUE_BYTES,
            on_error=self._trouble,
        )
        if not lost_is_error:
            config["auto.offset.reset"] = "earliest"
        self._consumer = open_consumer(config, subject=self._subject)
        self._known: set[str] = set()

    def close(self) -> None:
        """Closes the connections."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def scan(self, wanted: Range) -> Iterator[Scanned]:
        """The records of a range.

        Raises:
            SourceDataLostError: offsets of it are gone, or the partition ends before it.
            UnreachableError: nothing came for too long.
            ReplicatorError: the partition cannot be read, see its class.
        """
        if not wanted.size:
            return
        self._look_up(wanted.topic)
        place = ClientPartition(wanted.topic, wanted.partition, wanted.start)
        self._consumer.assign([place])
        deadline = self._clock.monotonic() + SILENT_SECONDS
        try:
            while True:
                taken = self._consumer.consume(BATCH_RECORDS, _STEP_SECONDS)
                if taken:
                    deadline = self._clock.monotonic() + SILENT_SECONDS
                elif self._clock.monotonic() > deadline:
                    raise self._silent(wanted)
                records, ended = self._sort(cast("Sequence[SourceMessage]", taken), wanted)
                if records:
                    yield Scanned(wanted, records, read_headers(records))
                if ended:
                    return
        finally:
            self._consumer.unassign()

    def _sort(
        self, taken: Sequence[SourceMessage], wanted: Range
    ) -> tuple[list[SourceMessage], bool]:
        """The records of the range among what was taken, and whether the range ends with them."""
        records: list[SourceMessage] = []
        end = wanted.end
        for message in taken:
            error = message.error()
            if error is None:
                if message.offset() >= end:
                    return records, True
                records.append(message)
            elif error.code() == codes.PARTITION_EOF:
                if message.offset() < end and self._lost_is_error:
                    raise self._lost(wanted, f"it ends at {message.offset()} now")
                return records, True
            elif error.code() in _GONE:
                raise self._lost(wanted, "they are gone")
            else:
                failure = self._failure(error, wanted)
                if not may_pass(failure):
                    raise failure
        if records and records[-1].offset() == end - 1:
            return records, True
        return records, False

    def _look_up(self, topic: str) -> None:
        """Asked first, leaders are known at once; the library alone takes half a second to ask."""
        if topic in self._known:
            return
        deadline = self._clock.monotonic() + SILENT_SECONDS
        while True:
            try:
                found = self._consumer.list_topics(topic, timeout=5.0)
                error = found.topics[topic].error
            except KafkaException as raised:
                error = as_kafka_error(raised)
            if error is None:
                self._known.add(topic)
                return
            self._consumer.poll(0.05)
            failure = self._failure(error, Range(topic, 0, 0, 0))
            if not may_pass(failure) or self._clock.monotonic() > deadline:
                raise failure

    def _failure(self, error: KafkaError, wanted: Range) -> ReplicatorError:
        return map_kafka_error(
            error,
            subject=self._subject,
            doing=f"read {wanted.topic}/{wanted.partition}",
            cause=self._trouble.cause(),
        )

    def _lost(self, wanted: Range, what: str) -> ReplicatorError:
        return SourceDataLostError(
            f"{wanted.topic}/{wanted.partition}: offsets {wanted.start} to {wanted.end} were to be "
            f"read, but {what}",
            subject=self._subject,
            remedy="Retention or a recreated topic took them; read from where the log begins now.",
        )

    def _silent(self, wanted: Range) -> ReplicatorError:
        cause = self._trouble.cause()
        if cause is not None:
            return self._failure(cause, wanted)
        return UnreachableError(
            f"{wanted.topic}/{wanted.partition} gave nothing for {SILENT_SECONDS:g} seconds",
            subject=self._subject,
            remedy="Check that it has a leader and that no transaction hangs.",
        )
