"""Notes now and then the target offset of a source record, from delivery reports, for the offset index.

What is worth an entry is decided in ``replicator.offsets.index.index``; here is only when to ask for it, and
that an entry is stored with or after the record it describes, never before.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Protocol

from replicator.clock import Clock
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.delivery import OnDelivery
from replicator.kafka.clients.client import KafkaError, KafkaException, Message, Producer

_REPORTS_SECONDS = 0.5

Stored = tuple[bytes, bytes | None]
"""Key and value for the lane's partition of the checkpoints topic; None takes an entry away."""


class Index(Protocol):
    """The sparse index of one lane's partitions; offsets of both sides, ``now`` in seconds."""

    def due(self, topic: str, partition: int, source: int, now: float) -> bool:
        """Whether a record is worth an entry."""
        ...

    def note(
        self, topic: str, partition: int, source: int, target: int, *, now: float, at_ms: int
    ) -> list[Stored]:
        """Takes a copied record in and returns what is to be stored."""
        ...

    def restart(self, topic: str, partition: int) -> list[Stored]:
        """Forgets a partition; returns what takes its entries away."""
        ...

    def newest_below(
        self, topic: str, partition: int, source: int, target: int
    ) -> tuple[int, int] | None:
        """The newest source and target offset of one record, below both given ones."""
        ...


OpenIndex = Callable[[Mapping[bytes, bytes]], Index]
"""Opens the index from the last value of every key in the lane's checkpoints partition."""


class IndexNotes:
    """The notes of one session; used by the lane's thread only."""

    def __init__(self, index: Index, *, clock: Clock) -> None:
        self._index = index
        self._clock = clock
        self._reported: list[tuple[PartitionState, int, int]] = []
        self._stored: list[Stored] = []
        self._awaited = 0

    def report_for(self, state: PartitionState, source: int) -> OnDelivery | None:
        """A delivery report for the record about to be produced, where it is worth an entry."""
        if not self._index.due(state.topic, state.partition, source, self._clock.monotonic()):
            return None

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._awaited -= 1
            target = message.offset()
            if error is None and target is not None and target >= 0:
                self._reported.append((state, source, target))

        self._awaited += 1
        return delivered

    def newest_below(
        self, topic: str, partition: int, source: int, target: int
    ) -> tuple[int, int] | None:
        """The newest source and target offset of one record, below both given ones."""
        return self._index.newest_below(topic, partition, source, target)

    def restart(self, state: PartitionState) -> None:
        """The source log of a partition is another one from here on."""
        self._reported = [note for note in self._reported if note[0] is not state]
        self._stored.extend(self._index.restart(state.topic, state.partition))

    def take_with(self, producer: Producer) -> list[Stored]:
        """Everything to be stored with the commit that is about to be made, its own records too.

        All of it describes records of this or of an earlier transaction, so it holds as soon as the
        commit does. A commit that fails ends the session, and this with it.
        """
        if self._awaited:
            # The commit would wait for the same acknowledgements; it also handles failures.
            with contextlib.suppress(KafkaException, SystemError):  # a fenced producer's flush
                producer.flush(_REPORTS_SECONDS)
        reported, self._reported = self._reported, []
        stored, self._stored = self._stored, []
        now, at_ms = self._clock.monotonic(), round(self._clock.now() * 1000)
        for state, source, target in reported:
            stored.extend(
                self._index.note(state.topic, state.partition, source, target, now=now, at_ms=at_ms)
            )
        return stored
