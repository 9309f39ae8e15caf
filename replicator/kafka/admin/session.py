"""One admin client with its deadline and its way of telling what went wrong.

The files about topics, configs, offsets and groups are functions over a session, so that each can
be read alone; ``ClusterAdmin`` puts them together.
"""

# ruff: noqa: SLF001 - librdkafka begins the names of its local errors with an underscore

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from replicator.errors import (
    AuthenticationFailedError,
    NotFoundError,
    ReplicatorError,
    UnreachableError,
)
from replicator.kafka.clients.client import open_admin
from replicator.kafka.clients.errors import (
    ConnectionTrouble,
    as_kafka_error,
    map_kafka_error,
    may_pass,
)
from replicator.kafka.clients.lost_brokers import has_broker
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.clients.settings import admin_config
from replicator.topology.plan import ClusterPlan

Item = TypeVar("Item")
Answer = TypeVar("Answer")

CHUNK = 500
"""Most topics or partitions in one request: larger ones make a broker hold up its other clients."""

_STEP_SECONDS = 0.25
_ANY_TOPIC = "__consumer_offsets"
_PROBE_SECONDS = 0.5
"""A request without an answer for so long: does its client have a broker at all? Asked after twice as long each time."""

_PROBES_WITHOUT = 2
"""After so many probes in a row that found no broker, a question is asked again with a new client."""

_LOST_CHECK_SECONDS = 5.0
"""Failed requests of one client look for its brokers once in so long: each look may block for a second."""

_PATIENCE_SECONDS = 1.0
"""A refused login or certificate is believed after this long; other brokers may still answer."""


class AdminSession:
    """Thread-safe; blocking; every call ends within ``timeout_seconds``, about."""

    def __init__(
        self,
        cluster: ClusterPlan,
        *,
        client_id: str,
        timeout_seconds: float,
        chunk_size: int = CHUNK,
    ) -> None:
        self.cluster = cluster
        self.client_id = client_id
        self.timeout_seconds = timeout_seconds
        self.chunk_size = chunk_size
        self.subject = f"cluster:{cluster.alias}"
        self._trouble = ConnectionTrouble()
        self._lock = threading.Lock()
        self._client: AdminClient | None = None
        self._used_at = 0.0
        self._looked_at = float("-inf")
        self._opened_with = OpenedWith()

    @property
    def client(self) -> AdminClient:
        """The admin client, made at the first use, and anew where there is another login.

        Raises:
            SecretUnavailableError: a referenced secret is missing.
            AuthenticationFailedError: there is no token to log in with.
        """
        with self._lock:
            self._used_at = time.monotonic()
            if self._client is None or self._opened_with.changed():
                self._opened_with = OpenedWith(self.cluster)
                config = admin_config(
                    self.cluster, client_id=self.client_id, on_error=self._trouble
                )
                self._client = open_admin(config, subject=self.subject)
            return self._client

    def close(self) -> None:
        """Gives the connections back; a later call opens new ones, with current secrets."""
        with self._lock:
            self._client = None
        self._trouble.clear()

    def _drop(self, client: AdminClient) -> None:
        """Closes that client, unless another call has replaced it already."""
        with self._lock:
            if self._client is client:
                self._client = None

    def close_unused(self, seconds: float) -> None:
        """Closes if nothing was asked for so long: an open client costs threads that wake up."""
        with self._lock:
            unused = self._client is not None and time.monotonic() - self._used_at >= seconds
        if unused:
            self.close()

    def deadline(self) -> float:
        """When a call that begins now must have ended, on the monotonic clock."""
        return time.monotonic() + self.timeout_seconds

    def direct(self, call: Callable[[AdminClient, float], Answer], doing: str) -> Answer:
        """Makes a call that blocks inside the library, in ever longer attempts.

        Short attempts first, because the library tells only between them that a login was refused.

        Raises:
            ReplicatorError: mapped.
        """
        deadline, begun, attempt_seconds = self.deadline(), time.monotonic(), 1.0
        while True:
            left = deadline - time.monotonic()
            try:
                answer = call(self.client, max(0.1, min(attempt_seconds, left)))
            except KafkaException as error:
                heard = as_kafka_error(error)
                if heard.code() == KafkaError._TRANSPORT:  # of all brokers none could be asked
                    heard = KafkaError(KafkaError._ALL_BROKERS_DOWN, heard.str())
                mapped = self._heard(heard, doing, self.subject)
                over = time.monotonic() >= deadline - 0.1
                login = isinstance(mapped, AuthenticationFailedError)
                if over or self._hopeless(mapped, begun) or not (login or may_pass(mapped)):
                    raise self._told(mapped) from error
                attempt_seconds *= 2
            else:
                self._trouble.clear()
                return answer

    def outcome(
        self, future: "Future[Any]", doing: str, *, deadline: float, asks_again: bool = False
    ) -> Any:  # noqa: ANN401 - whatever the library's future holds
        """The future's answer, or our error as a value.

        ``asks_again``: it will be asked again, so that a client without any broker is given up before the deadline.
        """
        begun, client = time.monotonic(), self._client
        pause, without = _PROBE_SECONDS, 0
        probe_at = begun + pause
        while True:
            try:
                answer = future.result(_STEP_SECONDS)
            except TimeoutError:
                mapped = self._heard(self._late(), doing, self.subject)
                if time.monotonic() >= deadline + _STEP_SECONDS or self._hopeless(mapped, begun):
                    return self._told(mapped)
                if client is not None and probe_at <= time.monotonic() <= deadline - _PROBE_SECONDS:
                    # The library waits for a controller to be named, and does not ask who it is: where a broker
                    # said that nobody lives, it would wait to the end.
                    without = 0 if has_broker(client, _ANY_TOPIC) else without + 1
                    if asks_again and without == _PROBES_WITHOUT:
                        self._drop(client)
                        return mapped
                    pause *= 2
                    probe_at = time.monotonic() + pause
            except KafkaException as error:
                return self._told(self._heard(as_kafka_error(error), doing, self.subject))
            else:
                self._trouble.clear()
                return answer

    def result(self, ask: "Callable[[], Future[Any]]", doing: str) -> Any:  # noqa: ANN401 - as above
        """The answer to a question, asked again where it was lost with its connection.

        Raises:
            ReplicatorError: mapped.
        """
        answers = self.each(
            [doing], lambda _: {doing: ask()}, doing=lambda _: doing, asks_again=True
        )
        if isinstance(answers[doing], ReplicatorError):
            raise answers[doing]
        return answers[doing]

    def each(
        self,
        items: Sequence[Item],
        send: Callable[[list[Item]], Mapping[Any, "Future[Any]"]],
        *,
        doing: Callable[[Any], str],
        asks_again: bool = False,
    ) -> dict[Any, Any]:
        """Sends items in chunks, one after the other; returns each key's answer or our error.

        Args:
            items: what goes into the requests.
            send: sends one chunk and returns a future for each key.
            doing: what is tried with a key, for its error.
            asks_again: the requests only ask: one that is lost with its connection is sent again,
                because a broker that goes away says nothing about the others.

        Raises:
            AuthenticationFailedError: and other errors that concern no single item.
        """
        deadline = self.deadline()
        answers: dict[Any, Any] = {}
        for chunk in chunks(items, self.chunk_size):
            pause = _STEP_SECONDS
            while True:
                found = self._each_of(chunk, send, doing, deadline, asks_again=asks_again)
                lost = any(isinstance(answer, UnreachableError) for answer in found.values())
                if not (lost and asks_again) or time.monotonic() + pause >= deadline:
                    break
                time.sleep(pause)  # the client has to notice that the broker is gone
                pause *= 2
            answers.update(found)
        return answers

    def _each_of(
        self,
        chunk: list[Item],
        send: Callable[[list[Item]], Mapping[Any, "Future[Any]"]],
        doing: Callable[[Any], str],
        deadline: float,
        *,
        asks_again: bool,
    ) -> dict[Any, Any]:
        answers: dict[Any, Any] = {}
        try:
            sent = send(chunk)
            client = self._client
        except KafkaException as error:
            raise self._told(
                self._heard(as_kafka_error(error), "send a request", self.subject)
            ) from error
        for key, future in sent.items():
            if asks_again and answers and self._client is not client and not future.done():
                answers[key] = self._heard(self._late(), doing(key), self.subject)
                continue  # the client that was asked is gone; all of them are asked again
            answer = self.outcome(future, doing(key), deadline=deadline, asks_again=asks_again)
            if isinstance(answer, AuthenticationFailedError):
                raise answer
            answers[key] = answer
        return answers

    def _heard(self, error: KafkaError, doing: str, subject: str) -> ReplicatorError:
        if (client := self._client) is not None:
            client.poll(0)  # delivers what the library has to say beside the calls
        return map_kafka_error(error, subject=subject, doing=doing, cause=self._trouble.cause())

    def _late(self) -> KafkaError:
        words = f"this request got no answer within {self.timeout_seconds:g} seconds"
        return KafkaError(KafkaError._TIMED_OUT, words)

    def _hopeless(self, error: ReplicatorError, begun: float) -> bool:
        waited = time.monotonic() - begun
        return isinstance(error, AuthenticationFailedError) and waited >= _PATIENCE_SECONDS

    def _told(self, error: ReplicatorError) -> ReplicatorError:
        if isinstance(error, AuthenticationFailedError):
            self.close()  # the next call reads the secrets again
        elif isinstance(error, UnreachableError) and self._lost_brokers():
            self.close()
        return error

    def _lost_brokers(self) -> bool:
        """Whether the client has no broker to ask, and may never find one again; blocks for a second then."""
        client, now = self._client, time.monotonic()
        if client is None or now - self._looked_at < _LOST_CHECK_SECONDS:
            return False
        self._looked_at = now
        return not has_broker(client, _ANY_TOPIC)


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cuts the items into lists of at most ``size``, in order."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def found(answers: Mapping[Any, Any]) -> dict[Any, Any]:
    """The answers without those that say "not found".

    Raises:
        ReplicatorError: the first other error.
    """
    kept = {key: answer for key, answer in answers.items() if not isinstance(answer, NotFoundError)}
    for answer in kept.values():
        if isinstance(answer, ReplicatorError):
            raise answer
    return kept
