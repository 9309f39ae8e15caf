"""Waiting until a consumer's client knows a topic.

Brokers learn of a new topic one after the other: who made it through one of them may be told by another that it
does not exist. Only who asks knows whether that is an answer.
"""

import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException

from replicator.errors import NotFoundError, ReplicatorError
from replicator.kafka.clients.errors import as_kafka_error, may_pass

OnWait = Callable[[ReplicatorError], None]
"""Is told why it takes so long."""

TOLD_SECONDS = 5.0
"""How often who waits for the end of a topic is told why."""

HEARD_SECONDS = 10.0
"""For so long a broker may not have heard of a topic that was made through another one; seconds on a busy cluster."""

_PAUSE_SECONDS = 0.05


def wait_until_known(
    consumer: Consumer,
    topic: str,
    *,
    failure: Callable[[KafkaError], ReplicatorError],
    timeout_seconds: float,
    heard_at: float,
    on_wait: OnWait,
) -> None:
    """Asks for the topic until a broker describes it.

    Without that the library begins before it knows a leader, and then waits for half a second; and a topic that
    does not exist would look like one that is slow.

    Args:
        consumer: whose client is to know it.
        topic: its name.
        failure: maps an error of the library.
        timeout_seconds: how long to ask for what may pass.
        heard_at: until then (monotonic seconds) a topic that is not found may be one that a broker has not heard of.
        on_wait: is told every few seconds why it takes so long.

    Raises:
        NotFoundError: there is no such topic.
        ReplicatorError: it cannot be asked for.
    """
    deadline = time.monotonic() + timeout_seconds
    tell_at = time.monotonic() + TOLD_SECONDS
    while True:
        left = deadline - time.monotonic()
        try:
            found = consumer.list_topics(topic, timeout=max(0.1, min(left, 1.0)))
            error = found.topics[topic].error
        except KafkaException as raised:
            error = as_kafka_error(raised)
        if error is None:
            return
        consumer.poll(0.02)  # lets the library tell why connections fail
        mapped = failure(error)
        unheard = isinstance(mapped, NotFoundError) and time.monotonic() < heard_at
        if left <= 0 or not (unheard or may_pass(mapped)):
            raise mapped
        if unheard:
            time.sleep(_PAUSE_SECONDS)  # refused at once, and heard of without an event
        if time.monotonic() >= tell_at:
            tell_at = time.monotonic() + TOLD_SECONDS
            on_wait(mapped)
