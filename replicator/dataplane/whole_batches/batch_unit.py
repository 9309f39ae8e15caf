"""A unit of progress of the batches engine: what was sent since the last commit, stored as one.

Invariant: a stored checkpoint never says more than what the target has acknowledged. Under exactly-once
it stands in the transaction of its records; under at-least-once it is written behind their
acknowledgements, while the lane copies on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from replicator.batches.copy.outgoing import Outgoing
from replicator.batches.copy.target_writer import TargetWriter
from replicator.batches.copy.transactions import ProducerIdentity, Transactions
from replicator.clock import Clock
from replicator.dataplane.copy.engine_protocol import Run
from replicator.dataplane.progress.index_notes import Index, Stored
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.whole_batches.checkpoints_beside import CheckpointsBeside
from replicator.errors import TargetRegressedError, TransientBrokerError, UnknownOutcomeError
from replicator.wire.records.record_batch import RawRecord, encode_batch

TRANSACTION_SECONDS = 60.0
"""After so long without an end the coordinator aborts a transaction by itself."""

STUCK_SECONDS = 40.0
"""How long a partition of the target may take nothing before the session gives its transaction up."""

_COMMIT_SECONDS = 10.0
_TURN_SECONDS = 0.1
_RECORDS_AT_ONCE = 500


class BatchUnit:
    """The open unit of one session, one after the other; used by the lane's thread only.

    Attributes:
        opened_at: monotonic seconds since when something waits to be committed; None when nothing does.
        deferred_since: monotonic seconds since when progress without records waits to be stored.
        last_commit_at: monotonic seconds when the last commit began.
        index: the sparse offset index; None where none is kept.
    """

    def __init__(
        self,
        *,
        writer: TargetWriter,
        transactions: Transactions,
        transactional: bool,
        checkpoints: tuple[str, int],
        turn: Callable[[float], None],
        counters: LaneCounters,
        clock: Clock,
        give_up: Callable[[], bool],
        on_flow: Callable[[], None],
        register: Callable[[ProducerIdentity], None],
        confirm: Callable[[Iterable[PartitionState]], None] = lambda _: None,
    ) -> None:
        """``register`` makes a producer id known as the flow's, before its first batch.

        ``confirm`` raises where a transaction must not be committed. ``checkpoints`` is the lane's partition; ``turn`` reads and writes what can be, without copying.
        """
        self.opened_at: float | None = None
        self.deferred_since: float | None = None
        self.last_commit_at = 0.0
        self.index: Index | None = None
        self._writer = writer
        self._transactions = transactions
        self._transactional = transactional
        self._checkpoints = checkpoints
        self._turn = turn
        self._counters = counters
        self._clock = clock
        self._give_up = give_up
        self._on_flow = on_flow
        self._register = register
        self._confirm = confirm
        self._registered_id = -1
        self._uncommitted: set[PartitionState] = set()
        self._deferred: set[PartitionState] = set()
        self._written: list[tuple[PartitionState, int, int]] = []
        self._notes: list[Stored] = []
        self._added: list[tuple[str, Stored]] = []
        self._regressed = ""
        self._beside: CheckpointsBeside | None = None

    def begin(self) -> None:
        """Opens the unit for the batches about to be written, unless it is open."""
        if self.opened_at is None:
            self.opened_at = self._clock.monotonic()
            # What a failure now aborts begins before checkpoints that are not written yet.
            if self._beside is None or self._counters.unit_start is None:
                self._counters.open_unit()

    def add(self, topic: str, key: bytes, value: bytes | None) -> None:
        """Writes a record of the replicator's own into partition 0 of a topic, with the open unit."""
        self._added.append((topic, (key, value)))

    def copied(self, run: Run) -> None:
        """Takes in batches of one partition that were queued."""
        outcome = self._counters.outcome
        outcome.read += run.read
        if run.copied:
            outcome.copied += run.copied
            outcome.bytes += run.size
            self._counters.run(run.timestamp_ms, run.copied)
        self._uncommitted.add(run.state)

    def store_soon(self, state: PartitionState) -> None:
        """Has progress without records (a first position, a stop, markers) stored with the next commit."""
        self._deferred.add(state)
        if self.deferred_since is None:
            self.deferred_since = self._clock.monotonic()

    def note_for(self, state: PartitionState, source: int, count: int) -> Callable[[int], None]:
        """Takes the target offset of a batch of ``count`` records that starts at this source offset."""
        index, now = self.index, self._clock.monotonic()
        worth = index is not None and index.due(state.topic, state.partition, source, now)

        def written(target: int) -> None:
            if target >= 0:
                self._regressed = self._regressed or state.target.took(target, count)
                if worth:
                    self._written.append((state, source, target))

        return written

    def forget_index(self, state: PartitionState) -> None:
        """The source log of a partition is another one from here on."""
        if self.index is not None:
            self._written = [each for each in self._written if each[0] is not state]
            self._notes.extend(self.index.restart(state.topic, state.partition))

    def commit(self, *, more_follows: bool = False) -> None:
        """Makes everything read so far durable.

        ``more_follows``: another commit comes soon. Entries of the index that only the last acknowledgements gave are
        stored with that, which saves a round trip to the target.

        Raises:
            UnknownOutcomeError: no answer whether it took effect, or none before the lane had to stop.
            ReplicatorError: the session is over; nothing of the unit is committed.
        """
        while self._beside is not None:
            self._settle()
            self.go_on()
        stored = self._uncommitted | self._deferred
        entries_wait = self._written and not more_follows
        if not stored and not entries_wait and self.opened_at is None:
            return
        started = self._clock.monotonic()
        if not self._transactional:
            self._settle()
        at_ms = round(self._clock.now() * 1000)
        # Under exactly-once they go beside the last records: their transaction says whether either counts.
        self._write_own(
            [self._stored(state, at_ms) for state in stored] + self._take_notes(at_ms), at_ms
        )
        for topic, record in self._added:
            for batch in _batches([record], at_ms):
                self._writer.write((topic, 0), batch)
        self._settle()
        late = [] if more_follows else self._take_notes(at_ms)
        if late:
            self._write_own(late, at_ms)
            self._settle()
        self._check_regressed()
        if self._transactional:
            self._confirm(stored)
            self._transactions.end(_COMMIT_SECONDS)
            self.adopt_identity()
            self._writer.hold(self._clock.monotonic())
        for state in stored:
            state.committed, state.committed_at_ms = state.position, at_ms
        self._uncommitted.clear()
        self._deferred.clear()
        self._added.clear()
        self.opened_at = self.deferred_since = None
        self.last_commit_at = started
        seconds = self._clock.monotonic() - started
        self._counters.committed(now=self._clock.now(), seconds=seconds)

    @property
    def storing(self) -> bool:
        """Whether checkpoints are on their way beside what the lane copies."""
        return self._beside is not None

    def commit_beside(self) -> None:
        """Without transactions: has everything read so far stored, and waits for nothing.

        ``go_on`` has to be called while the lane goes on. Nothing is done while the last ones are on their way.

        Raises:
            ReplicatorError: the session is over.
        """
        if self._transactional or self._added:
            self.commit()
            return
        if self._beside is not None:
            return
        began, at_ms = self._clock.monotonic(), round(self._clock.now() * 1000)
        states = self._uncommitted | self._deferred
        notes = self._take_notes(at_ms)
        self._beside = CheckpointsBeside(
            self._writer.barrier(),
            states=states,
            batches=tuple(
                _batches([self._stored(state, at_ms) for state in states] + notes, at_ms)
            ),
            at_ms=at_ms,
            began=began,
            runs=len(self._counters.pending_runs),
            outcome=self._counters.outcome_now(),
        )
        self._uncommitted.clear()
        self._deferred.clear()
        self.opened_at = self.deferred_since = None
        self.last_commit_at = began
        self.go_on()

    def go_on(self) -> None:
        """Writes the checkpoints that wait for acknowledgements where those have come.

        Raises:
            TargetRegressedError: the target's log lost what it held; nothing is written.
            PartitionsRefusedError: they wait for partitions that take no writes, as the target says.
        """
        beside = self._beside
        if beside is None:
            return
        self._check_regressed()
        if beside.write_when_due(lambda batch: self._writer.write(self._checkpoints, batch)):
            self._counters.committed(
                now=self._clock.now(),
                seconds=self._clock.monotonic() - beside.began,
                runs=beside.runs,
                next_start=None if self.opened_at is None else beside.outcome,
            )
        if beside.stored():
            self._beside = None
        else:
            self._must_give_up()  # nothing waits for them that would ask why they are not taken

    def adopt_identity(self) -> None:
        """Writes as the coordinator says from now on; an id that is new is registered first.

        Raises:
            ReplicatorError: the id may not be registered, so nothing may be written under it.
        """
        identity = self._transactions.identity
        if identity.producer_id != self._registered_id:
            self._register(identity)
            self._registered_id = identity.producer_id
        self._writer.begin(identity, joins_by_itself=self._transactions.second)

    def remember(self, stored: Stored) -> None:
        """Has this stored with the next commit."""
        self._notes.append(stored)

    def check(self) -> None:
        """Gives up a transaction that the target lets run out.

        Raises:
            TransientBrokerError: a partition has taken nothing for STUCK_SECONDS.
        """
        since = self._writer.stuck_since()
        if since is not None and self._clock.monotonic() - since > STUCK_SECONDS:
            raise self._writer.problem or TransientBrokerError(
                "a partition of the target takes nothing",
                remedy="Check that it has a leader and enough replicas in sync.",
            )

    def _stored(self, state: PartitionState, at_ms: int) -> Stored:
        producer = self._registered_id if self._transactional else -1
        checkpoint = replace(state.checkpoint(at_ms=at_ms), producer=producer)
        return checkpoint.key(), checkpoint.value()

    def _write_own(self, records: Sequence[Stored], at_ms: int) -> None:
        for batch in _batches(records, at_ms):
            self._writer.write(self._checkpoints, batch)

    def _settle(self) -> None:
        """Waits until everything is acknowledged."""
        while not self._writer.idle:
            now = self._clock.monotonic()
            self._writer.pump(now)
            self._turn(min(_TURN_SECONDS, self._writer.seconds_held(now)))
            self._counters.held_back(self._writer.quota, now, self._clock.monotonic())
            self._writer.look(self._clock.monotonic())
            self.check()
            if self._must_give_up():
                raise UnknownOutcomeError(
                    "the target did not acknowledge before the lane had to stop",
                    remedy="The next owner goes on from the last checkpoint.",
                )

    def _must_give_up(self) -> bool:
        # Over a narrow line a commit lasts; the target is asked for a reason, which holds the lane up, only where it has one.
        if self._writer.flows(self._clock.monotonic()):
            self._on_flow()
        return self._give_up()

    def _check_regressed(self) -> None:
        if self._regressed:
            raise TargetRegressedError(
                self._regressed, remedy="The lane looks for what is missing and copies it again."
            )

    def _take_notes(self, at_ms: int) -> list[Stored]:
        notes, self._notes = self._notes, []
        written, self._written = self._written, []
        now = self._clock.monotonic()
        if self.index is not None:
            for state, source, target in written:
                notes += self.index.note(
                    state.topic, state.partition, source, target, now=now, at_ms=at_ms
                )
        return notes


def _batches(records: Sequence[Stored], at_ms: int) -> Iterator[Outgoing]:
    for start in range(0, len(records), _RECORDS_AT_ONCE):
        part = records[start : start + _RECORDS_AT_ONCE]
        packed = encode_batch(
            [RawRecord(at, at_ms, "CreateTime", key, value) for at, (key, value) in enumerate(part)]
        )
        yield Outgoing(memoryview(bytearray(packed)), len(part))
