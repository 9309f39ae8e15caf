"""A unit of progress: what a session copied since its last commit, stored or aborted as one.

Under exactly-once it is a transaction with the checkpoints in it; under at-least-once the records whose
checkpoints are not written yet.
"""

from collections.abc import Callable

from replicator.clock import Clock
from replicator.dataplane.copy.delivery_errors import DeliveryErrors
from replicator.dataplane.copy.engine_protocol import Refusal, Run
from replicator.dataplane.copy.source_message import RecordSink
from replicator.dataplane.progress.commit import AcknowledgedCommitter, Committer
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.progress.run_reports import RunReports
from replicator.errors import RecordTooLargeError, SpentProducerError, UnknownOutcomeError
from replicator.kafka.clients.client import KafkaException, Producer
from replicator.kafka.logs.producer_calls import produce_when_room
from replicator.policy.capacity.unit_bytes import UnitBytes

_EMPTY_WAITS = 3
"""A record that has no room so often while the queue is empty has none at all."""

_OVERHEAD_BYTES = 64
"""What a record is besides its value, about: a key, our header."""


class ProgressUnit:
    """The open unit of one session, one after the other; used by the lane's thread only.

    Attributes:
        producer, sink: what writes the unit; records go through the sink.
        reports, deliveries: what the target said about it.
        deferred_since: monotonic seconds since when progress without records waits to be stored.
        last_commit_at: monotonic seconds when the last commit began.
    """

    def __init__(
        self,
        *,
        producer: Producer,
        sink: RecordSink,
        committer: Committer,
        reports: RunReports,
        deliveries: DeliveryErrors,
        counters: LaneCounters,
        clock: Clock,
        give_up: Callable[[], bool],
        transactional: bool,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        """``give_up`` says whether the lane must not wait for the target any longer.

        ``confirm`` is asked before records are stored, and raises where they must not be.
        """
        self._confirm = confirm
        self._transactional = transactional
        self.producer = producer
        self.sink = sink
        self.reports = reports
        self.deliveries = deliveries
        self.deferred_since: float | None = None
        self.last_commit_at = 0.0
        self._committer = committer
        self._counters = counters
        self._clock = clock
        self._give_up = give_up
        self._empty_waits = 0
        self._size = 0
        self._most = UnitBytes()
        self._uncommitted: set[PartitionState] = set()
        self._deferred: set[PartitionState] = set()

    @property
    def opened_at(self) -> float | None:
        """Monotonic seconds; None when nothing was copied since the last commit."""
        return self._committer.opened_at

    @property
    def uncommitted(self) -> frozenset[PartitionState]:
        """The partitions of which something was copied since the last commit."""
        return frozenset(self._uncommitted)

    @property
    def room_bytes(self) -> int | None:
        """How many bytes it may take before it should be stored, 0 or less: none; None: as many as come."""
        return self._most.most_bytes - self._size if self._most.bounded else None

    def begin(self) -> None:
        """Opens the unit for the records about to be produced, unless it is open."""
        if self._committer.opened_at is None:
            self._counters.open_unit()
        self._committer.begin()

    def add(self, topic: str, key: bytes, value: bytes | None) -> None:
        """Writes a record of the replicator's own into partition 0 of a topic, with the open unit."""
        produce_when_room(self.producer, topic, value, key, 0, wait=self.wait_for_room)

    def copied(self, run: Run) -> None:
        """Takes in a run whose records were produced."""
        self._empty_waits = 0
        outcome = self._counters.outcome
        outcome.read += run.read
        if run.copied:
            outcome.copied += run.copied
            outcome.bytes += run.size
            self._size += run.size + run.copied * _OVERHEAD_BYTES
            self._counters.run(run.timestamp_ms, run.copied)
        state = run.state
        state.record_end, state.position_epoch = state.position, run.leader_epoch
        state.epoch_of_leader = False
        if run.produced:
            state.target.produced(run.produced, run.last_copied)
        self._uncommitted.add(state)

    def quarantined(self, refusal: Refusal) -> None:
        """Moves past a record that was written to the quarantine topic."""
        state, outcome = refusal.state, self._counters.outcome
        position = refusal.message.offset() + 1
        outcome.read += position - state.position
        outcome.quarantined += 1
        epoch = refusal.message.leader_epoch()
        state.left_out = state.left_out.with_offset(position - 1)
        state.position = state.record_end = position
        state.position_epoch = -1 if epoch is None else epoch
        state.epoch_of_leader = False
        state.timestamp_ms = refusal.message.timestamp()[1]
        self._uncommitted.add(state)

    def omitted_headers(self, records: int) -> None:
        """Counts records that fit into the target topic only without our header."""
        self._counters.outcome.headers_omitted += records

    def store_soon(self, state: PartitionState) -> None:
        """Has progress without records (a first position, a stop, markers) stored with the next commit."""
        self._deferred.add(state)
        if self.deferred_since is None:
            self.deferred_since = self._clock.monotonic()

    def forget_index(self, state: PartitionState) -> None:
        """The source log of a partition is another one from here on."""
        if self.reports.index is not None:
            self.reports.index.restart(state)

    def wait_for_room(self) -> None:
        """The producer's queue is full: serve deliveries for a moment, or raise.

        Raises:
            RecordTooLargeError: the queue is empty, and the record has no room all the same.
            RecordRefusedError, KafkaException: a record failed.
            UnknownOutcomeError: the lane has to stop.
        """
        self._empty_waits = 0 if len(self.producer) else self._empty_waits + 1
        if self._empty_waits > _EMPTY_WAITS:
            raise RecordTooLargeError("a record is larger than what may wait for the target")
        self.producer.poll(0.05)
        self.deliveries.check()
        if self._give_up():
            raise UnknownOutcomeError("the target took no more records before the lane had to stop")

    def check(self) -> None:
        """Serves the reports of the client.

        Raises:
            RecordRefusedError, KafkaException: a record failed.
        """
        try:
            self.producer.poll(0)
        except KafkaException as error:
            self.deliveries.raise_refusal(self.producer, error)
            raise
        self.deliveries.check()

    def commit(self) -> None:
        """Makes everything read so far durable.

        Raises:
            RecordRefusedError: when the target refused a record of this unit for good.
            KafkaException, UnknownOutcomeError: the session is over; a SpentProducerError, after all was done.
        """
        stored = self._uncommitted | self._deferred
        started = self._clock.monotonic()
        index = self.reports.index
        try:
            if not stored and self._committer.opened_at is None:
                self._committer.settle()
                return
            if self._uncommitted:
                self._confirm()
            notes = [] if index is None else index.take_with(self.producer)
            self._committer.commit(stored, notes)
        except (KafkaException, UnknownOutcomeError) as error:
            self.deliveries.raise_refusal(self.producer, error)
            raise
        self._done(started)

    def commit_if_acknowledged(self) -> bool:
        """Without transactions: writes the checkpoints where nothing is on its way, and waits for nothing.

        Raises:
            RecordRefusedError: when the target refused a record of this unit for good.
            KafkaException, UnknownOutcomeError: the session is over.
        """
        committer = self._committer
        if not isinstance(committer, AcknowledgedCommitter):
            self.commit()
            return True
        started = self._clock.monotonic()
        try:
            if not committer.acknowledged():
                return False
            if self._uncommitted:
                self._confirm()
            committer.write(self._uncommitted | self._deferred)
        except (KafkaException, UnknownOutcomeError) as error:
            self.deliveries.raise_refusal(self.producer, error)
            raise
        self._done(started)
        return True

    def settled(self) -> bool:
        """Whether checkpoints that were written are stored.

        Raises:
            RecordRefusedError, KafkaException, UnknownOutcomeError: the session is over.
        """
        try:
            return self._committer.settled()
        except (KafkaException, UnknownOutcomeError) as error:
            self.deliveries.raise_refusal(self.producer, error)
            raise

    def _done(self, started: float) -> None:
        for state in self._uncommitted:
            state.target.stored(marker=self._transactional)
        self._uncommitted.clear()
        self._deferred.clear()
        self.deferred_since = None
        self.last_commit_at = started
        seconds = self._clock.monotonic() - started
        self._most.stored(self._size, seconds)
        self._size = 0
        self._counters.committed(now=self._clock.now(), seconds=seconds)
        self._end_in_doubt()

    def abort(self) -> None:
        """Aborts the open transaction; without transactions what was written stays.

        Raises:
            SpentProducerError: the session is over.
        """
        self._committer.abort()
        for state in self._uncommitted:
            state.target.aborted()
        self._uncommitted.clear()
        self._size = 0
        self.deliveries.clear()
        self.reports.first_writes.clear()
        self._counters.roll_back()
        self._end_in_doubt()

    def _end_in_doubt(self) -> None:
        """The next transaction of this producer could be ended by what ended the last one."""
        if self._committer.in_doubt:
            raise SpentProducerError(
                "the connection to the target's coordinator was lost while a transaction ended, and "
                "the request may arrive a second time",
                remedy="The lane goes on from its checkpoints with a new producer, which fences it.",
            )
