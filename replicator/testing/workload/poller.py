"""Reads topics as they grow, in no group, and records exactly what each poll gave."""

import threading
import uuid
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from replicator.errors import ReplicatorError
from replicator.testing.checker.history import Polled
from replicator.testing.kit.endpoints import Endpoint
from replicator.testing.workload.recorder import Recorder
from replicator.testing.workload.records import record_id

_BATCH = 100
_WAIT_SECONDS = 0.05
_METADATA_SECONDS = 20.0


class Poller:
    """Reads committed records of topics from their start; keeps its partitions and commits nothing.

    Use it in a thread of its own (``start``), or call ``poll`` from one other thread.

    Args:
        cluster: where it reads.
        topics: existing ones.
        history: where what it was given goes.
    """

    def __init__(self, cluster: Endpoint, topics: Sequence[str], *, history: Recorder) -> None:
        self._cluster = cluster
        self._topics = tuple(topics)
        self._history = history
        self._name = f"poller-{cluster.name}.{uuid.uuid4().hex[:8]}"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._consumer: Consumer | None = None
        self._failure: KafkaException | None = None
        self._polls = 0
        self.polled = 0

    def start(self) -> "Poller":
        """Polls in a thread until stopped; returns itself."""
        self._thread.start()
        return self

    def stop(self, *, timeout_seconds: float = 30.0) -> None:
        """Ends the thread, if there is one, and closes the client.

        Raises:
            ReplicatorError: the thread had failed, or did not end in time.
        """
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)
            if self._thread.is_alive():
                raise ReplicatorError("still reading", subject=self._name)
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        if self._failure is not None:
            raise ReplicatorError(f"reader failed: {self._failure}", subject=self._name)

    def poll(self, transaction: str | None = None) -> None:
        """One poll; ``transaction`` is the one in which the caller then writes.

        Errors of the moment are passed over: the client tries again by itself.

        Raises:
            KafkaException: the reader cannot go on.
        """
        consumer = self._consumer or self._open()
        self._polls += 1
        given = []
        for message in consumer.consume(_BATCH, _WAIT_SECONDS):
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise KafkaException(error)
                continue
            raw = message.headers() or []
            pairs = raw.items() if isinstance(raw, dict) else raw
            headers = [
                (name, text.encode() if isinstance(text, str) else text) for name, text in pairs
            ]
            given.append(
                Polled(
                    self._name, self._polls, self._cluster.name, message.topic() or "",
                    message.partition() or 0, message.offset() or 0,
                    record_id(message.value(), headers), transaction,
                )
            )  # fmt: skip
        self._history.record(*given)
        self.polled += len(given)

    def _open(self) -> Consumer:
        self._consumer = consumer = Consumer(
            {
                **self._cluster.client_settings(),
                "group.id": "replicator-history-poller",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )
        places = []
        for topic in self._topics:
            found = consumer.list_topics(topic, timeout=_METADATA_SECONDS).topics[topic]
            places += [TopicPartition(topic, each, OFFSET_BEGINNING) for each in found.partitions]
        consumer.assign(places)
        return consumer

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self.poll()
        except KafkaException as error:
            self._failure = error
