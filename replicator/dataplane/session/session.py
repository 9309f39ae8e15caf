"""One session of a lane: from a finished take-over to the next stop or failure.

A session owns a consumer, a producer and the partition states between them, all used by one thread
only. It never repairs itself: whatever goes wrong is raised, the lane throws the session away and takes
over again from the stored checkpoints. So there is one way to recover, and it is the same as the way to
start.
"""

import contextlib
from collections.abc import Iterator
from typing import cast

from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.copy.engine_protocol import (
    CopyStep,
    Engine,
    EpochWentBack,
    LogRewritten,
    QueueFull,
    Refusal,
    Run,
    SourceEvent,
)
from replicator.dataplane.copy.progress_unit import ProgressUnit
from replicator.dataplane.copy.refused_record_search import (
    RETRY_BATCH_RECORDS,
    RETRY_POLL_SECONDS,
)
from replicator.dataplane.copy.source_message import SourceMessage
from replicator.dataplane.progress.pacing import commit_schedule
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.session.fetch_paces import Briskness
from replicator.dataplane.session.paced_consumer import LaneConsumer, PacedConsumer
from replicator.dataplane.session.progress_beside import ProgressBeside
from replicator.dataplane.session.source_events import SourceEvents
from replicator.dataplane.session.trickle_rest import BACKLOG_RECORDS, TrickleRest
from replicator.dataplane.transport.spec import LaneSettings
from replicator.errors import RecordTooLargeError
from replicator.kafka.clients.client import ClientPartition, KafkaException

BATCH_RECORDS = 750
"""Records taken from the client at once; larger batches are colder in the cache (measured: 0.40 µs a
record at 500, 0.52 at 3000)."""

UNACKNOWLEDGED_INTERVALS = 4
"""After so many commit intervals in which something was always on its way, a lane without transactions
stops reading until all is acknowledged, and writes its checkpoints then."""

UNACKNOWLEDGED_WAIT_SECONDS = 0.002
MARKER_SECONDS = 0.003
"""How long a lane that has caught up rests behind a commit: the markers are written meanwhile. A record that is
produced before they are waits for 20 ms in the client, and the next commit with it."""

LONGEST_HOLD_SECONDS, HOLD_STEP_SECONDS = 0.05, 0.001
"""The client library sends no more of a partition while five of its records or more are on their way, and as long as any wait for
that its thread asks for the time in a loop: a whole processor, which the brokers beside it may need in order to acknowledge. So a
trickle waits in the consumer instead, this long at most: partitions of other brokers wait with it."""

STORING_WAIT_SECONDS = 0.02
"""How long it sleeps in the client at most while acknowledgements, or its checkpoints', are to come."""


@contextlib.contextmanager
def _at(place: tuple[str, int, int]) -> Iterator[None]:
    """Says which record it was that has no room in the producer's queue."""
    try:
        yield
    except RecordTooLargeError as error:
        error.place = place
        raise


def _found(messages: list[SourceMessage]) -> int:
    """How many of them are records: the end of a partition, say, comes with every few. A backlog is not looked through for that."""
    if len(messages) >= BACKLOG_RECORDS:
        return len(messages)
    return sum(message.error() is None for message in messages)


class Session:
    """Copies step by step.

    Attributes:
        table: the partitions of the lane; always the same object.
        events: what the source's client reports beside records.
        unit: what was copied since the last commit.
    """

    def __init__(
        self,
        *,
        consumer: LaneConsumer,
        engine: Engine,
        table: PartitionTable,
        events: SourceEvents,
        unit: ProgressUnit,
        context: LaneContext,
        settings: LaneSettings,
        progress: ProgressBeside,
        record_by_record: bool = False,
    ) -> None:
        """``record_by_record``: the engine looks for records that the target refuses."""
        self.table = table
        self.events = events
        self.unit = unit
        self._consumer = consumer
        self._engine = engine
        self._context = context
        self._clock = context.clock
        self._throttle = context.throttle
        self._commit_interval = settings.commit_interval_seconds
        self._transactional = settings.transactional
        self._record_by_record = record_by_record
        self._batch = (
            (RETRY_BATCH_RECORDS, RETRY_POLL_SECONDS) if record_by_record else (BATCH_RECORDS, 0.0)
        )
        # Checkpoints that need no transaction are written beside the records that come next.
        self._beside = not self._transactional and not record_by_record
        self._commit_at_latest = self._commit_interval * (
            UNACKNOWLEDGED_INTERVALS if self._beside else 1
        )
        self._ended: set[PartitionState] = set()
        self._read_at = self._clock.monotonic()
        self._full_at = -1.0
        self._progress = progress
        self._rest = TrickleRest(self._read_at)
        self._briskness = Briskness(self._read_at)

    def states(self) -> list[PartitionState]:
        """Every partition of the lane."""
        return [state for by_partition in self.table.values() for state in by_partition.values()]

    def step(self) -> None:
        """Reads what is there, copies it, and commits when it is time."""
        wait_seconds = self._throttle.wait_seconds(self._clock.monotonic())
        if wait_seconds > 0:
            self._wait_for_budget(wait_seconds)
            return
        most, timeout_seconds = self._batch
        most = self._next_batch(most)
        consumed = self._consumer.consume(most, timeout_seconds)
        messages = cast("list[SourceMessage]", consumed)
        if not messages:
            message = self._commit_or_wait()
            if message is None:
                self._check_partitions()
                self._pace(0)
                return
            messages = [message]
        elif self._beside and self._open_for() >= self._commit_interval:
            self.unit.commit_if_acknowledged()
        began = self._clock.monotonic()
        size = self._copy(messages)
        self.unit.check()
        if self._ended:
            self._end_partitions()
        self._check_partitions()
        opened_at = self.unit.opened_at
        self._read_at = now = self._clock.monotonic()
        if len(messages) >= most:
            self._full_at = now
        # What was found record by record may be aborted with the next unit unless it is committed.
        if self._record_by_record or (
            opened_at is not None and (now - opened_at >= self._commit_at_latest or self._is_full())
        ):
            self.unit.commit()
        self._progress.show(self.states, now)
        found = _found(messages)
        # With transactions records wait for their commit in any case.
        if self._beside:
            rest_seconds = self._rest.seconds(found, size, began=began, now=now)
            if rest_seconds:
                self._rest_for(rest_seconds)
        self._pace(found)

    def _pace(self, found: int) -> None:
        """Has the source asked in paces while records come briskly."""
        if isinstance(self._consumer, PacedConsumer):
            brisk = self._briskness.stepped(found, self._clock.monotonic())
            self._consumer.go(paced=brisk, states=self.states)

    def _rest_for(self, seconds: float) -> None:
        """Rests, and goes on when what was copied is acknowledged; see ``LONGEST_HOLD_SECONDS``."""
        producer, clock = self.unit.producer, self._clock
        until = clock.monotonic() + LONGEST_HOLD_SECONDS
        clock.sleep(seconds)
        self.unit.check()
        while len(producer) and clock.monotonic() < until:
            clock.sleep(HOLD_STEP_SECONDS)
            self.unit.check()

    def _next_batch(self, most: int) -> int:
        """How many records to take next."""
        most, room = self._throttle.batch_records(most), self.unit.room_bytes
        return most if room is None else self._throttle.records_in(room, most)

    def _is_full(self) -> bool:
        room = self.unit.room_bytes
        return room is not None and room <= 0

    def _copy(self, messages: list[SourceMessage]) -> int:
        """How many bytes were copied."""
        outcome = self._context.counters.outcome
        copied, size = outcome.copied, outcome.bytes
        try:
            if any(message.error() is None for message in messages):
                self.unit.begin()
            for step in self._engine.copy(messages):
                self._handle(step)
        except KafkaException as error:
            self.unit.deliveries.raise_refusal(self.unit.producer, error)
            raise
        copied, size = outcome.copied - copied, outcome.bytes - size
        if copied:
            self._throttle.spent(copied, size, self._clock.monotonic())
        return size

    def _handle(self, step: CopyStep) -> None:
        match step:
            case Run():
                self.unit.copied(step)
            case Refusal():
                self._refuse(step)
            case SourceEvent(message):
                moved = self.events.on_event(message)
                if moved is not None:
                    self.unit.store_soon(moved)
            case EpochWentBack(state):
                self.events.require_check(state)
            case LogRewritten(state):
                state.diverged = True
                self.events.require_check(state)
            case QueueFull(place):
                with _at(place):
                    self.unit.wait_for_room()

    def _refuse(self, refusal: Refusal) -> None:
        """Writes the record to the quarantine topic, or stops its partition before it."""
        unit, message = self.unit, refusal.message
        with _at((message.topic(), message.partition(), message.offset())):
            kept = self._context.quarantine.handle(
                refusal, unit.sink, unit.reports.first_writes, on_failed=unit.deliveries.report
            )
        if kept:
            unit.quarantined(refusal)
        else:
            self._ended.add(refusal.state)

    def _commit_or_wait(self) -> SourceMessage | None:
        """Nothing is waiting: commit if it is due, else sleep in the client for the next record."""
        now = self._clock.monotonic()
        unit, counters = self.unit, self._context.counters
        counters.empty_polls += 1
        if not self._transactional and counters.pending_runs and len(unit.producer) == 0:
            counters.delivered(now=self._clock.now())
        schedule = commit_schedule(
            now=now,
            opened_at=unit.opened_at,
            last_commit_at=unit.last_commit_at,
            commit_interval_seconds=self._commit_interval,
            deferred_since=unit.deferred_since,
            transactional=self._transactional,
            read_at=self._read_at,
            behind=self._is_behind(),
        )
        wait_seconds = schedule.wait_seconds
        if self._beside and not unit.settled():
            wait_seconds = min(wait_seconds, STORING_WAIT_SECONDS)
            self._context.give_up()  # nothing waits for them that would ask why they are not taken
        if schedule.commit:
            if not self._beside or self._open_for() >= self._commit_at_latest:
                unit.commit()
                if self._transactional:
                    self._clock.sleep(MARKER_SECONDS)
                return None
            if unit.commit_if_acknowledged():
                return None
            wait_seconds = UNACKNOWLEDGED_WAIT_SECONDS
        if unit.opened_at is None and not self._transactional:
            unit.check()
        else:
            unit.deliveries.check()
        self._progress.show(self.states, now)
        self._throttle.release_all(self._consumer, self.states)
        idle_wait = self._context.idle_wait
        if schedule.idle and idle_wait is not None:
            message = idle_wait(self._consumer, wait_seconds)
        else:
            message = self._consumer.poll(wait_seconds)
        return cast("SourceMessage | None", message)

    def _open_for(self) -> float:
        """Seconds since the first record that no checkpoint covers yet was produced; 0 without one."""
        opened_at = self.unit.opened_at
        return 0.0 if opened_at is None else self._clock.monotonic() - opened_at

    def _is_behind(self) -> bool:
        """Whether the lane reads a backlog: then nothing has come because the next answer is on its way."""
        opened_at = self.unit.opened_at
        if not self._transactional or opened_at is None or self._full_at < opened_at:
            return False
        # What an open transaction of the source holds back looks the same, so a few records are no backlog.
        return any(
            self._known_end(state) - state.position > BATCH_RECORDS
            for state in self.unit.uncommitted
        )

    def _known_end(self, state: PartitionState) -> int:
        """The high watermark that the client last saw; negative where it has seen none."""
        _, high = self._consumer.get_watermark_offsets(ClientPartition(*state.key), cached=True)
        return high

    def _wait_for_budget(self, wait_seconds: float) -> None:
        """Over budget: commit what there is, then wait without reading."""
        if self.unit.opened_at is not None:
            self.unit.commit()
        wait_seconds = min(wait_seconds, 0.1)
        self._context.counters.throttle_wait_seconds += wait_seconds
        self._throttle.hold(self._consumer, self.states())
        self._clock.sleep(wait_seconds)

    def _end_partitions(self) -> None:
        """Stops reading partitions that reached a record which policy does not let them pass."""
        ended, self._ended = self._ended, set()
        self._unassign(ended)
        for state in ended:
            self.unit.store_soon(state)

    def _check_partitions(self) -> None:
        """Stops reading partitions that need a check, and has them examined; failed ones later."""
        to_suspend = self.events.take_to_suspend()
        if to_suspend:
            self._unassign(to_suspend)
        to_check = self.events.take_to_check()
        if to_check:
            self._unassign(to_check)
            self.unit.commit()
            self._context.examine(to_check)

    def _unassign(self, states: set[PartitionState]) -> None:
        self._consumer.incremental_unassign([ClientPartition(*state.key) for state in states])

    def read_source_ends(self) -> None:
        """Reads the high watermarks the client last saw into the states; no request is sent."""
        for state in self.states():
            if state.problem or state.needs_check or state.position < 0:
                continue
            high = self._known_end(state)
            if high >= 0:
                state.source_end = max(high, state.position)
