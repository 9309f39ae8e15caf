"""Writing under one transactional id: all of a transaction holds, or nothing of it.

The one place where a transaction of control records, log records, an injected tail or a restored
partition is begun, filled, committed and aborted. A lane commits by itself, with ``until_done``.
"""

import contextlib
import time
from collections.abc import Sequence
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Producer

from replicator.errors import (
    TRIED_AGAIN,
    FencedError,
    ReplicatorError,
    TransientBrokerError,
)
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import open_producer
from replicator.kafka.clients.errors import as_kafka_error, bare_errors_as_exceptions
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.clients.settings import producer_config
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.kafka.logs.producer_calls import (
    OnWait,
    ProducerWatch,
    abort_transaction,
    fatal_error,
    produce_when_room,
)
from replicator.topology.plan import ClusterPlan

_ABORT_SECONDS = 10.0
_PURGED = frozenset({codes.PURGE_QUEUE, codes.PURGE_INFLIGHT})
_ROOM_SECONDS = 0.05


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
        transaction_seconds: float | None = None,
        on_wait: OnWait | None = None,
    ) -> None:
        """``timeout_seconds``: for opening, for room in the queue, for a commit, and for the broker.

        ``transaction_seconds``: how long a transaction may be open, where that is longer. ``on_wait`` is told
        while the cluster does not answer.

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
        self._transaction_seconds = transaction_seconds or timeout_seconds
        self._watch = ProducerWatch(self._subject, on_wait)
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
            transaction_timeout_seconds=self._transaction_seconds,
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
        begun = time.monotonic()

        def wait() -> None:
            producer.poll(_ROOM_SECONDS)
            self._watch.waited(begun)

        try:
            if (refused := self._refusal()) is not None:
                raise KafkaException(refused)
            with bare_errors_as_exceptions():
                produce_when_room(
                    producer, topic, value, key, partition, None, None, timestamp_ms, list(headers),
                    deadline=begun + self._timeout_seconds, wait=wait,
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
                remedy=TRIED_AGAIN,
            )
        return self._producer

    def _abort(self, producer: Producer) -> None:
        # Fenced or out of reach: the next owner of the id aborts what is left, or the broker does.
        with contextlib.suppress(KafkaException, SystemError):
            abort_transaction(producer, min(_ABORT_SECONDS, self._timeout_seconds))

    def _failed(
        self,
        producer: Producer,
        error: KafkaException,
        *,
        abort: bool = False,
        unknown: bool = False,
    ) -> ReplicatorError:
        """Drops the producer, whose state is spent, and maps the error that says most."""
        fatal = fatal_error(producer)
        refused = None if unknown else self._refusal()
        if abort:
            self._abort(producer)
        doing = self._doing
        self._drop()
        return self._mapped(fatal or refused or as_kafka_error(error), doing, unknown=unknown)

    def _refusal(self) -> KafkaError | None:
        """The first delivery that failed by itself; one that was purged failed because of another error."""
        return next((one for one in self._watch.refused if one.code() not in _PURGED), None)

    def _mapped(self, error: KafkaError, doing: str, *, unknown: bool = False) -> ReplicatorError:
        mapped = self._watch.mapped(error, doing, unknown=unknown)
        self._fenced = isinstance(mapped, FencedError)
        return mapped

    def _drop(self) -> None:
        producer, self._producer, self._doing = self._producer, None, ""
        if producer is not None:
            # The library's own close would abort once more, and warn where that fails; and a fenced
            # producer raises its fatal error out of whatever serves its events next.
            with contextlib.suppress(KafkaException, SystemError), bare_errors_as_exceptions():
                producer.purge()
