"""A consumer group as an application has it: reads, processes, commits, and is moved or killed."""

import threading
import time
from typing import Literal

from confluent_kafka import Consumer, KafkaException, TopicPartition

from replicator.errors import ReplicatorError
from replicator.testing.checker.history import Committed, Delivered, GroupStarted
from replicator.testing.kit.endpoints import Endpoint
from replicator.testing.kit.waiting import wait_until
from replicator.testing.workload.recorder import Recorder

_WAIT_SECONDS = 0.1
_BATCH = 200


class GroupReader:
    """One member of a group, in a thread; records what it was given and what it committed.

    Args:
        cluster: where it reads now; after a failover start another reader on the other one.
        topics: to subscribe to.
        group: name of the group.
        history: where deliveries and commits go.
        from_start: whether the group reads its topics from their start (else from their end).
        user: of a secured cluster.
        protocol: ``consumer`` is the newer one (KIP-848), in which brokers share the partitions out.
    """

    def __init__(
        self,
        cluster: Endpoint,
        topics: list[str],
        *,
        group: str,
        history: Recorder,
        from_start: bool = True,
        user: str | None = None,
        protocol: Literal["classic", "consumer"] = "classic",
    ) -> None:
        self._cluster = cluster
        self._topics = topics
        self._group = group
        self._history = history
        self._stopping = threading.Event()
        self._commit_at_end = True
        self._abandoned = False
        self._failure: KafkaException | None = None
        self._thread = threading.Thread(target=self._run, name=f"reader-{group}", daemon=True)
        self._consumer = Consumer(
            {
                **cluster.client_settings(user),
                "group.id": group,
                "auto.offset.reset": "earliest" if from_start else "latest",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",
                "group.protocol": protocol,
                # In the newer protocol the brokers say how long a member may be silent.
                **({"session.timeout.ms": 6_000} if protocol == "classic" else {}),
                "log_level": 0,
            }
        )
        if from_start:
            history.record(GroupStarted(group))
        self.delivered = 0

    def start(self) -> "GroupReader":
        """Joins the group; returns itself."""
        self._consumer.subscribe(self._topics)
        self._thread.start()
        return self

    def wait_delivered(self, count: int, *, timeout_seconds: float = 30.0) -> None:
        """Waits until so many records have been delivered in all.

        Raises:
            NotInTimeError: they were not.
        """
        wait_until(
            lambda: self.delivered >= count,
            timeout_seconds=timeout_seconds,
            describe=lambda: f"{count} records for {self._group}, it has {self.delivered}",
        )

    def abandon(self) -> None:
        """Ends as a member does whose site is lost, without a commit; ``stop`` waits for the end."""
        self._commit_at_end = False
        self._abandoned = True
        self._stopping.set()

    def stop(self, *, commit: bool = True, timeout_seconds: float = 30.0) -> None:
        """Ends; with ``commit=False`` as a crash would, between processing and committing.

        Raises:
            ReplicatorError: the member had failed, or did not end in time.
        """
        self._commit_at_end = commit and not self._abandoned
        self._stopping.set()
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            raise ReplicatorError(f"still reading after {timeout_seconds:g} s", subject=self._group)
        if self._failure is not None:
            raise ReplicatorError(f"reader failed: {self._failure}", subject=self._group)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                positions = self._read_some()
                if positions and (self._commit_at_end or not self._stopping.is_set()):
                    self._commit(positions)
        except KafkaException as error:
            self._failure = error
        finally:
            self._consumer.close()

    def _read_some(self) -> dict[tuple[str, int], int]:
        positions: dict[tuple[str, int], int] = {}
        for message in self._consumer.consume(_BATCH, _WAIT_SECONDS):
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise KafkaException(error)
                continue  # a broker is away; the client tries again by itself
            topic, partition = message.topic() or "", message.partition() or 0
            offset = message.offset() or 0
            self._history.record(
                Delivered(self._group, self._cluster.name, topic, partition, offset, time.time())
            )
            positions[topic, partition] = offset + 1
            self.delivered += 1
        return positions

    def _commit(self, positions: dict[tuple[str, int], int]) -> None:
        offsets = [TopicPartition(*place, offset) for place, offset in positions.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return  # not known to be committed: a later delivery of these is no rewind
        self._history.record(
            *(
                Committed(self._group, self._cluster.name, topic, partition, offset)
                for (topic, partition), offset in positions.items()
            )
        )
