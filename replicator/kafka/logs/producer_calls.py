"""Calls on a producer that take their time: waiting for room in its queue, and for the end of a call.

The one place where a full queue is waited for, and where calls on transactions are repeated.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from replicator.errors import (
    AuthenticationFailedError,
    NotAuthorizedError,
    ReplicatorError,
    UnknownOutcomeError,
)
from replicator.kafka.clients import codes
from replicator.kafka.clients.errors import (
    ConnectionTrouble,
    as_kafka_error,
    bare_errors_as_exceptions,
    map_kafka_error,
    may_pass,
)

TOLD_SECONDS = 5.0
"""Who waits is told this often that, and why, nothing answers."""

OnWait = Callable[[float, str], None]
"""Gets for how many seconds a call has waited, and why; the reason is empty where nothing says one."""

_STEP_SECONDS = 1.0
"""Length of one attempt: the library tells why nothing answers only between attempts."""

_PAUSE_SECONDS = 0.05

_LOGIN_SECONDS = 1.0
"""Another broker may still know our password: a refused login is believed after this."""


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
    wait: Callable[[], object] | None = None,
) -> None:
    """Queues one record; waits while the queue is full.

    ``wait`` serves delivery reports for a moment, in place of a poll; what it raises ends the waiting.

    Raises:
        KafkaException: the record is refused, or there was no room until ``deadline`` (monotonic).
    """
    while True:
        try:
            producer.produce(*record)
        except BufferError:
            if wait is None:
                producer.poll(_PAUSE_SECONDS)
            else:
                wait()
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
            with bare_errors_as_exceptions():
                attempt()
        except KafkaException as error:
            failure = final(as_kafka_error(error))
            if failure is not None:
                raise KafkaException(failure) from error
        else:
            return


def abort_transaction(producer: Producer, seconds: float) -> None:
    """Aborts the open transaction, in short calls.

    A call throws away what waits to be sent, and then waits for what is on its way. An answer that asks to try again (a
    leader that moves) puts records back behind the first of these, where they wait for the call to end: 30 s for one
    of 30 s (2.16.0). The next call throws them away.

    Raises:
        KafkaException: it failed, or the time is over.
    """
    deadline = time.monotonic() + seconds

    def attempt() -> None:
        producer.abort_transaction(max(0.1, min(_STEP_SECONDS, deadline - time.monotonic())))

    until_done(
        attempt,
        final=lambda error: None if error.retriable() and time.monotonic() < deadline else error,
    )


class ProducerWatch:
    """Why calls of one producer fail: refused deliveries, lost connections, and our error for them."""

    def __init__(self, subject: str, on_wait: OnWait | None = None) -> None:
        self._on_wait = on_wait
        self._told_at = 0.0
        self.trouble = ConnectionTrouble()
        self.refused: list[KafkaError] = []
        self._subject = subject

    def on_delivery(self, error: KafkaError | None, _message: object) -> None:
        """Takes a delivery report."""
        if error is not None:
            self.refused.append(error)

    def waited(self, begun: float) -> None:
        """Tells who asked to be told that a call that began then (monotonic) is still waiting."""
        now = time.monotonic()
        if self._on_wait is not None and now - max(begun, self._told_at) >= TOLD_SECONDS:
            self._told_at = now
            cause = self.trouble.cause()
            self._on_wait(now - begun, "" if cause is None else cause.str())

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
            inner = fatal_error(producer) or error
            mapped = self.mapped(inner, "go on")
            login = isinstance(mapped, AuthenticationFailedError)
            patient = may_pass(mapped) or (login and time.monotonic() - begun < _LOGIN_SECONDS)
            if inner.txn_requires_abort() or not patient or time.monotonic() >= deadline:
                return inner
            self.waited(begun)
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
        # A right that is missing is an answer: what it was asked for did not happen.
        known = isinstance(mapped, UnknownOutcomeError | NotAuthorizedError)
        if unknown and mapped.retriable and not known:
            return UnknownOutcomeError(
                f"no answer whether this took effect: {doing} ({mapped.message})",
                subject=self._subject,
                remedy="The stored state is read again before going on.",
            )
        return mapped


def fatal_error(producer: Producer) -> KafkaError | None:
    """Lets the library tell why connections fail; returns the error that ended the producer."""
    try:
        with bare_errors_as_exceptions():
            producer.poll(0)
    except KafkaException as error:
        return as_kafka_error(error)
    return None
