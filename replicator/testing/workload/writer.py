"""A workload that writes while things break, and records the truth about each write."""

import functools
import itertools
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import TopicMetadata

from replicator.errors import ReplicatorError
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.kafka.logs.producer_calls import abort_transaction
from replicator.testing.checker.history import (
    Completed,
    Event,
    Outcome,
    Sent,
    TransactionEnded,
    digest,
    digest_headers,
)
from replicator.testing.kit.endpoints import Endpoint
from replicator.testing.kit.waiting import wait_until
from replicator.testing.workload.recorder import Recorder
from replicator.testing.workload.records import RecordStyle, new_record

_POLL_SECONDS = 0.01
_METADATA_TIMEOUT_SECONDS = 20.0
_DELIVERY_TIMEOUT_SECONDS = 30.0
_TRANSACTION_RECORDS = 20
_QUIET = 0  # librdkafka would print every refused connection of a killed broker

# Refused because of what the record is: no earlier attempt can have been taken either. After any
# other error one may have been, so the outcome is unknown.
_REFUSED = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError._BAD_MSG,  # noqa: SLF001  # how confluent-kafka spells client-side errors
}


class Writer:
    """Writes records of its own making in a thread, idempotently, until stopped.

    Args:
        cluster: where to; its name is the alias in the history.
        topics: existing ones; partitions are drawn evenly.
        history: where every write and its outcome go; its own by default.
        rate_per_second: of all topics together; none is as fast as acknowledged.
        seed: same seed, same records (ids differ between writers).
        transactional: in transactions of about 20 records.
        abort_ratio: share of transactions that are aborted on purpose.
        style: what records look like.
        user: of a secured cluster.
        epoch: called at each write; the role epoch that the application believes in.
        max_records: ends by itself after so many.
        between: called with its transaction after each record of one, in the thread: what an application
            does there, such as reading.
    """

    def __init__(
        self,
        cluster: Endpoint,
        topics: Sequence[str],
        *,
        history: Recorder | None = None,
        rate_per_second: float | None = 1_000.0,
        seed: int = 0,
        transactional: bool = False,
        abort_ratio: float = 0.0,
        style: RecordStyle | None = None,
        user: str | None = None,
        epoch: Callable[[], int | None] | None = None,
        max_records: int | None = None,
        between: Callable[[str], None] | None = None,
    ) -> None:
        self._cluster = cluster
        self._topics = tuple(topics)
        self._history = history or Recorder()
        self._rate = rate_per_second
        self._random = random.Random(seed)
        self._transactional = transactional
        self._abort_ratio = abort_ratio
        self._style = style or RecordStyle()
        self._user = user
        self._epoch = epoch or (lambda: None)
        self._max_records = max_records
        self._between = between or (lambda _transaction: None)
        self._name = f"{cluster.name}.{uuid.uuid4().hex[:8]}"
        self._stopping = threading.Event()
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, name=f"writer-{self._name}", daemon=True)
        self._failure: Exception | None = None
        self._coordinator = CoordinatorWatch()
        self._producer = self._new_producer()
        self.sent = 0
        self.acked = 0
        self.refused = 0
        self.last_ack_at = 0.0

    @property
    def events(self) -> list[Event]:
        """Everything in the history it writes to, so far."""
        return self._history.events()

    def start(self) -> "Writer":
        """Begins to write; returns itself."""
        self._thread.start()
        return self

    def stop(self, *, timeout_seconds: float = 60.0) -> None:
        """Ends, waits for outstanding outcomes, and raises what went wrong in the thread.

        A record whose outcome did not come stays of unknown outcome in the history.

        Raises:
            ReplicatorError: the thread failed, or did not end in time.
        """
        self._stopping.set()
        self.join(timeout_seconds=timeout_seconds)

    def abandon(self) -> None:
        """Ends as an application does whose site is lost: what it had under way is never known.

        Returns at once; ``stop`` waits for the end.
        """
        self._abandoned = True
        self._stopping.set()

    def join(self, *, timeout_seconds: float = 60.0) -> None:
        """Waits for a writer with ``max_records`` to end by itself.

        Raises:
            ReplicatorError: the thread failed, or did not end in time.
        """
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            raise ReplicatorError(f"still writing after {timeout_seconds:g} s", subject=self._name)
        if self._failure is not None:
            raise ReplicatorError(
                f"writer failed: {self._failure}", subject=self._name
            ) from self._failure

    def wait_acked(self, count: int, *, timeout_seconds: float = 30.0) -> None:
        """Waits until ``count`` more records are acknowledged than now.

        Raises:
            NotInTimeError: they were not.
        """
        goal = self.acked + count
        wait_until(
            lambda: self.acked >= goal or not self._thread.is_alive(),
            timeout_seconds=timeout_seconds,
            describe=lambda: f"{goal} acknowledged writes of {self._name}, has {self.acked}",
        )

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            places = self._places()
            if self._transactional:
                self._write_transactions(places)
            else:
                for _ in self._paced():
                    self._write(places, transaction=None)
                if self._abandoned:
                    self._producer.purge()
                self._producer.flush(_DELIVERY_TIMEOUT_SECONDS + 5)
        except (KafkaException, ReplicatorError) as error:
            self._failure = error

    def _paced(self) -> Iterator[int]:
        """Yields once per record that is due; serves delivery reports while it waits."""
        begun = time.monotonic()
        for number in itertools.count():
            if self._max_records is not None and self.sent >= self._max_records:
                return
            if self._rate is not None:
                due = begun + number / self._rate
                while time.monotonic() < due and not self._stopping.is_set():
                    self._producer.poll(min(_POLL_SECONDS, max(0.0, due - time.monotonic())))
            self._producer.poll(0)
            if self._stopping.is_set():
                return
            yield number

    def _write(self, places: list[tuple[str, int]], *, transaction: str | None) -> None:
        topic, partition = self._random.choice(places)
        record = new_record(self._random, id_=f"{self._name}.{self.sent}", style=self._style)
        timestamp_ms = int(time.time() * 1000)
        self.sent += 1
        self._history.record(
            Sent(
                id=record.id,
                cluster=self._cluster.name,
                topic=topic,
                partition=partition,
                key=digest(record.key),
                value=digest(record.value),
                headers=digest_headers(record.headers),
                timestamp_ms=timestamp_ms,
                transaction=transaction,
                epoch=self._epoch(),
                at=time.time(),
            )
        )
        while True:
            try:
                self._producer.produce(
                    topic,
                    record.value,
                    record.key,
                    partition,
                    on_delivery=functools.partial(self._delivered, record.id),
                    timestamp=timestamp_ms,
                    headers=record.client_headers(),
                )
            except BufferError:
                self._producer.poll(_POLL_SECONDS)
            except KafkaException as error:
                # The client remembers for a while that it was denied and does not even send.
                if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise
                self.refused += 1
                self._history.record(Completed(record.id, "fail", partition, None, time.time()))
                self._producer.poll(_POLL_SECONDS)
                return
            else:
                return

    def _delivered(self, id_: str, error: KafkaError | None, message: Message) -> None:
        outcome: Outcome = "ok"
        offset = message.offset()
        if error is None:
            self.acked += 1
            self.last_ack_at = time.time()
        else:
            self.refused += 1
            outcome = "fail" if error.code() in _REFUSED else "unknown"
            offset = None
        self._history.record(Completed(id_, outcome, message.partition(), offset, time.time()))

    def _places(self) -> list[tuple[str, int]]:
        places = []
        for topic in self._topics:
            found = self._found(topic)
            if found.error is not None:
                raise ReplicatorError(f"can not write: {found.error}", subject=topic)
            places += [(topic, partition) for partition in sorted(found.partitions)]
        return places

    def _found(self, topic: str) -> TopicMetadata:
        """What the cluster says of a topic; a broker that is gone for a moment is asked again."""
        deadline = time.monotonic() + _DELIVERY_TIMEOUT_SECONDS
        while True:
            try:
                answer = self._producer.list_topics(topic, _METADATA_TIMEOUT_SECONDS)
            except KafkaException:
                if self._stopping.wait(_POLL_SECONDS) or time.monotonic() > deadline:
                    raise
            else:
                return cast("TopicMetadata", answer.topics[topic])

    def _new_producer(self) -> Producer:
        settings: dict[str, str | int | float | bool] = {
            **self._cluster.client_settings(self._user),
            "enable.idempotence": True,
            # With more, a new partition may lose its first records and they be reported as stored
            # (KAFKA-15591): what a history says was acknowledged must be there.
            "max.in.flight.requests.per.connection": 1,
            "linger.ms": 5,
            "message.timeout.ms": int(_DELIVERY_TIMEOUT_SECONDS * 1000),
            "queue.buffering.max.messages": 20_000,
            "log_level": _QUIET,
        }
        if not self._transactional:
            return Producer(settings)
        settings["transactional.id"] = self._name
        settings["transaction.timeout.ms"] = int(_DELIVERY_TIMEOUT_SECONDS * 1000)
        self._coordinator = CoordinatorWatch()
        return Producer({**settings, **self._coordinator.settings()})

    # -- transactions -------------------------------------------------------------------------

    def _write_transactions(self, places: list[tuple[str, int]]) -> None:
        self._producer.init_transactions(_DELIVERY_TIMEOUT_SECONDS)
        pace = self._paced()
        for number in itertools.count():
            first = next(pace, None)
            if first is None:
                return
            name = f"{self._name}.t{number}"
            outcome = self._one_transaction(name, places, pace)
            self._history.record(TransactionEnded(name, outcome))
            if outcome == "unknown" or self._coordinator.in_doubt:
                self._begin_anew()

    def _one_transaction(
        self, name: str, places: list[tuple[str, int]], pace: Iterator[int]
    ) -> Outcome:
        size = self._random.randint(1, 2 * _TRANSACTION_RECORDS)
        give_up = self._random.random() < self._abort_ratio
        try:
            self._producer.begin_transaction()
            self._write(places, transaction=name)
            self._between(name)
            for _ in itertools.islice(pace, size - 1):
                self._write(places, transaction=name)
                self._between(name)
            if give_up:
                return self._abort()
            with self._coordinator.ending(self._producer):
                self._producer.commit_transaction(_DELIVERY_TIMEOUT_SECONDS)
        except KafkaException as error:
            # A commit that timed out may be in force, and one that the library sent again when the connection
            # broke, whatever it says then: neither committed nor aborted for us.
            requires_abort = error.args[0].txn_requires_abort()
            certain = requires_abort and not self._coordinator.in_doubt
            return self._abort() if certain else "unknown"
        return "ok"

    def _abort(self) -> Outcome:
        try:
            with self._coordinator.ending(self._producer):
                abort_transaction(self._producer, _DELIVERY_TIMEOUT_SECONDS)
        except KafkaException:
            return "unknown"
        return "fail"

    def _begin_anew(self) -> None:
        """After an unknown outcome a new producer settles the old transaction, either way."""
        self._producer = self._new_producer()
        while not self._stopping.is_set():
            try:
                self._producer.init_transactions(_DELIVERY_TIMEOUT_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return
