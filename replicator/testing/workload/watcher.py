"""Watches copies arrive on the other side: when each came, and when its original was written."""

import threading
import time
from typing import NamedTuple

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from replicator.errors import ReplicatorError
from replicator.testing.kit.endpoints import Endpoint

_WAIT_SECONDS = 0.05
_METADATA_SECONDS = 20.0


class Arrival(NamedTuple):
    """One copy: its partition, when it could be read (wall clock), when its original was written."""

    partition: int
    at: float
    written_at: float


class Watcher:
    """Reads a topic from its end in a thread; takes part in no group and commits nothing.

    Args:
        cluster: the other side.
        topic: its name there; it must exist.
    """

    def __init__(self, cluster: Endpoint, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._arrivals: list[Arrival] = []
        self._newest: dict[int, float] = {}
        self._thread = threading.Thread(target=self._run, name="drill-watcher", daemon=True)
        self.partitions: frozenset[int] = frozenset()

    def start(self) -> "Watcher":
        """Begins at the end of the topic; returns itself.

        Raises:
            ReplicatorError: the topic is not there.
        """
        self._consumer = Consumer(
            {
                **self._cluster.client_settings(),
                "group.id": "replicator-drill-watcher",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )
        try:
            found = self._consumer.list_topics(self._topic, timeout=_METADATA_SECONDS).topics[
                self._topic
            ]
        except KafkaException as error:
            raise ReplicatorError(
                f"cannot watch copies arrive: {error}", subject=self._topic
            ) from error
        if found.error is not None:
            raise ReplicatorError(f"cannot watch copies arrive: {found.error}", subject=self._topic)
        self.partitions = frozenset(found.partitions)
        self._consumer.assign([TopicPartition(self._topic, p, OFFSET_END) for p in self.partitions])
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends; a second call does nothing."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(30.0)

    def arrivals(self) -> list[Arrival]:
        """Everything so far."""
        with self._lock:
            return list(self._arrivals)

    def written_after(self, moment: float) -> frozenset[int]:
        """Partitions in which a copy has arrived whose original was written after a moment."""
        with self._lock:
            return frozenset(number for number, at in self._newest.items() if at > moment)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                messages = self._consumer.consume(1_000, _WAIT_SECONDS)
                now = time.time()
                fresh = [
                    Arrival(message.partition() or 0, now, message.timestamp()[1] / 1000)
                    for message in messages
                    if message.error() is None
                ]
                with self._lock:
                    self._arrivals.extend(fresh)
                    for each in fresh:
                        newest = max(each.written_at, self._newest.get(each.partition, 0.0))
                        self._newest[each.partition] = newest
        finally:
            self._consumer.close()
