"""Writing to a compacted topic so that a returned call is a kept promise."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from replicator.errors import (
    AuthenticationFailedError,
    FencedError,
    ReplicatorError,
    UnknownOutcomeError,
)
from replicator.kafka.client import open_producer
from replicator.kafka.compacted_log import Entry
from replicator.kafka.errors import ConnectionTrouble, as_kafka_error, map_kafka_error, may_pass
from replicator.kafka.settings import producer_config
from replicator.topology.plan import ClusterPlan

_PAUSE_SECONDS = 0.05


class LogWriter:
    """Writes entries to one topic; for one thread.

    With a ``transactional_id`` every ``write`` is one transaction, all or nothing, and only the
    owner who initialised that id last can write: an earlier one gets FencedError. After an
    UnknownOutcomeError the writer begins anew by itself at the next call; what became of the
    earlier entries must be read.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        topic: str,
        *,
        client_id: str,
        transactional_id: str | None = None,
        timeout_seconds: float = 15.0,
    ) -> None:
        self.topic = topic
        self._cluster = cluster
        self._client_id = client_id
        self._transactional_id = transactional_id
        self._timeout_seconds = timeout_seconds
        self._subject = f"cluster:{cluster.alias}"
        self._trouble = ConnectionTrouble()
        self._failed: list[KafkaError] = []
        self._producer: Producer | None = None
        self._fenced = False

    def open(self) -> None:
        """Connects; with a transactional id this fences every earlier owner.

        ``write`` does it by itself; calling it first makes the moment of the take-over explicit.

        Raises:
            ReplicatorError: nothing was changed, or it is unknown; may be called again.
        """
        if self._fenced:
            raise FencedError("another owner has taken over", subject=self.topic)
        if self._producer is not None:
            return
        seconds = self._timeout_seconds
        config = producer_config(
            self._cluster,
            client_id=self._client_id,
            transactional_id=self._transactional_id,
            transaction_timeout_seconds=seconds,
            linger_seconds=0.0,
            on_delivery=self._delivered,
            only_failed_deliveries=True,
            on_error=self._trouble,
        )
        # Nobody waits longer than this for a write, and a late one must not overtake a newer one.
        config["message.timeout.ms"] = round(seconds * 1000)
        if self._transactional_id is None:
            # An idempotent producer asks for its id first, and finding no broker yet it asks again
            # after half a second. One request at a time keeps order as well, and a repeated entry
            # of a compacted topic is the same entry.
            config["enable.idempotence"] = False
        config["topic.metadata.propagation.max.ms"] = min(3000, round(seconds * 1000))
        producer = open_producer(config, subject=self._subject)
        deadline = time.monotonic() + seconds
        # A cluster that cannot be reached is found here, where nothing has been sent yet.
        if self._transactional_id is None:
            doing = f"write to {self.topic}"
            self._until_done(producer, partial(self._look, producer), deadline, doing, decided=True)
        else:
            # Not looked up before: the library takes over in 30 ms when this is its first question,
            # and often waits for half a second when it is the second.
            doing = f"take over {self._transactional_id}"
            self._until_done(producer, producer.init_transactions, deadline, doing, decided=True)
        self._producer = producer

    def write(self, entries: Iterable[Entry], *, partition: int = 0) -> None:
        """Writes the entries in order and returns when they are stored.

        Raises:
            FencedError: another owner took over; nothing was written.
            UnknownOutcomeError: no answer; they may or may not be there.
            ReplicatorError: refused; nothing was written (without a transaction: not all).
        """
        wanted = list(entries)
        if not wanted:
            return
        self.open()
        producer = self._producer
        if producer is None:
            raise RuntimeError("an open writer has a producer")
        self._failed.clear()
        deadline = time.monotonic() + self._timeout_seconds
        if self._transactional_id is None:
            self._write_plainly(producer, wanted, partition, deadline)
        else:
            self._transact(producer, wanted, partition, deadline)
        self._trouble.clear()

    def close(self) -> None:
        """Gives the connections back; an unfinished write is given up."""
        producer, self._producer = self._producer, None
        if producer is not None:
            # Every write has ended its transaction. The library's own close would try to abort once
            # more and warn where that fails, as it must after a time-out.
            producer.purge()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, producer: Producer, timeout_seconds: float) -> None:
        error = producer.list_topics(self.topic, timeout=timeout_seconds).topics[self.topic].error
        if error is not None:
            raise KafkaException(error)

    def _delivered(self, error: KafkaError | None, _message: Any) -> None:  # noqa: ANN401
        if error is not None:
            self._failed.append(error)

    def _send(self, producer: Producer, entries: list[Entry], partition: int) -> None:
        for key, value in entries:
            while True:
                try:
                    producer.produce(self.topic, value, key, partition)
                    break
                except BufferError:
                    producer.poll(0.05)

    def _write_plainly(
        self, producer: Producer, entries: list[Entry], partition: int, deadline: float
    ) -> None:
        doing = f"write to {self.topic}"
        try:
            self._send(producer, entries, partition)
            left = producer.flush(max(0.0, deadline - time.monotonic()) + 1.0)
        except KafkaException as error:
            raise self._gone(as_kafka_error(error), doing, decided=False) from error
        if self._failed or left:
            timed_out = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - a public constant
            raise self._gone((*self._failed, timed_out)[0], doing, decided=False)

    def _transact(
        self, producer: Producer, entries: list[Entry], partition: int, deadline: float
    ) -> None:
        doing = f"write to {self.topic}"
        try:
            producer.begin_transaction()
            self._send(producer, entries, partition)
        except KafkaException as error:
            raise self._gone(as_kafka_error(error), doing, decided=True) from error
        self._until_done(producer, producer.commit_transaction, deadline, doing)

    def _until_done(
        self,
        producer: Producer,
        call: Callable[[float], None],
        deadline: float,
        doing: str,
        *,
        decided: bool = False,
    ) -> None:
        """Calls until it is done: the library allows, and wants, the same call again.

        ``decided`` says that a failure, too, is certain: nothing was written.
        """
        begun = time.monotonic()
        while True:
            try:
                call(max(0.1, min(1.0, deadline - time.monotonic())))
            except KafkaException as error:
                inner = self._hear(producer) or as_kafka_error(error)
                mapped = self._failure(inner, doing, decided=True)
                late = time.monotonic() >= deadline
                # Another broker may still know our password: believe it after a second.
                login = isinstance(mapped, AuthenticationFailedError)
                if inner.txn_requires_abort():
                    self._abort(producer, deadline)
                    failed = self._failed[0] if self._failed else inner
                    raise self._gone(failed, doing, decided=True) from error
                if late or not (may_pass(mapped) or (login and time.monotonic() - begun < 1.0)):
                    raise self._gone(inner, doing, decided=decided) from error
                time.sleep(_PAUSE_SECONDS)  # refused at once: not asked again in a tight loop
            else:
                return

    def _hear(self, producer: Producer) -> KafkaError | None:
        """Lets the library tell why connections fail; returns the error that ended the producer."""
        try:
            producer.poll(0)
        except KafkaException as error:
            return as_kafka_error(error)
        return None

    def _abort(self, producer: Producer, deadline: float) -> None:
        try:
            producer.abort_transaction(max(0.5, deadline - time.monotonic()))
        except KafkaException:
            # The next owner of the id aborts what is left open, and that is us, in the next open().
            return

    def _gone(self, error: KafkaError, doing: str, *, decided: bool) -> ReplicatorError:
        """Drops the producer, whose state is spent, and maps the error."""
        self.close()
        return self._failure(error, doing, decided=decided)

    def _failure(self, error: KafkaError, doing: str, *, decided: bool) -> ReplicatorError:
        mapped = map_kafka_error(
            error,
            subject=self._subject,
            doing=doing,
            cause=self._trouble.cause(),
            unknown_on_timeout=not decided,
        )
        self._fenced = isinstance(mapped, FencedError)
        if not decided and mapped.retriable and not isinstance(mapped, UnknownOutcomeError):
            return UnknownOutcomeError(
                f"no answer whether this took effect: {doing} ({mapped.message})",
                subject=self._subject,
                remedy="The stored state is read again before going on.",
            )
        return mapped
