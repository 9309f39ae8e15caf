"""What one session of a lane with the batches engine works with: opened, wired together, closed as one."""

from collections.abc import Callable, Collection, Iterable, Mapping

from replicator.batches.copy.source_reader import (
    COMMITTED_FETCH_PACE_SECONDS,
    FETCH_PACE_SECONDS,
    SourceReader,
)
from replicator.batches.copy.target_writer import TargetWriter
from replicator.batches.copy.transaction_members import TransactionMembers
from replicator.batches.copy.transactions import ProducerIdentity, Transactions
from replicator.batches.network.io_loop import IoLoop
from replicator.batches.registry.other_topologies import registry_of_source
from replicator.batches.registry.producer_registry import SEEN_SECONDS, register
from replicator.batches.registry.returning import ReturnGuard
from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.progress.index_notes import OpenIndex
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.session.bounded_copy import BoundedCopy, writer_id
from replicator.dataplane.session.clients_protocol import UnseenProducer
from replicator.dataplane.session.progress_beside import progress_beside
from replicator.dataplane.session.session_clients import (
    CONNECTED_SECONDS,
    WRITTEN_SECONDS,
    holds_too_much,
)
from replicator.dataplane.session.source_events import SourceEvents
from replicator.dataplane.takeover.counted_copies import CountedCopies
from replicator.dataplane.takeover.lane_records import lane_tail, read_lane_records
from replicator.dataplane.takeover.own_transaction import OwnTransaction
from replicator.dataplane.takeover.start_position import StartDecision
from replicator.dataplane.takeover.takeover import OnFailure, decide_starts, look_at_targets
from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.dataplane.whole_batches.batch_session import BatchSession
from replicator.dataplane.whole_batches.batch_unit import TRANSACTION_SECONDS, BatchUnit
from replicator.dataplane.whole_batches.session_size import session_size
from replicator.errors import (
    AuthenticationFailedError,
    NotAuthorizedError,
    ReplicatorError,
    UnreachableError,
)
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.formats.producer_registry import (
    RegisteredProducer,
    RegistryMemory,
    decode_memory,
)
from replicator.identifiers import LOG_END_KEY, TopicPartition, checkpoints_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.logs.compacted_log import LogTail
from replicator.kafka.logs.topic_lookup import OnWait
from replicator.policy.capacity.memory_shares import LaneMemory
from replicator.wire.requests.produce_one import end_by_a_write

_ATTEMPT_SECONDS = 5.0
_JOIN_SECONDS = 10.0
_PAUSE_SECONDS = 0.1
_REFUSALS = (NotAuthorizedError, AuthenticationFailedError)

AHEAD_SECONDS = 10.0
"""How long to connect ahead to a cluster; the lane copies on meanwhile."""


class BatchClients:
    """Connections to the source and the target, and the session between them."""

    record_by_record = False
    needs_whole_answers = False

    def __init__(
        self, spec: LaneSpec, context: LaneContext, bounded_copy: BoundedCopy | None = None
    ) -> None:
        """Nothing is sent to a broker before ``fence_last_owner``.

        A bounded copy has a transactional id of its own.
        """
        self.spec = spec
        self.opened_with = OpenedWith(spec.source, spec.target)
        self._context = context
        self._transactional = spec.settings.transactional
        client_id = lane_client_id(spec)
        own_id = writer_id(spec, bounded_copy)
        self._own = None if own_id is None else OwnTransaction(own_id, self._abort_in)
        self._transactions = Transactions(
            spec.target,
            client_id=client_id,
            transactional_id=own_id,
            timeout_seconds=TRANSACTION_SECONDS,
        )
        self._source_admin = ClusterAdmin(spec.source, client_id=client_id)
        self._loop = IoLoop(context.clock)
        size = session_size(spec)
        line, self.target_seconds = size.line, size.target_seconds
        self.memory: LaneMemory | None = size.memory
        self._connections = line.connections
        self._checkpoints: LogTail | None = None
        self._registered_at = 0.0
        self.unseen: UnseenProducer | None = None
        self._reader = SourceReader(
            spec.source,
            self._loop,
            client_id=client_id,
            quota=context.source_quota,
            rack=dict(spec.source.kafka).get("client.rack", ""),
            connections=line.connections,
            first_bytes=line.first_fetch_bytes,
            pace_seconds=(
                COMMITTED_FETCH_PACE_SECONDS if self._transactional else FETCH_PACE_SECONDS
            ),
        )
        self._writer = TargetWriter(
            spec.target,
            self._loop,
            client_id=client_id,
            transactional_id=own_id,
            members=TransactionMembers(
                lambda partitions, patient: self._transactions.join(
                    partitions, _JOIN_SECONDS, patient=patient
                ),
                ahead=line.joins_ahead,
                always=(checkpoints_topic(spec.topology, spec.source.alias), spec.lane),
            ),
            quota=context.target_quota,
        )
        self._registry = registry_of_source(
            spec.source, spec.topology, blocked=spec.settings.blocked, client_id=client_id,
            on_grown=self._remember,
        )  # fmt: skip
        self._progress = progress_beside(spec, context)
        table: PartitionTable = {}
        events = SourceEvents(
            table,
            on_problem=context.problems.note,
            on_failure=lambda state, error: context.on_failure(state, "source", error),
        )
        unit = BatchUnit(
            writer=self._writer,
            transactions=self._transactions,
            transactional=self._transactional,
            checkpoints=(checkpoints_topic(spec.topology, spec.source.alias), spec.lane),
            turn=self._loop.turn,
            counters=context.counters,
            clock=context.clock,
            give_up=context.give_up,
            on_flow=context.on_flow,
            register=self._register,
            confirm=lambda states: context.changed_logs.confirm(
                states, self._writer.brokers.leaders
            ),
        )
        self.session = BatchSession(
            loop=self._loop,
            reader=self._reader,
            writer=self._writer,
            table=table,
            events=events,
            unit=unit,
            context=context,
            settings=spec.settings,
            guard=ReturnGuard(
                self._registry.source_of,
                blocked=spec.settings.blocked,
                arrivals=spec.settings.arrivals,
            )
            if spec.settings.returns
            else None,
            count=None if bounded_copy is None else bounded_copy.count_batch,
            line=line,
            progress=self._progress,
            outstanding_bytes=size.memory.unsent_bytes,
        )

    def serves(self, spec: LaneSpec) -> bool:
        """Whether other work fits this session: any does, as far as memory goes; too large batches are split."""
        return not holds_too_much(self.spec, spec)

    def connect_ahead(self) -> None:
        """Connects to the coordinator and to the partitions' leaders, and reads the checkpoints up to now.

        The loop is turned here until the lane has these clients, and in the lane's thread from then on.

        Raises:
            ReplicatorError: a cluster does not answer, or refuses us.
        """
        spec = self.spec
        self._transactions.connect(AHEAD_SECONDS)
        read = {work.topic for work in spec.work}
        written = {work.target_topic for work in spec.work}
        written.add(checkpoints_topic(spec.topology, spec.source.alias))
        self._loop.connect(
            (
                (self._reader.brokers, read, self._connections),
                (self._writer.brokers, written, 1),
            ),
            AHEAD_SECONDS,
        )
        self._checkpoints = lane_tail(spec, client_id=lane_client_id(spec))
        self._checkpoints.load(timeout_seconds=30.0, known_to_exist=True)

    def fence_last_owner(self, stopping: Callable[[], bool]) -> bool:
        """Makes this the only writer of the lane; False when the lane had to stop meanwhile.

        Raises:
            ReplicatorError: the target refuses, or did not answer for CONNECTED_SECONDS.
        """
        began = self._context.clock.monotonic()
        while not stopping():
            try:
                self._transactions.take_over(_ATTEMPT_SECONDS)
            except ReplicatorError as error:
                waited = self._context.clock.monotonic() - began
                # A refusal is told at once, and tried again with the next session: it does not pass within moments.
                if not error.retriable or isinstance(error, _REFUSALS):
                    raise
                if waited >= CONNECTED_SECONDS:
                    raise UnreachableError(
                        f"no transaction coordinator of the target answers: {error.message}",
                        subject=f"cluster:{self.spec.target.alias}",
                        remedy="Check that the target's brokers are up and reachable.",
                    ) from error
                self._context.problems.on_failure(error)
                self._context.clock.sleep(_PAUSE_SECONDS)
            else:
                self.session.unit.adopt_identity()
                return True
        return False

    def read_checkpoints(
        self, open_index: OpenIndex | None, on_wait: OnWait
    ) -> dict[TopicPartition, Checkpoint]:
        """What the last owner stored; to be read only after it was fenced."""
        tail, self._checkpoints = self._checkpoints, None
        records = read_lane_records(
            self.spec,
            client_id=lane_client_id(self.spec),
            tail=tail,
            on_wait=on_wait,
            own=self._own,
            end_of=self.end_of,
        )
        if open_index is not None:
            self.session.unit.index = open_index(records)
        if self.spec.settings.returns:
            self._registry.expect(decode_memory(records))
            self._registry.read()
        checkpoints = decode_checkpoints(records)
        self.unseen = self._not_seen(checkpoints)
        return checkpoints

    def _not_seen(self, checkpoints: Mapping[TopicPartition, Checkpoint]) -> UnseenProducer | None:
        """The lane's id, where copying record by record wrote under it: who met it then took it for a stranger's."""
        identity = self._transactions.identity
        known = {each.producer for each in checkpoints.values()}
        # A range goes on under an id of its own, and its checkpoint may be of an attempt by records.
        in_range = any(work.in_range for work in self.spec.work)
        wrote = any(
            each.records if in_range else each.copied_by_lanes for each in checkpoints.values()
        )
        if identity.epoch > 0 and wrote and identity.producer_id not in known:
            return UnseenProducer(identity.producer_id, self._registered_at + SEEN_SECONDS)
        return None

    def learn_leaders(self, topics: set[str]) -> None:
        """Asks who leads them and what their ids are now, beside everything else."""
        self._reader.brokers.leaders.follow(topics)
        self._reader.brokers.leaders.refresh()

    def read_from(self, states: Iterable[PartitionState]) -> None:
        """Reads on at each partition's position; the source is told the epoch of the record before."""
        for state in states:
            self._reader.read_from(state.key, state.position, state.record_epoch)

    def stop_reading(self, states: Iterable[PartitionState]) -> None:
        """Reads these partitions no longer."""
        self._reader.readings.remove([state.key for state in states])

    def replaced(self, _error: Exception) -> bool:
        """Whether another owner took over: here every answer that says so is a FencedError already."""
        return False

    def answers(self, side: str) -> bool:
        """Whether the cluster on that ``side`` answers now."""
        if side == "source":
            return self._reader.reached
        return self._writer.brokers.failure is None and self._writer.problem is None

    def arriving(self) -> Collection[TopicPartition]:
        """Partitions of which a part of an answer has come, and the rest takes long."""
        return self._reader.arriving(self._context.clock.monotonic())

    def require_brokers(self, _read: int) -> None:
        """Nothing: our protocol client asks its bootstrap servers each time."""

    def decide(
        self,
        spec: LaneSpec,
        states: set[PartitionState],
        stored: Mapping[tuple[str, int], Checkpoint],
        *,
        on_failure: OnFailure,
    ) -> dict[PartitionState, StartDecision]:
        """Asks the source about each partition; those it cannot answer for are left out, and reported."""
        index = self.session.unit.index
        targets = look_at_targets(
            spec, states, stored,
            client_id=lane_client_id(spec), changed=self._context.changed_logs,
            # Under at-least-once records may stand there twice.
            count=CountedCopies(
                spec, states, stored, index,
                client_id=lane_client_id(spec), abort_in=self._abort_in,
            )
            if index is not None and self._transactional
            else None,
        )  # fmt: skip
        at_ms = round(self._context.clock.now() * 1000)
        try:
            return decide_starts(
                spec, states, stored, self._source_admin, targets, at_ms=at_ms,
                on_failure=on_failure,
            )  # fmt: skip
        finally:
            self._source_admin.close()

    def stable_ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Up to where committed records can be read at the source; without those it cannot answer for."""
        try:
            return self._source_admin.known_offsets(keys, at="latest")
        finally:
            self._source_admin.close()

    def show_end(self) -> None:
        """The lane has committed and ends: its last positions are shown, if that takes less than a second."""
        self._progress.show_end(self.session.states)

    def close(self) -> None:
        """Closes without waiting for anything: what is not committed is not done."""
        self._progress.close()
        self._loop.close()
        self._writer.release_all()
        self._transactions.close()
        self._registry.close()
        self._source_admin.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def end_of(self, place: TopicPartition) -> int:
        """Where a log of the target ends, by a write."""
        return end_by_a_write(
            self.spec.target, *place, key=LOG_END_KEY, timeout_seconds=WRITTEN_SECONDS
        )

    def _abort_in(self, target: TopicPartition) -> None:
        """Ends what the lane has open in a target partition without its coordinator's knowledge."""
        self.session.unit.commit()
        self._transactions.abort_in([target], _JOIN_SECONDS)
        self.session.unit.adopt_identity()

    def _register(self, identity: ProducerIdentity) -> None:
        spec = self.spec
        register(
            spec.target,
            spec.topology,
            RegisteredProducer(
                identity.producer_id, str(spec.source.alias), str(spec.target.alias), spec.link,
                identity.epoch, round(self._context.clock.now() * 1000),
            ),
        )  # fmt: skip
        self._registered_at = self._context.clock.monotonic()

    def _remember(self, memory: RegistryMemory) -> None:
        self.session.unit.remember(memory.stored())
