"""One session of a lane with the batches engine: from a finished take-over to the next stop or failure.

As with the records engine a session never repairs itself: what goes wrong with the target is raised, and
the lane takes over again from the stored checkpoints. One partition of the source that cannot be read
stands aside, and the others go on.
"""

from collections.abc import Callable, Collection

from replicator.batches.codec.found_batches import DamagedBatchError, FoundBatch, found_batches
from replicator.batches.codec.repack import packed_anew
from replicator.batches.copy.outgoing import Outgoing
from replicator.batches.copy.readings import no_leader
from replicator.batches.copy.source_reader import GONE, MOVED, Arrived, SourceReader
from replicator.batches.copy.target_writer import TargetWriter
from replicator.batches.network.io_loop import IoLoop
from replicator.batches.registry.returning import ReturnGuard
from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.copy.engine_protocol import Run
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.session.progress_beside import ProgressBeside
from replicator.dataplane.session.source_events import SourceEvents
from replicator.dataplane.transport.spec import LaneSettings
from replicator.dataplane.whole_batches.batch_pacing import BatchPacing
from replicator.dataplane.whole_batches.batch_unit import BatchUnit
from replicator.errors import ReplicatorError
from replicator.identifiers import topic_id_text
from replicator.kafka.clients.client import ClientPartition
from replicator.policy.capacity.line_settings import LineSettings
from replicator.wire.connection.errors import code_error

FETCH_BYTES = 8 * 1024 * 1024
PARTITION_BYTES = 2 * 1024 * 1024
OUTSTANDING_BYTES = 24 * 1024 * 1024
"""What a lane may hold between the source's answer and the target's: then it asks for no more."""

_TURNS_AHEAD = 2

JOINED_BYTES = 512 * 1024
"""Batches of few records that wait one behind the other are written as one, up to so many bytes."""


class BatchSession:
    """Copies step by step.

    Attributes:
        table: the partitions of the lane; always the same object.
        events: which partitions need a look at their source log.
        unit: what was sent since the last commit.
    """

    def __init__(
        self,
        *,
        loop: IoLoop,
        reader: SourceReader,
        writer: TargetWriter,
        table: PartitionTable,
        events: SourceEvents,
        unit: BatchUnit,
        context: LaneContext,
        settings: LaneSettings,
        line: LineSettings,
        progress: ProgressBeside,
        outstanding_bytes: int = OUTSTANDING_BYTES,
        guard: ReturnGuard | None = None,
        count: Callable[[PartitionState, FoundBatch, int], None] | None = None,
    ) -> None:
        """``guard`` where records of the flow may come back.

        ``count`` is told of each batch and its records, before the position moves behind it.
        """
        self.table = table
        self.events = events
        self.unit = unit
        self._loop = loop
        self._reader = reader
        self._writer = writer
        self._context = context
        self._clock = context.clock
        self._throttle = context.throttle
        self._line = line
        self._progress = progress
        self._outstanding_bytes = outstanding_bytes
        self._transactional = settings.transactional
        self._guard = guard
        self._pacing = BatchPacing(
            unit=unit,
            reader=reader,
            writer=writer,
            commit_interval_seconds=line.commit_interval_seconds,
            transactional=self._transactional,
            now=self._clock.monotonic(),
        )
        self._returning: Collection[int] = ()
        self._ids_of: object = None
        self._count = count

    def states(self) -> list[PartitionState]:
        """Every partition of the lane."""
        return [state for by_partition in self.table.values() for state in by_partition.values()]

    def read_source_ends(self) -> None:
        """Nothing to do: every answer of the source says where its partitions end."""

    def pause(self, partitions: list[ClientPartition]) -> None:
        """Holds partitions back while the lane is over its budget."""
        self._reader.readings.pause(
            [(each.topic, each.partition) for each in partitions], paused=True
        )

    def resume(self, partitions: list[ClientPartition]) -> None:
        """Lets them go on."""
        self._reader.readings.pause(
            [(each.topic, each.partition) for each in partitions], paused=False
        )

    def step(self) -> None:
        """Reads what is there, sends it on, and commits when it is time.

        Raises:
            ReplicatorError: the session is over.
        """
        now = self._clock.monotonic()
        wait_seconds = self._throttle.wait_seconds(now)
        if wait_seconds > 0:
            self._wait_for_budget(wait_seconds)
            return
        self._ask_for_more(now)
        self._loop.turn(0.0 if self._reader.waiting else self._pacing.patience(now))
        began, now = now, self._clock.monotonic()
        for quota in (self._reader.quota, self._writer.quota):
            self._context.counters.held_back(quota, began, now)
        arrived = self._reader.take_arrived(now)
        if arrived:
            self._take_in(arrived, now)
        if not arrived and self._writer.idle:
            self._found_nothing()
        self._pacing.commit_when_due(now)
        self._writer.pump(now)
        self._look(now)

    def _ask_for_more(self, now: float) -> None:
        target = self._writer.quota
        outstanding_bytes = self._outstanding_bytes
        if (
            target.bounded
        ):  # all that is on its way has to be written before its transaction runs out
            outstanding_bytes = min(outstanding_bytes, _TURNS_AHEAD * target.most_bytes)
        if self._writer.outstanding_bytes < outstanding_bytes:
            most = self._throttle.batch_bytes(min(self._line.fetch_bytes, target.most_bytes))
            partition = min(most, self._line.partition_bytes)
            self._reader.pump(now, fetch_bytes=most, partition_bytes=partition)
        else:
            self._context.counters.full_turns += 1

    def _found_nothing(self) -> None:
        counters = self._context.counters
        counters.empty_polls += 1
        if not self._transactional and counters.pending_runs:
            counters.delivered(now=self._clock.now())
        self._throttle.release_all(self, self.states)

    def _take_in(self, arrived: list[Arrived], now: float) -> None:
        outcome = self._context.counters.outcome
        copied, size = outcome.copied, outcome.bytes
        for each in arrived:
            try:
                self._take_in_one(each, now)
            finally:
                each.buffer.release()
        if outcome.copied != copied:
            self._throttle.spent(outcome.copied - copied, outcome.bytes - size, now)

    def _take_in_one(self, arrived: Arrived, now: float) -> None:
        topic, partition = arrived.reading.key
        state = self.table.get(topic, {}).get(partition)
        if state is None or state.problem or state.needs_check:
            return
        part = arrived.part
        if part.error:
            self._failed(state, arrived, now)
        elif part.diverging is not None:
            state.diverged = True
            self.events.require_check(state)
        elif part.preferred_replica >= 0:
            self._reader.readings.prefer(arrived.reading, part.preferred_replica, now)
        else:
            try:
                self._copy(state, arrived)
            except DamagedBatchError as error:
                self._set_aside(state, error)
            arrived.reading.offset = state.position
            arrived.reading.last_epoch = state.record_epoch

    def _copy(self, state: PartitionState, arrived: Arrived) -> None:
        """Queues what may go, and moves the position behind everything that was looked at."""
        part = arrived.part
        before, records, size, oldest = state.position, 0, 0, -1
        place = f"{state.topic}/{state.partition}"
        try:
            for found in found_batches(
                part.records or memoryview(b""),
                position=state.position,
                aborted=part.aborted,
                place=place,
            ):
                if 0 <= found.leader_epoch < state.leader_epoch:
                    self.events.require_check(state)  # epochs never go back in one life of a topic
                    return
                state.leader_epoch = max(state.leader_epoch, found.leader_epoch)
                if not found.skip and not self._returns(state, found):
                    if oldest < 0:
                        oldest = found.base_timestamp
                        self.unit.begin()
                    sent = self._send(state, found, arrived, place)
                    records += sent
                    if self._count is not None:
                        self._count(state, found, sent)
                    size += len(found.data)
                    state.timestamp_ms = max(found.max_timestamp, found.base_timestamp)
                state.position = state.record_end = found.last_offset + 1
                state.position_epoch, state.epoch_of_leader = found.leader_epoch, False
        finally:
            state.source_end = max(part.high_watermark, state.position)
            behind = state.position < part.last_stable_offset
            self._pacing.took(state.key, behind=behind)
            if not behind:
                state.health.at_end()
            self._account(state, before, records, size, oldest)

    def _returns(self, state: PartitionState, found: FoundBatch) -> bool:
        """Whether no record of the batch may be copied on; single ones are left out when it is sent."""
        self._returning = ()
        if self._guard is None:
            return False
        self._returning = self._guard.returning(found, state.topic, state.partition)
        if not self._returning:
            return False
        whole = len(self._returning) > found.last_offset - found.base_offset
        count = found.count if whole else len(self._returning)
        if state.counted:
            dropped = self._context.counters.outcome.dropped
            dropped["loop"] = dropped.get("loop", 0) + count
            state.dropped += count
        return whole

    def _account(
        self, state: PartitionState, before: int, records: int, size: int, oldest: int
    ) -> None:
        read = state.position - before
        if not read:
            return
        if not records:
            self.unit.store_soon(state)
            return
        self._pacing.read_at = self._clock.monotonic()
        if not state.counted:
            records = size = 0
        state.count_copied(records, size)
        self.unit.copied(Run(state, read, records, size, oldest))

    def _send(self, state: PartitionState, found: FoundBatch, arrived: Arrived, place: str) -> int:
        """Queues one batch, as it is or packed anew; returns the number of its records."""
        key = (state.target_topic, state.partition)
        most = state.work.max_message_bytes
        without = self._returning
        if not (found.repack or without) and (len(found.data) <= most or found.count == 1):
            arrived.buffer.hold()
            on_written = self.unit.note_for(state, found.base_offset, found.count)
            few = found.count <= self._line.joined_records and self._count is None
            joins = min(most, JOINED_BYTES) if few else 0
            self._writer.write(
                key,
                Outgoing(
                    found.data,
                    found.count,
                    buffer=arrived.buffer,
                    on_written=on_written,
                    joins=joins,
                ),
            )
            return found.count
        count = 0
        for packed in packed_anew(
            found, position=state.position, most_bytes=most, place=place, without=without
        ):
            on_written = self.unit.note_for(state, packed.first_offset, packed.count)
            self._writer.write(key, Outgoing(packed.data, packed.count, on_written=on_written))
            count += packed.count
        return count

    def _failed(self, state: PartitionState, arrived: Arrived, now: float) -> None:
        part, leaders = arrived.part, self._reader.brokers.leaders
        if part.error in MOVED:
            told = part.leader is not None and leaders.learn(*state.key, part.leader)
            if not told:
                self._reader.readings.retry_later(arrived.reading, now)
        elif part.error in GONE:
            self.events.require_check(state)
        else:
            place = f"{state.topic}/{state.partition}"
            self._set_aside(state, code_error(part.error, subject=place, doing=f"read {place}"))

    def _set_aside(self, state: PartitionState, error: ReplicatorError) -> None:
        """The partition is tried again later, by itself; the others go on."""
        self._context.on_failure(state, "source", error)
        state.needs_check = True
        self._reader.readings.remove([state.key])

    def _look(self, now: float) -> None:
        """What nobody answers, what stands still, and what has to be examined or shown."""
        self._progress.show(self.states, now)
        self._reader.look(now)
        self._writer.look(now)
        self.unit.check()
        for topic, partition in self._reader.failing(now):
            state = self.table.get(topic, {}).get(partition)
            if state is not None and not state.needs_check:
                self._set_aside(state, no_leader(topic, partition))
        for failure in (
            self._reader.brokers.failure,
            self._writer.brokers.failure or self._writer.problem,
        ):
            if failure is not None:
                self._context.problems.on_failure(failure)
        ids = self._reader.brokers.leaders.seen.topic_ids
        if ids is not self._ids_of:
            self._ids_of = ids
            for topic, topic_id in ids.items():
                self.events.on_topic_id(topic, topic_id_text(topic_id))
        to_suspend = self.events.take_to_suspend()
        if to_suspend:
            self._reader.readings.remove([state.key for state in to_suspend])
        to_check = self.events.take_to_check()
        if to_check:
            self._reader.readings.remove([state.key for state in to_check])
            self.unit.commit()
            self._context.examine(to_check)

    def _wait_for_budget(self, wait_seconds: float) -> None:
        """Over budget: commit what there is, then wait without taking anything in.

        What was asked for before is received meanwhile: behind a long wait it would count as an answer that never
        came, and be fetched again.
        """
        if self.unit.opened_at is not None:
            self.unit.commit()
        self._throttle.hold(self, self.states())
        began = self._clock.monotonic()
        self._loop.turn(min(wait_seconds, 0.1))
        self._context.counters.throttle_wait_seconds += self._clock.monotonic() - began
