"""Whether a client still has a broker to ask: librdkafka may lose all of them for good, without a word.

A broker that is up and knows of no live one (it has just started, or was fenced under load) answers a metadata request
with topics and no broker. The library then forgets every broker that it knew and begins anew with its bootstrap
servers; now and then it does not, and nothing tells it: no error, no event, no end (librdkafka issue 5301, seen with
2.16). Only a question shows it, and only another client helps.
"""

import time
from typing import Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import ClusterMetadata

from replicator.kafka.clients import codes
from replicator.kafka.clients.errors import as_kafka_error
from replicator.kafka.clients.settings import LOGGER

QUIET_SECONDS = 20.0
"""A client that has said nothing for so long is asked whether it has a broker."""

_ASK_SECONDS = 1.0
_AGAIN_SECONDS = 5.0
_TIMES = 2
"""A question may also be lost with its connection; two in turn are not."""


class Asked(Protocol):
    """A consumer, a producer or an admin client."""

    def list_topics(self, topic: str, timeout: float, /) -> ClusterMetadata:
        """Asks any broker."""
        ...


class LostBrokers:
    """Watches one client after the other; for the thread that calls it.

    A cluster that is away looks the same: its clients are then made anew every 25 s, which costs nothing that
    still works.
    """

    def __init__(self, topic: str) -> None:
        """``topic``: any name that the client asks about anyway; it need not be there."""
        self._topic = topic
        self._ask_at = 0.0
        self._times = 0
        self.heard()

    def heard(self) -> None:
        """The client has just said something, or is a new one."""
        self._times = 0
        self._ask_at = time.monotonic() + QUIET_SECONDS

    def found(self, client: Asked) -> bool:
        """Whether the client has no broker left, so that another one has to be made.

        It is asked when it was quiet for QUIET_SECONDS, which blocks for as long as an answer takes, and for one second
        where no broker is left.
        """
        if time.monotonic() < self._ask_at:
            return False
        if has_broker(client, self._topic):
            self.heard()
            return False
        self._times += 1
        self._ask_at = time.monotonic() + _AGAIN_SECONDS
        if self._times < _TIMES:
            return False
        self.heard()
        LOGGER.info("a client had no broker left to ask about %s: another one is made", self._topic)
        return True


def has_broker(client: Asked, topic: str) -> bool:
    """Whether the client has any broker to ask now; False after one second without."""
    try:
        client.list_topics(topic, _ASK_SECONDS)
    except KafkaException as error:
        return as_kafka_error(error).code() != codes.NO_BROKER
    return True
