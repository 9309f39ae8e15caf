"""One working life of a lane: from a finished take-over to the next stop or failure.

A session owns a consumer, a producer and the routes between them, all used by one thread only. It
never repairs itself: whatever goes wrong is raised, the lane throws the session away and takes over
again from the stored checkpoints. So there is one way to recover, and it is the same as the way to
start.
"""

from collections.abc import Callable
from typing import cast

from replicator.clock import Clock
from replicator.dataplane.copy.delivery_errors import DeliveryErrors
from replicator.dataplane.copy.engine_protocol import Engine, Refusal
from replicator.dataplane.copy.refused_record_search import (
    CAREFUL_BATCH_RECORDS,
    CAREFUL_POLL_SECONDS,
)
from replicator.dataplane.copy.source_message import SourceMessage
from replicator.dataplane.lane.idle_poller import Rest
from replicator.dataplane.lane.lane_throttle import LaneThrottle
from replicator.dataplane.lane.seek import SUSPICIOUS
from replicator.dataplane.progress.commit import Committer, TransactionalCommitter
from replicator.dataplane.progress.first_writes import FirstWrites
from replicator.dataplane.progress.index_notes import IndexNotes
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.pacing import commit_schedule
from replicator.dataplane.progress.partition_state import PartitionState, RouteTable
from replicator.dataplane.progress.progress_group import ProgressGroup
from replicator.dataplane.transport.delivery import OnDelivery
from replicator.errors import UnknownOutcomeError
from replicator.kafka import codes
from replicator.kafka.client import (
    ClientPartition,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
)

BATCH_RECORDS = 750
"""Records taken from the client at once; larger batches are colder in the cache (measured: 0.40 µs a
record at 500, 0.52 at 3000)."""


class Session:
    """Copies until told to stop; ``examine`` answers suspicions, ``rest`` waits after a silence."""

    def __init__(
        self,
        *,
        consumer: Consumer,
        producer: Producer,
        committer: Committer,
        first_writes: FirstWrites,
        table: RouteTable,
        dirty: set[PartitionState],
        figures: LaneCounters,
        flow_control: LaneThrottle,
        clock: Clock,
        commit_interval_seconds: float,
        eager: bool,
        examine: Callable[[set[PartitionState]], None],
        quarantine: Callable[[Refusal], bool],
        on_problem: Callable[[str, KafkaError | None], None],
        give_up: Callable[[], bool],
        careful: bool = False,
        rest: Rest | None = None,
    ) -> None:
        self.consumer = consumer
        self.producer = producer
        self.committer = committer
        self._first_writes = first_writes
        self.table = table
        self.dirty = dirty
        self.suspects: set[PartitionState] = set()
        self.indexing: IndexNotes | None = None
        self._figures = figures
        self._flow_control = flow_control
        self._clock = clock
        self._commit_interval = commit_interval_seconds
        self._eager = eager
        self._examine = examine
        self._quarantine = quarantine
        self._on_problem = on_problem
        self._give_up = give_up
        self._careful = careful
        self._rest = rest
        self._batch = (
            (CAREFUL_BATCH_RECORDS, CAREFUL_POLL_SECONDS) if careful else (BATCH_RECORDS, 0.0)
        )
        self._ended: set[PartitionState] = set()
        self._engine: Engine | None = None
        self._last_commit_at = 0.0
        self._read_at = clock.monotonic()
        self._lazy: set[PartitionState] = set()
        self._lazy_since: float | None = None
        self._progress = ProgressGroup(consumer, now=clock.monotonic(), on_problem=on_problem)
        self._topic_ids: dict[str, str] = {}
        self.deliveries = DeliveryErrors(transactional=eager)

    def use(self, engine: Engine) -> None:
        """Gives the session its engine; an engine calls back into its session."""
        self._engine = engine

    def routes(self) -> list[PartitionState]:
        """Every route of the lane."""
        return [route for by_partition in self.table.values() for route in by_partition.values()]

    # What the engine calls back.

    def begin(self) -> None:
        """Opens the unit of progress for the records about to be produced."""
        if self.committer.opened_at is None:
            self._figures.open_unit()
        self.committer.begin()

    def wait_for_room(self) -> None:
        """The producer's queue is full: serve deliveries until there is room, or raise."""
        self.producer.poll(0.05)
        self.deliveries.check()
        if self._give_up():
            raise UnknownOutcomeError("the target took no more records before the lane had to stop")

    def report_for(self, route: PartitionState, source: int) -> OnDelivery | None:
        """Asked for the first record of a run: a delivery report where somebody wants one."""
        noted = None if self.indexing is None else self.indexing.report_for(route, source)
        return self._first_writes.report_for(route.target_topic, route.partition, noted)

    def on_first(self, route: PartitionState) -> None:
        """The first record of a run was produced."""
        self._first_writes.wait_after(route.target_topic, route.partition)

    def refuse(self, refusal: Refusal) -> bool:
        """A record that cannot be carried unchanged: quarantined (true), or its partition stops."""
        if self._quarantine(refusal):
            self._figures.outcome.quarantined += 1
            return True
        self._ended.add(refusal.route)
        return False

    def abort(self) -> None:
        """Aborts the open unit; at-least-once has nothing to take back."""
        if isinstance(self.committer, TransactionalCommitter):
            self.committer.abort()
        self.dirty.clear()
        self.deliveries.forget()
        self._first_writes.forget()
        self._figures.roll_back()

    def on_event(self, message: SourceMessage) -> None:
        """The end of a partition, or an error about one."""
        error = message.error()
        route = self.table.get(message.topic(), {}).get(message.partition())
        code = None if error is None else error.code()
        if code == codes.PARTITION_EOF:
            if route is not None and not route.problem and not route.suspect:
                self._reached_end(route, message.offset())
        elif route is not None and error is not None and code in SUSPICIOUS:
            # The client puts its finding into words only.
            route.diverged = route.diverged or "truncation" in error.str().lower()
            route.suspect = True
            self.suspects.add(route)
        elif error is not None and error.fatal():
            raise KafkaException(error)
        elif error is not None:
            self._on_problem("source", error)

    def on_topic_id(self, topic: str, topic_id: str) -> None:
        """The consumer has learned a topic's id: from now on it reads the topic of that id."""
        self._topic_ids[topic] = topic_id
        for route in self.table.get(topic, {}).values():
            if not route.problem and not route.suspect and self.reads_another_topic(route):
                route.suspect = True
                self.suspects.add(route)

    def reads_another_topic(self, route: PartitionState) -> bool:
        """Whether the consumer would read another life of the topic than the route belongs to."""
        known = self._topic_ids.get(route.topic, "")
        return bool(known and route.topic_id) and known != route.topic_id

    def _reached_end(self, route: PartitionState, end: int) -> None:
        """Control markers and aborted records have offsets but no records: step over them."""
        route.source_end = max(route.source_end, end)
        if end > route.position:
            route.position = end
            route.position_epoch = -1  # whose epoch the marker has is not told
            self._lazy.add(route)
            if self._lazy_since is None:
                self._lazy_since = self._clock.monotonic()

    # The loop.

    def step(self) -> None:
        """One turn: read what is there, hand it on, commit when it is time."""
        engine = self._engine
        if engine is None:
            raise RuntimeError("a session needs its engine before its first step")
        wait_seconds = self._flow_control.wait_seconds(self._clock.monotonic())
        if wait_seconds > 0:
            self._throttled(wait_seconds)
            return
        most, patience = self._batch
        consumed = self.consumer.consume(self._flow_control.batch_records(most), patience)
        messages = cast("list[SourceMessage]", consumed)
        if not messages:
            message = self._commit_or_wait(caught_up=True)
            if message is None:
                if self.suspects:
                    self._check_suspected()
                return
            messages = [message]
        self._copy(engine, messages)
        self.producer.poll(0)
        self.deliveries.check()
        if self._ended:
            self._end_partitions()
        if self.suspects:
            self._check_suspected()
        opened_at = self.committer.opened_at
        self._read_at = now = self._clock.monotonic()
        # A careful batch may be taken back, and only what is committed before is safe from that.
        if self._careful or (opened_at is not None and now - opened_at >= self._commit_interval):
            self.commit()

    def _copy(self, engine: Engine, messages: list[SourceMessage]) -> None:
        outcome = self._figures.outcome
        copied, size = outcome.copied, outcome.bytes
        try:
            engine.copy(messages)
        except KafkaException as error:
            self._blame(error)
            raise
        if outcome.copied != copied:
            self._flow_control.spent(
                outcome.copied - copied, outcome.bytes - size, self._clock.monotonic()
            )

    def _commit_or_wait(self, *, caught_up: bool) -> SourceMessage | None:
        """Nothing is waiting: commit if it is due, else sleep in the client for the next record."""
        now = self._clock.monotonic()
        if not self._eager and self._figures.pending_runs and len(self.producer) == 0:
            self._figures.delivered(now=self._clock.now())
        pace = commit_schedule(
            now=now,
            opened_at=self.committer.opened_at,
            last_commit_at=self._last_commit_at,
            commit_interval_seconds=self._commit_interval,
            caught_up=caught_up,
            lazy_since=self._lazy_since,
            eager=self._eager,
            read_at=self._read_at,
        )
        if pace.commit:
            self.commit()
            return None
        if self.committer.opened_at is None and not self._eager:
            self.producer.poll(0)
        self.deliveries.check()
        self._progress.show(self.routes, now)
        self._flow_control.release_all(self.consumer, self.routes)
        if pace.rest and self._rest is not None:
            message = self._rest(self.consumer, pace.wait_seconds)
        else:
            message = self.consumer.poll(pace.wait_seconds)
        return cast("SourceMessage | None", message)

    def _throttled(self, wait_seconds: float) -> None:
        """Over budget: commit what there is, then wait without reading."""
        if self.committer.opened_at is not None:
            self.commit()
        wait_seconds = min(wait_seconds, 0.1)
        self._figures.throttle_wait_seconds += wait_seconds
        self._flow_control.hold(self.consumer, self.routes())
        self._clock.sleep(wait_seconds)

    def commit(self) -> None:
        """Makes everything read so far durable.

        Raises:
            RecordRefusedError: when the target refused a record of this unit for good.
            KafkaException, UnknownOutcomeError: the session is over.
        """
        stored = {*self.dirty, *self._lazy}
        if not stored and self.committer.opened_at is None:
            return
        started = self._clock.monotonic()
        self._note_epochs()
        try:
            notes = [] if self.indexing is None else self.indexing.take_with(self.producer)
            self.committer.commit(stored, notes)
        except (KafkaException, UnknownOutcomeError) as error:
            self._blame(error)
            raise
        self.dirty.clear()
        self._lazy.clear()
        self._lazy_since = None
        self._last_commit_at = started
        ended = self._clock.monotonic()
        self._figures.committed(now=self._clock.now(), seconds=ended - started)
        self._progress.show(self.routes, ended)

    def _note_epochs(self) -> None:
        """The epoch of the last record read, where exactly that is what will be stored."""
        moved = [ClientPartition(route.topic, route.partition) for route in self.dirty]
        for item in self.consumer.position(moved) if moved else ():
            route = self.table.get(item.topic, {}).get(item.partition)
            if route is not None:
                here = item.offset == route.position and item.leader_epoch is not None
                route.position_epoch = item.leader_epoch if here else -1

    def _blame(self, error: Exception) -> None:
        """Raises RecordRefusedError where a record is at fault; the careful copier finds out itself."""
        if not self._careful:
            self.deliveries.find_culprit(self.producer, error)

    def _end_partitions(self) -> None:
        """Stops reading partitions that reached a record which policy does not let them pass."""
        ended, self._ended = self._ended, set()
        self.consumer.incremental_unassign(
            [ClientPartition(route.topic, route.partition) for route in ended]
        )
        for route in ended:
            self.store_soon(route)

    def _check_suspected(self) -> None:
        suspects = set(self.suspects)
        self.suspects.clear()  # the engine adds to this very set
        self.consumer.incremental_unassign(
            [ClientPartition(route.topic, route.partition) for route in suspects]
        )
        self.commit()
        self._examine(suspects)

    def store_soon(self, route: PartitionState) -> None:
        """Has a decision about a route (a first position, a stop, a gap) stored with the next commit."""
        self._lazy.add(route)
        if self._lazy_since is None:
            self._lazy_since = self._clock.monotonic()

    def read_source_ends(self) -> None:
        """Reads the high watermarks the client last saw into the routes; no request is sent."""
        for route in self.routes():
            if route.problem or route.suspect or route.position < 0:
                continue
            _, high = self.consumer.get_watermark_offsets(
                ClientPartition(route.topic, route.partition), cached=True
            )
            if high >= 0:
                route.source_end = max(high, route.position)
