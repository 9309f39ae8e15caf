"""Where canaries leave and arrive: a producer on the source, a reader of their copies on the target."""

from collections.abc import Callable, Iterator

from replicator.errors import ReplicatorError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import (
    ClientPartition,
    Consumer,
    KafkaError,
    Message,
    Producer,
    open_consumer,
    open_producer,
)
from replicator.kafka.clients.codes import PARTITION_EOF
from replicator.kafka.clients.errors import ConnectionTrouble, map_kafka_error
from replicator.kafka.clients.lost_brokers import LostBrokers
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.clients.settings import consumer_config, producer_config
from replicator.topology.plan import ClusterPlan

SEND_SECONDS = 5.0
FETCH_WAIT_SECONDS = 6.0
"""Longer than canaries are apart: each ends the wait at once, so none is timed late."""

_STEP_SECONDS = 0.2


class CanaryClients:
    """Both ends; one thread at a time, blocking briefly. Nothing is connected before first use."""

    def __init__(
        self,
        source: ClusterPlan,
        target: ClusterPlan,
        admin: ClusterAdmin,
        *,
        client_id: str,
        stopping: Callable[[], bool],
    ) -> None:
        """``admin`` is the target's; ``stopping`` ends every wait."""
        self._stopping = stopping
        self._source = source
        self._target = target
        self._admin = admin
        self._client_id = client_id
        self._trouble = ConnectionTrouble()
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._opened_with = OpenedWith()
        self._lost_source = LostBrokers("__consumer_offsets")
        self._lost_target = LostBrokers("__consumer_offsets")
        self._next: dict[str, int] = {}
        self._failed: dict[str, KafkaError] = {}

    def watch(self, topic: str) -> bool:
        """Whether copies of the topic are listened to from now on; false while there is none."""
        if topic in self._next:
            return True
        end = self._admin.offsets([(topic, 0)], "latest")[topic, 0]
        if isinstance(end, ReplicatorError):
            return False
        self._admin.close()  # not needed again, and an open client costs threads that wake up
        self._next[topic] = end
        self._reader().assign([ClientPartition(name, 0, at) for name, at in self._next.items()])
        return True

    def send(self, topic: str, value: bytes) -> None:
        """Sends one record; ``flush`` waits for it."""
        if self._opened_with.outdated() or self._lost_brokers():
            self._open_anew()
        self._writer().produce(topic, value, None, 0, on_delivery=self._delivered)

    def flush(self) -> None:
        """Waits until everything sent is stored.

        Raises:
            ReplicatorError: why the first record that was refused was refused.
        """
        self._failed.clear()
        producer = self._producer
        # Every record is stored or refused within its own time.
        while producer is not None and producer.flush(_STEP_SECONDS) and not self._stopping():
            pass
        for topic, error in self._failed.items():
            raise map_kafka_error(
                error, subject=topic, doing=f"write to {topic}", cause=self._trouble.cause()
            )

    def refused(self) -> tuple[str, ...]:
        """The topics whose record was refused at the last flush."""
        return tuple(self._failed)

    def listen(self, seconds: float) -> Iterator[tuple[str, bytes]]:
        """What arrives within the time, topic and value; waits for the first one only."""
        if self._consumer is None:
            return
        first = self._consumer.poll(seconds)
        for message in () if first is None else (first, *self._consumer.consume(500, 0)):
            found = self._taken(message)
            if found is not None:
                yield found

    def close(self) -> None:
        """Gives the connections back."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._producer = None

    def _lost_brokers(self) -> bool:
        producer, consumer = self._producer, self._consumer
        return (producer is not None and self._lost_source.found(producer)) or (
            consumer is not None and self._lost_target.found(consumer)
        )

    def _open_anew(self) -> None:
        """Closes what was opened with another login, or has no broker left."""
        self.close()
        if self._next:
            self._reader().assign([ClientPartition(name, 0, at) for name, at in self._next.items()])

    def _taken(self, message: Message) -> tuple[str, bytes] | None:
        topic, error = message.topic() or "", message.error()
        if error is None:
            self._lost_target.heard()
            self._next[topic] = (message.offset() or 0) + 1
            return topic, message.value() or b""
        if error.code() != PARTITION_EOF and topic:
            self._next.pop(topic, None)  # recreated or cut off: it is looked up again
        return None

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._lost_source.heard()
        else:
            self._failed[message.topic() or ""] = error

    def _note_login(self) -> None:
        if self._producer is None and self._consumer is None:
            self._opened_with = OpenedWith(self._source, self._target)

    def _writer(self) -> Producer:
        if self._producer is None:
            self._note_login()
            config = producer_config(
                self._source, client_id=self._client_id, linger_seconds=0.0, on_error=self._trouble
            )
            config["message.timeout.ms"] = round(SEND_SECONDS * 1000)
            # As for every small writer: no idempotence saves a question before the first record.
            config["enable.idempotence"] = False
            self._producer = open_producer(config, subject=f"cluster:{self._source.alias}")
            self._lost_source.heard()
        return self._producer

    def _reader(self) -> Consumer:
        if self._consumer is None:
            self._note_login()
            config = consumer_config(
                self._target,
                client_id=self._client_id,
                fetch_wait_seconds=FETCH_WAIT_SECONDS,
                queue_bytes=1024 * 1024,
                on_error=self._trouble,
            )
            self._consumer = open_consumer(config, subject=f"cluster:{self._target.alias}")
            self._lost_target.heard()
        return self._consumer
