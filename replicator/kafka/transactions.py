"""Writing under one transactional id: all of a transaction holds, or nothing of it.

The one place where a transaction of control records, log records, an injected tail or a restored
partition is begun, filled, committed and aborted. A lane commits by itself, with ``until_done``.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from replicator.errors import (
    AuthenticationFailedError,
    FencedError,
    ReplicatorError,
    TransientBrokerError,
    UnknownOutcomeError,
)
from replicator.kafka import codes
from replicator.kafka.client import open_producer
from replicator.kafka.coordinator_watch import CoordinatorWatch
from replicator.kafka.errors import ConnectionTrouble, as_kafka_error, map_kafka_error, may_pass
from replicator.kafka.opened_with import OpenedWith
from replicator.kafka.settings import producer_config
from replicator.topology.plan import ClusterPlan

_STEP_SECONDS = 1.0
"""Length of one attempt: the library tells why nothing answers only between attempts."""

_PAUSE_SECONDS = 0.05

_LOGIN_SECONDS = 1.0
"""Another broker may still know our password: a refused login is believed after this."""

_ABORT_SECONDS = 10.0


class RecordQueue(Protocol):
    """What queues records: a producer, or what passes them on to one."""

    def produce(self, *record: Any, **fields: Any) -> None:  # noqa: ANN401
        """Queues one record; BufferError when the queue is full."""
        ...

    def poll(self, timeout: float, /) -> int:
        """Serves delivery reports for so many seconds at most."""
        ...


def produce_when_room(
    producer: RecordQueue,
    *record: Any,  # noqa: ANN401 - the fields of Producer.produce, in its order
    deadline: float | None = None,
) -> None:
    """Queues one record; waits while the queue is full.

    Raises:
        KafkaException: the record is refused, or there was no room until ``deadline`` (monotonic).
    """
    while True:
        try:
            producer.produce(*record)
        except BufferError:
            producer.poll(_PAUSE_SECONDS)
            if deadline is not None and time.monotonic() >= deadline:
                raise KafkaException(KafkaError(codes.QUEUE_FULL)) from None
        else:
            return


def until_done(
    attempt: Callable[[], object], *, final: Callable[[KafkaError], KafkaError | None]
) -> None:
    """Repeats a call on transactions, as the library wants it: a time-out leaves it going on inside.

    Raises:
        KafkaException: the first error that ``final`` returns; where it returns None, the call goes on.
    """
    while True:
        try:
            attempt()
        except KafkaException as error:
            failure = final(as_kafka_error(error))
            if failure is not None:
                raise KafkaException(failure) from error
        else:
            return


class ProducerWatch:
    """Why calls of one producer fail: refused deliveries, lost connections, and our error for them."""

    def __init__(self, subject: str) -> None:
        self.trouble = ConnectionTrouble()
        self.refused: list[KafkaError] = []
        self._subject = subject

    def on_delivery(self, error: KafkaError | None, _message: object) -> None:
        """Takes a delivery report."""
        if error is not None:
            self.refused.append(error)

    def until_done(
        self, producer: Producer, call: Callable[[float], object], *, seconds: float
    ) -> None:
        """Repeats a call until it is done, for so long at most.

        Raises:
            KafkaException: it failed for good, needs an abort first, or the time is over.
        """
        begun = time.monotonic()
        deadline = begun + seconds

        def final(error: KafkaError) -> KafkaError | None:
            inner = _fatal(producer) or error
            mapped = self.mapped(inner, "go on")
            login = isinstance(mapped, AuthenticationFailedError)
            patient = may_pass(mapped) or (login and time.monotonic() - begun < _LOGIN_SECONDS)
            if inner.txn_requires_abort() or not patient or time.monotonic() >= deadline:
                return inner
            time.sleep(_PAUSE_SECONDS)  # refused at once: not asked again in a tight loop
            return None

        until_done(
            lambda: call(max(0.1, min(_STEP_SECONDS, deadline - time.monotonic()))), final=final
        )

    def mapped(self, error: KafkaError, doing: str, *, unknown: bool = False) -> ReplicatorError:
        """Our error; ``unknown`` where no answer leaves it open whether this took effect."""
        mapped = map_kafka_error(
            error,
            subject=self._subject,
            doing=doing,
            cause=self.trouble.cause(),
            unknown_on_timeout=unknown,
        )
        if unknown and mapped.retriable and not isinstance(mapped, UnknownOutcomeError):
            return UnknownOutcomeError(
                f"no answer whether this took effect: {doing} ({mapped.message})",
                subject=self._subject,
                remedy="The stored state is read again before going on.",
            )
        return mapped


class TransactionWriter:
    """Writes transactions into any topics of one cluster; for one thread.

    Only the owner that opened the transactional id last can write: an earlier one gets FencedError,
    and is never opened again. After any other failure the producer is gone, and with it what was not
    committed; ``open`` makes another. After a commit without an answer the coordinator is asked for
    nothing more: an abort could meet a transaction that is committed.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        transactional_id: str,
        *,
        client_id: str,
        timeout_seconds: float = 15.0,
        compression: str = "none",
        max_message_bytes: int = 1_048_588,
        partitioner: str | None = None,
    ) -> None:
        """``timeout_seconds``: for opening, for room in the queue, for a commit, and for the broker.

        With a ``partitioner`` (one of the client library's) records may be added to partition -1.
        """
        self._cluster = cluster
        self._transactional_id = transactional_id
        self._client_id = client_id
        self._timeout_seconds = timeout_seconds
        self._compression = compression
        self._max_message_bytes = max_message_bytes
        self._partitioner = partitioner
        self._subject = f"cluster:{cluster.alias}"
        self._watch = ProducerWatch(self._subject)
        self._coordinator = CoordinatorWatch()
        self._producer: Producer | None = None
        self._opened_with = OpenedWith()
        self._fenced = False
        self._doing = ""
        """What the open transaction is for; empty while none is open."""

    @property
    def is_open(self) -> bool:
        """Whether it can write; a failure ends that."""
        return self._producer is not None

    def open(self) -> None:
        """Connects and fences every earlier owner; nothing where it is open and its login still holds.

        Raises:
            ReplicatorError: nothing was changed, or it is unknown; may be called again.
        """
        if self._fenced:
            raise FencedError("another owner has taken over", subject=self._transactional_id)
        if self._producer is not None and not (not self._doing and self._opened_with.outdated()):
            return
        self._drop()
        self._opened_with = OpenedWith(self._cluster)
        config = producer_config(
            self._cluster,
            client_id=self._client_id,
            transactional_id=self._transactional_id,
            transaction_timeout_seconds=self._timeout_seconds,
            linger_seconds=0.0,
            compression=self._compression,
            max_message_bytes=self._max_message_bytes,
            on_delivery=self._watch.on_delivery,
            only_failed_deliveries=True,
            on_error=self._watch.trouble,
        )
        if self._partitioner is not None:
            config["partitioner"] = self._partitioner
        config["topic.metadata.propagation.max.ms"] = round(self._timeout_seconds * 200)
        self._coordinator = CoordinatorWatch()
        config |= self._coordinator.settings()
        # Not looked up before: the library takes over in 30 ms when this is its first question,
        # and often waits for half a second when it is the second.
        producer = open_producer(config, subject=self._subject)
        try:
            self._watch.until_done(
                producer, producer.init_transactions, seconds=self._timeout_seconds
            )
        except KafkaException as error:
            raise self._mapped(
                as_kafka_error(error), f"take over {self._transactional_id}"
            ) from error
        self._producer = producer

    def begin(self, doing: str) -> None:
        """Begins a transaction; ``doing`` completes "cannot ..." in errors. Nothing where one is open.

        Raises:
            ReplicatorError: nothing is written.
        """
        if self._doing:
            return
        producer = self._opened()
        self._watch.refused.clear()
        self._doing = doing
        try:
            producer.begin_transaction()
        except KafkaException as error:
            raise self._failed(producer, error) from error

    def add(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int = 0,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Queues a record into the transaction; without a timestamp its time is now.

        Raises:
            ReplicatorError: the transaction is aborted; nothing of it is written.
        """
        producer = self._opened()
        deadline = time.monotonic() + self._timeout_seconds
        try:
            if self._watch.refused:
                raise KafkaException(self._watch.refused[0])
            produce_when_room(
                producer, topic, value, key, partition, None, None, timestamp_ms, list(headers),
                deadline=deadline,
            )  # fmt: skip
        except KafkaException as error:
            raise self._failed(producer, error, abort=True) from error

    def commit(self) -> None:
        """Commits and returns when it holds; nothing where no transaction is open.

        Raises:
            FencedError: another owner took over; nothing was written.
            UnknownOutcomeError: no answer; read what is stored before going on.
            ReplicatorError: refused; nothing was written.
        """
        if not self._doing:
            return
        producer = self._opened()
        # No flush of our own: on a fenced producer it ends in a SystemError of the library
        # (confluent-kafka 2.16.1); the commit flushes and reports the fence properly.
        try:
            with self._coordinator.ending(producer):
                self._watch.until_done(
                    producer, producer.commit_transaction, seconds=self._timeout_seconds
                )
        except KafkaException as error:
            abort = as_kafka_error(error).txn_requires_abort() and not self._coordinator.in_doubt
            raise self._failed(producer, error, abort=abort, unknown=not abort) from error
        self._doing = ""
        self._watch.trouble.clear()
        if self._coordinator.in_doubt:
            self._drop()  # committed; but a late repetition could end this producer's next one

    def close(self) -> None:
        """Aborts what is open and gives the connections back; the id stays ours until it is taken."""
        if self._producer is not None and self._doing:
            self._abort(self._producer)
        self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> Producer:
        if self._producer is None:
            raise TransientBrokerError(
                "an earlier write failed, and the writer was not opened again",
                subject=self._transactional_id,
                remedy="It is tried again by itself.",
            )
        return self._producer

    def _abort(self, producer: Producer) -> None:
        # Fenced or out of reach: the next owner of the id aborts what is left, or the broker does.
        with contextlib.suppress(KafkaException, SystemError):
            producer.abort_transaction(min(_ABORT_SECONDS, self._timeout_seconds))

    def _failed(
        self,
        producer: Producer,
        error: KafkaException,
        *,
        abort: bool = False,
        unknown: bool = False,
    ) -> ReplicatorError:
        """Drops the producer, whose state is spent, and maps the error that says most."""
        fatal = _fatal(producer)
        refused = None if unknown else next(iter(self._watch.refused), None)
        if abort:
            self._abort(producer)
        doing = self._doing
        self._drop()
        return self._mapped(fatal or refused or as_kafka_error(error), doing, unknown=unknown)

    def _mapped(self, error: KafkaError, doing: str, *, unknown: bool = False) -> ReplicatorError:
        mapped = self._watch.mapped(error, doing, unknown=unknown)
        self._fenced = isinstance(mapped, FencedError)
        return mapped

    def _drop(self) -> None:
        producer, self._producer, self._doing = self._producer, None, ""
        if producer is not None:
            # The library's own close would abort once more, and warn where that fails; and a fenced
            # producer raises its fatal error out of whatever serves its events next.
            with contextlib.suppress(KafkaException, SystemError):
                producer.purge()


def _fatal(producer: Producer) -> KafkaError | None:
    """Lets the library tell why connections fail; returns the error that ended the producer."""
    try:
        producer.poll(0)
    except KafkaException as error:
        return as_kafka_error(error)
    return None
