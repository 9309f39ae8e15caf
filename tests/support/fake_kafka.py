"""A Kafka cluster in memory, with a producer and a consumer that act as confluent-kafka's do.

What they have in common with the real clients is what ``tests/contract`` shows of both. Nothing waits:
a call that would wait on a real cluster returns at once.
"""

from collections import deque
from dataclasses import dataclass, field

from replicator.kafka.clients import codes
from replicator.kafka.clients.client import ClientPartition, KafkaError, KafkaException, Message

PARTITION_EOF = KafkaError(codes.PARTITION_EOF)
INVALID = -1001
"""The client's offset for "none yet"."""


@dataclass(slots=True)
class Transaction:
    """Open, then committed or aborted, and what it `was` before its marker was lost; with the partitions that get its marker."""

    state: str = "open"
    was: str = ""
    partitions: set[tuple[str, int]] = field(default_factory=set)


@dataclass(slots=True)
class Entry:
    """One offset of a log: a record, or a control marker (``record`` is None), which ``ends`` transactions.

    ``writer`` is the transactional id and epoch that wrote it, and the sequence of a record.
    """

    record: dict[str, object] | None
    transaction: Transaction | None = None
    leader_epoch: int = 0
    ends: tuple[Transaction, ...] = ()
    writer: tuple[str, int, int] | None = None


class FakeCluster:
    """Topics, their logs, and who owns each transactional id."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], list[Entry]] = {}
        self.limits: dict[str, int] = {}
        self.owners: dict[str, FakeProducer] = {}
        self.leader_epoch = 0
        self.topic_ids: dict[str, str] = {}

    def create_topic(self, topic: str, *, partitions: int = 1, limit: int = 1_000_000) -> None:
        """``limit`` is the largest value in bytes that a record may have."""
        self.limits[topic] = limit
        self.topic_ids[topic] = f"{topic}-1"
        for partition in range(partitions):
            self.logs[topic, partition] = []

    def epoch_of(self, _topic: str, _partition: int) -> int:
        """The epoch of the leader now."""
        return self.leader_epoch

    def append(self, topic: str, partition: int, entry: Entry) -> int:
        """Appends under the current leader epoch; returns the offset."""
        log = self.logs[topic, partition]
        entry.leader_epoch = self.epoch_of(topic, partition)
        log.append(entry)
        return len(log) - 1

    def stable_end(self, topic: str, partition: int) -> int:
        """The last stable offset: no open transaction is before it."""
        log = self.logs[topic, partition]
        pending = (n for n, each in enumerate(log) if _state(each) == "open")
        return next(pending, len(log))

    def records(self, topic: str, partition: int = 0) -> list[dict[str, object]]:
        """What a reader of committed records sees, in order."""
        log = self.logs[topic, partition][: self.stable_end(topic, partition)]
        return [each.record for each in log if each.record and _state(each) == "committed"]


def _state(entry: Entry) -> str:
    return "committed" if entry.transaction is None else entry.transaction.state


class FakeProducer:
    """Writes when it is polled or flushed; ``queue_records`` is how much it holds until then."""

    def __init__(
        self,
        cluster: FakeCluster,
        *,
        transactional_id: str | None = None,
        on_delivery=None,
        queue_records: int = 100_000,
    ) -> None:
        """``on_delivery`` gets the failures of records without a callback of their own."""
        self._cluster = cluster
        self._id = transactional_id
        self._on_delivery = on_delivery
        self._room = queue_records
        self._queue: deque[tuple[str, int, dict[str, object], object]] = deque()
        self._transaction: Transaction | None = None
        self._failure: KafkaError | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def produce(  # noqa: PLR0917  the client's own positional form
        self, topic, value=None, key=None, partition=-1, callback=None, on_delivery=None,
        timestamp=0, headers=None,
    ) -> None:  # fmt: skip
        if self._id is not None:
            if self._transaction is None:
                raise _refused(codes.ERRONEOUS_STATE, "no transaction is open")
            if self._failure is not None:
                raise _refused(codes.ERRONEOUS_STATE, "the transaction has failed", abort=True)
        if len(self._queue) >= self._room:
            raise BufferError("Local: Queue full")
        pairs = list(headers.items()) if isinstance(headers, dict) else list(headers or ())
        record = {
            "key": key,
            "value": value,
            "timestamp": timestamp,
            "headers": [(n, v.encode() if isinstance(v, str) else v) for n, v in pairs],
        }
        self._queue.append((topic, max(partition, 0), record, callback or on_delivery))

    def poll(self, _timeout: float = 0) -> int:
        return self._write()

    def flush(self, _timeout: float = 0) -> int:
        self._write()
        return len(self._queue)

    def purge(self, **_which: bool) -> None:
        self._queue.clear()

    def init_transactions(self, _timeout: float = 0) -> None:
        before = self._cluster.owners.get(self._id)
        self._cluster.owners[self._id] = self
        if before is not None:
            before._end("aborted")
        self._transaction = self._failure = None

    def begin_transaction(self) -> None:
        self._check_owner()
        if self._transaction is not None:
            raise _refused(
                codes.ERRONEOUS_STATE, "a transaction is open", abort=self._failure is not None
            )
        self._transaction = Transaction()

    def commit_transaction(self, _timeout: float = 0) -> None:
        self._check_owner()
        if self._transaction is None:
            raise _refused(codes.ERRONEOUS_STATE, "no transaction is open")
        self._write()
        if self._failure is not None:
            raise _refused(self._failure.code(), self._failure.str(), abort=True)
        self._end("committed")

    def abort_transaction(self, _timeout: float = 0) -> None:
        self._check_owner()
        for _, _, _, callback in self._drain():
            self._report(callback, KafkaError(codes.PURGE_QUEUE), None)
        self._failure = None
        self._end("aborted")

    def _check_owner(self) -> None:
        if self._cluster.owners.get(self._id) is not self:
            fenced = KafkaError(KafkaError._FENCED, "fenced by a newer producer", True)
            raise KafkaException(fenced)

    def _drain(self):
        while self._queue:
            yield self._queue.popleft()

    def _write(self) -> int:
        written = 0
        for topic, partition, record, callback in self._drain():
            written += 1
            if self._failure is not None:
                self._report(callback, KafkaError(codes.PURGE_QUEUE), None)
            elif len(record["value"] or b"") > self._cluster.limits[topic]:
                error = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")
                if self._id is not None:
                    self._failure = error
                self._report(callback, error, None)
            else:
                if self._transaction is not None:
                    self._transaction.partitions.add((topic, partition))
                entry = Entry(record, self._transaction)
                offset = self._cluster.append(topic, partition, entry)
                message = Message(topic=topic, partition=partition, offset=offset)
                self._report(callback, None, message)
        return written

    def _report(self, callback, error: KafkaError | None, message: Message | None) -> None:
        message = Message() if message is None else message  # one without a value is false
        if callback is not None:
            callback(error, message)
        elif error is not None and self._on_delivery is not None:
            self._on_delivery(error, message)

    def _end(self, state: str) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.state = state
            for topic, partition in sorted(transaction.partitions):
                self._cluster.append(topic, partition, Entry(None))


class FakeConsumer:
    """Reads committed records of assigned partitions; the end of one is an event, once per arrival."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._next: dict[tuple[str, int], int] = {}
        self._position: dict[tuple[str, int], ClientPartition] = {}
        self._paused: set[tuple[str, int]] = set()
        self._end_reported: set[tuple[str, int]] = set()
        self.closed = False

    def assignment(self) -> list[ClientPartition]:
        return [ClientPartition(*key) for key in self._next]

    def incremental_assign(self, partitions: list[ClientPartition]) -> None:
        for item in partitions:
            self._next[item.topic, item.partition] = max(item.offset, 0)
            self._end_reported.discard((item.topic, item.partition))

    def incremental_unassign(self, partitions: list[ClientPartition]) -> None:
        for item in partitions:
            key = item.topic, item.partition
            del self._next[key]
            self._position.pop(key, None)
            self._paused.discard(key)

    def seek(self, item: ClientPartition) -> None:
        if (item.topic, item.partition) not in self._next:
            raise _refused(codes.ERRONEOUS_STATE, "not assigned")
        self.incremental_assign([item])

    def pause(self, partitions: list[ClientPartition]) -> None:
        self._paused |= {(item.topic, item.partition) for item in partitions}

    def resume(self, partitions: list[ClientPartition]) -> None:
        self._paused -= {(item.topic, item.partition) for item in partitions}

    def position(self, partitions: list[ClientPartition]) -> list[ClientPartition]:
        none = {(i.topic, i.partition): ClientPartition(i.topic, i.partition) for i in partitions}
        return [self._position.get(key, item) for key, item in none.items()]

    def get_watermark_offsets(self, item: ClientPartition, *, cached: bool = False, **_):
        del cached
        return 0, len(self._cluster.logs[item.topic, item.partition])

    def poll(self, _timeout: float = 0) -> Message | None:
        return next(iter(self.consume(1)), None)

    def consume(self, most: int = 1, _timeout: float = 0) -> list[Message]:
        found: list[Message] = []
        for key in self._next:
            if key not in self._paused:
                self._read(key, most, found)
        return found

    def close(self) -> None:
        self.closed = True

    def _read(self, key: tuple[str, int], most: int, found: list[Message]) -> None:
        log, end = self._cluster.logs[key], self._cluster.stable_end(*key)
        while len(found) < most and self._next[key] < end:
            offset = self._next[key]
            self._next[key] += 1
            entry = log[offset]
            if entry.record is None or _state(entry) == "aborted":
                continue
            self._end_reported.discard(key)
            found.append(_message(key, offset, entry))
            self._position[key] = ClientPartition(*key, offset + 1, leader_epoch=entry.leader_epoch)
        if len(found) < most and self._next[key] >= end and key not in self._end_reported:
            self._end_reported.add(key)
            if key in self._position:
                self._position[key].offset = self._next[key]
            found.append(
                Message(topic=key[0], partition=key[1], offset=self._next[key], error=PARTITION_EOF)
            )


def _message(key: tuple[str, int], offset: int, entry: Entry) -> Message:
    record = entry.record
    return Message(
        topic=key[0], partition=key[1], offset=offset, key=record["key"], value=record["value"],
        headers=record["headers"] or None, timestamp=(1, record["timestamp"]),
        leader_epoch=entry.leader_epoch,
    )  # fmt: skip


def _refused(code: int, text: str, *, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, text, False, False, abort))
