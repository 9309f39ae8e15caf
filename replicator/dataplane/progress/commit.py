"""How a lane makes its progress durable: in transactions, or behind the acknowledged records.

Invariant of both: a stored checkpoint never says more than what the target has acknowledged.
exactly-once gets it from the transaction; at-least-once writes when nothing is on its way to the target.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from replicator.clock import Clock
from replicator.dataplane.progress.first_writes import FirstWrites
from replicator.dataplane.progress.index_notes import Stored
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import UnknownOutcomeError
from replicator.kafka.clients.client import KafkaError, Producer
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.kafka.logs.producer_calls import abort_transaction, produce_when_room, until_done

_ABORT_SECONDS = 30.0


class Committer(Protocol):
    """Begins and ends units of progress for one lane; called by the lane's thread only."""

    opened_at: float | None
    """Monotonic seconds when the open unit began; None when nothing is open."""

    @property
    def in_doubt(self) -> bool:
        """Whether the last unit may be ended once more by a late request: then none is begun."""
        ...

    def begin(self) -> None:
        """Opens a unit unless one is open."""
        ...

    def commit(self, states: Iterable[PartitionState], notes: Iterable[Stored] = ()) -> None:
        """Stores the checkpoints of the partitions, and notes, with what was produced, or raises."""
        ...

    def abort(self) -> None:
        """Aborts the open unit, where there are transactions."""
        ...

    def settle(self) -> None:
        """Returns when everything that was written before is stored."""
        ...

    def settled(self) -> bool:
        """Whether everything that was written before is stored, without waiting for it."""
        ...


class CheckpointWriter:
    """Produces checkpoint records into the lane's partition of the checkpoints topic."""

    def __init__(
        self,
        *,
        producer: Producer,
        first_writes: FirstWrites,
        topic: str,
        lane: int,
        clock: Clock,
    ) -> None:
        self._producer = producer
        self._first_writes = first_writes
        self._topic = topic
        self._lane = lane
        self._clock = clock

    def write(self, states: Iterable[PartitionState], notes: Iterable[Stored]) -> int:
        """Produces one record per partition and note; returns the time they carry, in milliseconds.

        Raises:
            UnknownOutcomeError: the target took records and gave no offset for them.
        """
        at_ms = int(self._clock.now() * 1000)
        for state in states:
            checkpoint = state.checkpoint(at_ms=at_ms)
            self._produce(checkpoint.key(), checkpoint.value())
        for key, value in notes:
            self._produce(key, value)
        self._first_writes.confirm()
        return at_ms

    def _produce(self, key: bytes, value: bytes | None) -> None:
        report = self._first_writes.report_for(self._topic, self._lane, None)
        produce_when_room(self._producer, self._topic, value, key, self._lane, report)
        self._first_writes.wait_after(self._topic, self._lane)


def _mark_committed(states: Iterable[PartitionState], at_ms: int) -> None:
    for state in states:
        state.committed = state.position
        state.committed_at_ms = at_ms


class TransactionalCommitter:
    """exactly-once: records and checkpoints of a unit are one transaction on the target."""

    def __init__(
        self,
        *,
        producer: Producer,
        writer: CheckpointWriter,
        coordinator: CoordinatorWatch,
        clock: Clock,
        give_up: Callable[[], bool],
        confirm: Callable[[Iterable[PartitionState]], None] = lambda _: None,
    ) -> None:
        """``coordinator`` watches the producer; ``confirm`` raises where a unit must not be stored."""
        self._confirm = confirm
        self._producer = producer
        self._writer = writer
        self._coordinator = coordinator
        self._clock = clock
        self._give_up = give_up
        self.opened_at: float | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether the last transaction may be ended once more, and with it the next one."""
        return self._coordinator.in_doubt

    def begin(self) -> None:
        """Opens a transaction unless one is open (a local call, the broker is not asked)."""
        if self.opened_at is None:
            self._producer.begin_transaction()
            self.opened_at = self._clock.monotonic()

    def commit(self, states: Iterable[PartitionState], notes: Iterable[Stored] = ()) -> None:
        """Commits; returns only when the outcome is known to be good.

        Raises:
            UnknownOutcomeError: when the lane had to stop before the target answered, or when it took
                records and gave no offset for them.
            KafkaException: any refusal, to be mapped by the caller.
            LogChangedError: the lane has to look at the target first.
        """
        states = tuple(states)
        self.begin()
        at_ms = self._writer.write(states, notes)
        self._confirm(states)
        with self._coordinator.ending(self._producer):
            until_done(lambda: self._producer.commit_transaction(2.0), final=self._final)
        self.opened_at = None
        _mark_committed(states, at_ms)

    def _final(self, error: KafkaError) -> KafkaError | None:
        if not error.retriable():
            return error
        if self._give_up():
            raise UnknownOutcomeError(
                "the target did not answer a commit before the lane had to stop",
                remedy="The next owner re-reads the checkpoint and goes on from it.",
            )
        return None

    def abort(self) -> None:
        """Aborts the open transaction, if there is one."""
        if self.opened_at is not None:
            with self._coordinator.ending(self._producer):
                abort_transaction(self._producer, _ABORT_SECONDS)
            self.opened_at = None

    def settle(self) -> None:
        """Nothing to do: a commit returns when everything is stored."""

    def settled(self) -> bool:
        """Always: a commit returns when everything is stored."""
        return True


class AcknowledgedCommitter:
    """at-least-once: everything produced is acknowledged first, then the checkpoints are written.

    ``commit`` waits for both. While a lane copies, it would wait with records unread, so there it asks
    ``acknowledged`` now and then, and writes with ``write`` once that is so: then the checkpoints are
    stored beside the next records. docs/decisions/checkpoints-behind-acknowledgements.md
    """

    def __init__(
        self,
        *,
        producer: Producer,
        writer: CheckpointWriter,
        clock: Clock,
        give_up: Callable[[], bool],
        failed: Callable[[], bool],
    ) -> None:
        self._producer = producer
        self._writer = writer
        self._clock = clock
        self._give_up = give_up
        self._failed = failed
        self.opened_at: float | None = None
        self.in_doubt = False
        self._written: list[tuple[PartitionState, int, int]] = []

    def begin(self) -> None:
        """Notes when the oldest record without a checkpoint was produced."""
        if self.opened_at is None:
            self.opened_at = self._clock.monotonic()

    def commit(self, states: Iterable[PartitionState], notes: Iterable[Stored] = ()) -> None:
        """Waits for every acknowledgement, then stores the checkpoints and waits for those.

        Raises:
            UnknownOutcomeError: when the lane had to stop, or when a record failed: nothing is stored.
        """
        self._flush()
        self._stored()
        self.write(states, notes)
        self.settle()

    def acknowledged(self) -> bool:
        """Whether nothing is on its way to the target; what was written before is stored then.

        Raises:
            UnknownOutcomeError: a record failed.
        """
        self._producer.poll(0)
        if len(self._producer):
            return False
        self._check()
        self._stored()
        return True

    def write(self, states: Iterable[PartitionState], notes: Iterable[Stored] = ()) -> None:
        """Writes the checkpoints; to be called only while everything is acknowledged.

        Raises:
            UnknownOutcomeError: the lane had to stop.
        """
        states = tuple(states)
        at_ms = self._writer.write(states, notes)
        self._written = [(state, state.position, at_ms) for state in states]
        self.opened_at = None

    def settle(self) -> None:
        """Waits for the checkpoints that were written.

        Raises:
            UnknownOutcomeError: when the lane had to stop, or when a record failed.
        """
        if self._written:
            self._flush()
            self._stored()

    def settled(self) -> bool:
        """Whether they are stored; see ``acknowledged``."""
        return not self._written or self.acknowledged()

    def abort(self) -> None:
        """Does nothing: what was written without a transaction stays."""

    def _stored(self) -> None:
        written, self._written = self._written, []
        for state, position, at_ms in written:
            state.committed, state.committed_at_ms = position, at_ms

    def _flush(self) -> None:
        while self._producer.flush(1.0) > 0:
            if self._failed():
                break
            if self._give_up():
                raise UnknownOutcomeError(
                    "the target did not acknowledge before the lane had to stop",
                    remedy="The next owner goes on from the last checkpoint; some records repeat.",
                )
        self._check()

    def _check(self) -> None:
        if self._failed():
            raise UnknownOutcomeError("a record was not taken by the target")
