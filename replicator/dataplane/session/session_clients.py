"""The clients of one session of a lane: taking over with them, and closing them as one."""

from collections.abc import Callable, Collection, Iterable, Mapping

from replicator.clock import Clock
from replicator.dataplane.progress.index_notes import IndexNotes, OpenIndex
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.session.older_whole_batches import OlderWholeBatches
from replicator.dataplane.session.paced_consumer import LaneConsumer
from replicator.dataplane.session.progress_beside import ProgressBeside
from replicator.dataplane.session.returned_records import ReturnedRecords
from replicator.dataplane.session.session import Session
from replicator.dataplane.takeover.changed_logs import ChangedLogs
from replicator.dataplane.takeover.lane_records import lane_tail, read_lane_records
from replicator.dataplane.takeover.own_transaction import OwnTransaction
from replicator.dataplane.takeover.seek import read_from
from replicator.dataplane.takeover.start_position import StartDecision
from replicator.dataplane.takeover.takeover import OnFailure, decide_starts, look_at_targets
from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.errors import FencedError, UnreachableError
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.identifiers import LOG_END_KEY, TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import (
    ClientPartition,
    KafkaError,
    KafkaException,
    Message,
    Producer,
)
from replicator.kafka.clients.errors import map_kafka_error
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.logs.compacted_log import LogTail
from replicator.kafka.logs.producer_calls import abort_transaction
from replicator.kafka.logs.topic_lookup import OnWait
from replicator.policy.capacity.memory_shares import LaneMemory

CONNECTED_SECONDS = 60.0
"""How long a lane tries to reach the target before it reports the failure and starts over."""

ABORT_SECONDS = 5.0
"""How long to try to abort a refused transaction; otherwise the next take-over aborts it."""

WRITTEN_SECONDS = 10.0
"""How long the target may take for the first write of a session, which shows where the checkpoints end."""

BATCH_BYTES = 1_000_000
"""Batches stay below the smallest limit of the lane's target topics, or they would be refused."""


class LaneClients:
    """A consumer on the source, a producer on the target, and the session between them."""

    needs_whole_answers = True
    unseen = None

    def __init__(
        self,
        *,
        spec: LaneSpec,
        consumer: LaneConsumer,
        producer: Producer,
        source_admin: ClusterAdmin,
        session: Session,
        progress: ProgressBeside,
        clock: Clock,
        record_by_record: bool,
        opened_with: OpenedWith,
        changed: ChangedLogs,
        memory: LaneMemory | None = None,
        target_seconds: float = 0.0,
        returned: ReturnedRecords | None = None,
        writer_id: str | None = None,
        require_brokers: Callable[[int], None] = lambda _: None,
    ) -> None:
        """``writer_id`` is the transactional id of the producer, where it has one.

        Copies that whole batches left on the target may then be told by counting. ``require_brokers`` is told
        after each step how many records were read, and raises where a client has lost all brokers.
        """
        self.require_brokers = require_brokers
        self._changed = changed
        self._returned = returned
        self._own = None if writer_id is None else OwnTransaction(writer_id, self._abort_in)
        self.memory = memory
        self.target_seconds = target_seconds
        self.spec = spec
        self.opened_with = opened_with
        self.consumer = consumer
        self.producer = producer
        self.session = session
        self._progress = progress
        self.record_by_record = record_by_record
        self._clock = clock
        self._source_admin = source_admin
        self._checkpoints: LogTail | None = None

    def serves(self, spec: LaneSpec) -> bool:
        """Whether other work fits this session.

        Its batches must fit into the smallest target topic, and what it holds into the lane's memory.
        """
        return batch_bytes(spec) >= batch_bytes(self.spec) and not holds_too_much(self.spec, spec)

    def connect_ahead(self) -> None:
        """Opens the connections of both clients, and reads the checkpoints up to now.

        Raises:
            KafkaException: a cluster does not answer, or refuses us.
            ReplicatorError: the checkpoints cannot be read.
        """
        self.learn_leaders({work.topic for work in self.spec.work})
        self.producer.list_topics("__consumer_offsets", timeout=10.0)
        self._checkpoints = lane_tail(self.spec, client_id=lane_client_id(self.spec))
        self._checkpoints.load(timeout_seconds=30.0, known_to_exist=True)

    def fence_last_owner(self, stopping: Callable[[], bool]) -> bool:
        """Makes this the only writer of the lane; False when the lane had to stop meanwhile.

        Raises:
            KafkaException: when the target refuses.
            UnreachableError: when it does not answer for CONNECTED_SECONDS.
        """
        if not self.spec.settings.transactional:
            return True
        waited = 0.0
        while not stopping():
            try:
                self.producer.init_transactions(1.0)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                waited += 1.0
                if waited >= CONNECTED_SECONDS:
                    raise UnreachableError(
                        "no transaction coordinator of the target answers",
                        subject=f"cluster:{self.spec.target.alias}",
                        remedy="Check that the target's brokers are up and reachable.",
                    ) from error
            else:
                return True
        return False

    def read_checkpoints(
        self, open_index: OpenIndex | None, on_wait: OnWait
    ) -> dict[TopicPartition, Checkpoint]:
        """What the last owner stored; to be read only after it was fenced.

        The index, where there is one, goes on from there: in transactions only, because delivery
        reports of every record would cost more than it is worth.
        """
        tail, self._checkpoints = self._checkpoints, None
        records = read_lane_records(
            self.spec,
            client_id=lane_client_id(self.spec),
            tail=tail,
            on_wait=on_wait,
            own=self._own,
            end_of=self.end_of,
        )
        transactional = self.spec.settings.transactional
        if open_index is not None and transactional and not self.record_by_record:
            self.session.unit.reports.index = IndexNotes(open_index(records), clock=self._clock)
        if self._returned is not None:
            self._returned.remember(records)
        return decode_checkpoints(records)

    def learn_leaders(self, topics: set[str]) -> None:
        """Fetches metadata before partitions are assigned; otherwise the client waits half a second."""
        try:
            if len(topics) > 3:
                self.consumer.list_topics(timeout=10.0)
            else:
                for topic in topics:
                    self.consumer.list_topics(topic, timeout=10.0)
        except KafkaException:
            return  # only a matter of speed: the client asks again by itself

    def read_from(self, states: Iterable[PartitionState]) -> None:
        """Reads on at each partition's position."""
        read_from(self.consumer, states)

    def stop_reading(self, states: Iterable[PartitionState]) -> None:
        """Reads these partitions no longer."""
        self.consumer.incremental_unassign([ClientPartition(*state.key) for state in states])

    def replaced(self, error: Exception) -> bool:
        """Whether another owner took over, asked after a transaction was refused.

        A commit that meets the take-over itself is refused as an unknown server error. Aborting what
        cannot be committed any more asks the coordinator again, which then says so; a lane that took
        over anew instead would fence the one that replaced it.
        """
        refusal = error.args[0] if isinstance(error, KafkaException) else None
        if refusal is None or not refusal.txn_requires_abort():
            return False
        try:
            abort_transaction(self.producer, ABORT_SECONDS)
        except KafkaException as refused:
            failure = map_kafka_error(
                refused.args[0],
                subject=f"cluster:{self.spec.target.alias}",
                doing="abort a transaction",
            )
            return isinstance(failure, FencedError)
        return False

    def answers(self, side: str) -> bool:
        """Whether the cluster on that ``side`` answers now; asked only while it has a problem."""
        client = self.consumer if side == "source" else self.producer
        try:
            client.list_topics("__consumer_offsets", timeout=0.5)
        except KafkaException:
            return False
        return True

    def arriving(self) -> Collection[TopicPartition]:
        """None that is known of: the client library says nothing of an answer before it is whole."""
        return ()

    def stable_ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Up to where committed records can be read at the source; without those it cannot answer for."""
        try:
            return self._source_admin.known_offsets(keys, at="latest")
        finally:
            self._source_admin.close()

    def decide(
        self,
        spec: LaneSpec,
        states: set[PartitionState],
        stored: Mapping[tuple[str, int], Checkpoint],
        *,
        on_failure: OnFailure,
    ) -> dict[PartitionState, StartDecision]:
        """Asks both clusters about each partition; where the source has no answer it is left out, and reported."""
        index = self.session.unit.reports.index
        abort_in = None if self._own is None else self._abort_in
        targets = look_at_targets(
            spec, states, stored,
            client_id=lane_client_id(spec), changed=self._changed, abort_in=abort_in,
            count=OlderWholeBatches(spec, states, stored, index, abort_in)
            if index is not None and abort_in is not None
            else None,
        )  # fmt: skip
        try:
            return decide_starts(
                spec, states, stored, self._source_admin, targets,
                at_ms=round(self._clock.now() * 1000), on_failure=on_failure,
            )  # fmt: skip
        finally:
            # Seldom needed again: each client that stays open costs threads that wake up all the time.
            self._source_admin.close()

    def show_end(self) -> None:
        """The lane has committed and ends: its last positions are shown, if that takes less than a second."""
        self._progress.show_end(self.session.states)

    def close(self) -> None:
        """Closes without waiting for anything: what is not committed is not done."""
        self._progress.close()
        try:
            self.producer.purge(in_queue=True, in_flight=True, blocking=False)
            self.producer.poll(0)
        except KafkaException:
            pass  # a fenced or fatal producer refuses even that; closing is all that is left
        self.consumer.close()
        if self._returned is not None:
            self._returned.close()
        self._source_admin.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def end_of(self, place: TopicPartition) -> int:
        """Where a log of the target ends, by a record that leaves nothing behind: it is aborted, or has no value.

        Raises:
            KafkaException, UnknownOutcomeError: the session is over.
            ReplicatorError: nobody acknowledges it.
        """
        topic, partition = place
        if not self.spec.settings.transactional:
            # Such a producer tells of failures only. Here, because the protocol's codec takes half a second to import.
            from replicator.wire.requests.produce_one import end_by_a_write

            return end_by_a_write(
                self.spec.target, topic, partition, key=LOG_END_KEY, timeout_seconds=WRITTEN_SECONDS
            )
        ends: list[int] = []

        def written(error: KafkaError | None, message: Message) -> None:
            offset = message.offset() if error is None else None
            if offset is not None and offset >= 0:
                ends.append(offset + 1)

        unit = self.session.unit
        unit.begin()
        self.producer.produce(topic, key=LOG_END_KEY, partition=partition, on_delivery=written)
        self.producer.flush(WRITTEN_SECONDS)
        unit.abort()
        if not ends:
            raise UnreachableError(
                f"no broker acknowledges a write to {topic}/{partition}",
                subject=f"cluster:{self.spec.target.alias}",
                remedy="Check that it has a leader and enough replicas in sync; it is tried again.",
            )
        return ends[0]

    def _abort_in(self, place: TopicPartition) -> None:
        """Ends what the lane has open in a partition of the target without its coordinator's knowledge.

        This client adds a partition to a transaction only for a record, so one is written, and aborted with it.
        """
        unit, (topic, partition) = self.session.unit, place
        unit.commit()
        unit.begin()
        self.producer.produce(topic, key=b"aborted", partition=partition)
        self.producer.flush(ABORT_SECONDS)
        unit.abort()


def batch_bytes(spec: LaneSpec) -> int:
    """The largest batch that no target topic of the lane refuses for its size."""
    return min([BATCH_BYTES, *(work.max_message_bytes for work in spec.work)])


def holds_too_much(old: LaneSpec, new: LaneSpec) -> bool:
    """Whether clients that were opened for the old spec may hold more than the new one allows."""
    return 0 < new.memory.size_bytes < (old.memory.size_bytes or new.memory.size_bytes + 1)
