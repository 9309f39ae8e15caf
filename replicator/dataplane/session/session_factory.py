"""Opening what one session of a lane works with, and wiring it together."""

from dataclasses import dataclass, replace
from functools import partial

from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.copy.delivery_errors import DeliveryErrors
from replicator.dataplane.copy.engine_protocol import Engine
from replicator.dataplane.copy.progress_unit import ProgressUnit
from replicator.dataplane.copy.records_engine import RecordsEngine
from replicator.dataplane.copy.refused_record_search import (
    AttributingProducer,
    RefusedRecordFinder,
)
from replicator.dataplane.copy.rewrite import Rewriter, load_transforms
from replicator.dataplane.progress.commit import (
    AcknowledgedCommitter,
    CheckpointWriter,
    TransactionalCommitter,
)
from replicator.dataplane.progress.first_writes import FirstWrites, transaction_failed
from replicator.dataplane.progress.partition_state import PartitionTable
from replicator.dataplane.progress.run_reports import RunReports
from replicator.dataplane.session.bounded_copy import BoundedCopy, writer_id
from replicator.dataplane.session.closing_beside import close_beside
from replicator.dataplane.session.consumer_and_producer import (
    FETCH_BYTES,
    FETCHES_BYTES,
    open_lane_consumer,
    open_lane_producer,
)
from replicator.dataplane.session.lost_clients import LostClients
from replicator.dataplane.session.paced_consumer import LaneConsumer, PacedConsumer
from replicator.dataplane.session.progress_beside import ProgressBeside, progress_beside
from replicator.dataplane.session.returned_records import ReturnedRecords
from replicator.dataplane.session.session import Session
from replicator.dataplane.session.session_clients import LaneClients
from replicator.dataplane.session.source_events import SourceEvents
from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.errors import ReplicatorError
from replicator.identifiers import checkpoints_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import Producer
from replicator.kafka.clients.metadata_log import MetadataLog
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.policy.capacity.line_settings import NEAR_SECONDS, line_settings
from replicator.policy.capacity.memory_shares import lane_memory
from replicator.wire.probes.broker_count import broker_count
from replicator.wire.probes.library_connections import LibraryConnections
from replicator.wire.probes.line import round_trip_seconds


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What exists before the clients, because the clients call it."""

    table: PartitionTable
    events: SourceEvents
    deliveries: DeliveryErrors
    record_by_record: bool
    coordinator: CoordinatorWatch
    metadata: MetadataLog

    @classmethod
    def of(cls, spec: LaneSpec, context: LaneContext, *, record_by_record: bool) -> "SessionParts":
        """New and empty."""
        table: PartitionTable = {}
        metadata = MetadataLog()
        return cls(
            table,
            SourceEvents(
                table,
                on_problem=context.problems.note,
                on_failure=lambda state, error: context.on_failure(state, "source", error),
            ),
            DeliveryErrors(transactional=spec.settings.transactional, attributed=record_by_record),
            record_by_record,
            CoordinatorWatch(metadata=metadata),
            metadata,
        )


def open_clients(
    spec: LaneSpec,
    context: LaneContext,
    *,
    record_by_record: bool,
    bounded_copy: BoundedCopy | None = None,
) -> LaneClients:
    """Opens the clients of a session; nothing is sent to a broker before ``fence_last_owner``.

    A bounded copy has a transactional id of its own.

    Raises:
        ReplicatorError: for settings or secrets that cannot be used.
    """
    source_seconds, target_seconds = (
        round_trip_seconds(spec.source),
        round_trip_seconds(spec.target),
    )
    line = line_settings(
        source_seconds=source_seconds,
        target_seconds=target_seconds,
        fetch_bytes=FETCHES_BYTES,
        partition_bytes=FETCH_BYTES,
        commit_interval_seconds=spec.settings.commit_interval_seconds,
    )
    memory = lane_memory(
        spec.memory,
        brokers=broker_count(spec.source, client_id=lane_client_id(spec)),
        line_seconds=source_seconds,
        partition_bytes=line.partition_bytes,
    )
    memory = replace(memory, answer_bytes=context.answers.answer_bytes(memory.answer_bytes))
    parts = SessionParts.of(spec, context, record_by_record=record_by_record)
    opened_with = OpenedWith(spec.source, spec.target)
    open_one = partial(
        open_lane_consumer,
        spec,
        context,
        on_topic_id=parts.events.on_topic_id,
        bounded=bounded_copy is not None,
        partition_fetch_bytes=context.answers.partition_bytes(line.partition_bytes),
        memory=memory,
    )
    plain = open_one()
    consumer: LaneConsumer = plain
    # On a long line answers are large by themselves, and a lane that looks for refused records asks for few.
    if source_seconds <= NEAR_SECONDS and not record_by_record and bounded_copy is None:
        open_paced = partial(open_one, paced=True)
        consumer = PacedConsumer(
            plain, open_paced=open_paced, close_paced=close_beside, clock=context.clock
        )
    own_id = writer_id(spec, bounded_copy)
    producer = open_lane_producer(
        spec,
        context,
        deliveries=parts.deliveries,
        coordinator=parts.coordinator,
        transactional_id=own_id,
        record_by_record=record_by_record,
        memory=memory,
        codec=context.crossing.of(line.codec),
    )
    returned = (
        ReturnedRecords(spec, client_id=lane_client_id(spec)) if spec.settings.returns else None
    )
    interval, progress = line.commit_interval_seconds, progress_beside(spec, context)
    lost = LostClients(spec.source, spec.target, consumer, producer, client_id=lane_client_id(spec))
    connections = LibraryConnections(far=target_seconds > NEAR_SECONDS)

    def give_up() -> bool:
        connections.suit(context.clock.monotonic())
        return context.give_up()

    def stepped(read: int) -> None:
        connections.suit(context.clock.monotonic())
        lost.stepped(read)

    session = wire_session(
        replace(spec, settings=replace(spec.settings, commit_interval_seconds=interval)),
        replace(context, give_up=lost.asked_in_waits(give_up)), parts, consumer=consumer, producer=producer, bounded_copy=bounded_copy,
        returned=returned, progress=progress,
    )  # fmt: skip
    try:
        admin = ClusterAdmin(spec.source, client_id=lane_client_id(spec))
    except ReplicatorError:
        consumer.close()
        raise
    return LaneClients(
        spec=spec,
        consumer=consumer,
        producer=producer,
        source_admin=admin,
        session=session,
        progress=progress,
        clock=context.clock,
        record_by_record=record_by_record,
        opened_with=opened_with,
        changed=context.changed_logs,
        memory=memory,
        target_seconds=target_seconds,
        returned=returned,
        writer_id=own_id,
        require_brokers=stepped,
    )


def wire_session(
    spec: LaneSpec,
    context: LaneContext,
    parts: SessionParts,
    *,
    consumer: LaneConsumer,
    producer: Producer,
    progress: ProgressBeside,
    bounded_copy: BoundedCopy | None = None,
    returned: ReturnedRecords | None = None,
) -> Session:
    """The session that works with these clients; they were opened with the callbacks of ``parts``."""
    unit = _progress_unit(spec, context, parts, producer, returned)
    engine = _engine(spec, context, parts, unit, returned)
    return Session(
        consumer=consumer,
        engine=engine if bounded_copy is None else bounded_copy.engine(engine, parts.table),
        table=parts.table,
        events=parts.events,
        unit=unit,
        context=context,
        settings=spec.settings,
        progress=progress,
        record_by_record=parts.record_by_record,
    )


def _progress_unit(
    spec: LaneSpec,
    context: LaneContext,
    parts: SessionParts,
    producer: Producer,
    returned: ReturnedRecords | None,
) -> ProgressUnit:
    clock, give_up, deliveries = context.clock, context.give_up, parts.deliveries
    transactional = spec.settings.transactional

    def failed() -> bool:
        return transaction_failed(producer) if transactional else deliveries.failed

    first_writes = FirstWrites(
        producer, clock=clock, transactional=transactional, failed=failed, give_up=give_up
    )
    writer = CheckpointWriter(
        producer=producer,
        first_writes=first_writes,
        topic=checkpoints_topic(spec.topology, spec.source.alias),
        lane=spec.lane,
        clock=clock,
    )
    committer: TransactionalCommitter | AcknowledgedCommitter
    if transactional:
        committer = TransactionalCommitter(
            producer=producer,
            writer=writer,
            coordinator=parts.coordinator,
            clock=clock,
            give_up=give_up,
            confirm=lambda states: context.changed_logs.confirm(states, parts.metadata),
        )
    else:
        committer = AcknowledgedCommitter(
            producer=producer, writer=writer, clock=clock, give_up=give_up, failed=failed
        )
    return ProgressUnit(
        producer=producer,
        sink=AttributingProducer(producer) if parts.record_by_record else producer,
        committer=committer,
        reports=RunReports(first_writes),
        deliveries=deliveries,
        counters=context.counters,
        clock=clock,
        give_up=give_up,
        transactional=transactional,
        confirm=(lambda: None) if returned is None else returned.confirm_none,
    )


def _engine(
    spec: LaneSpec,
    context: LaneContext,
    parts: SessionParts,
    unit: ProgressUnit,
    returned: ReturnedRecords | None,
) -> Engine:
    settings = spec.settings
    engine = RecordsEngine(
        producer=unit.sink,
        table=parts.table,
        rewriter=Rewriter(
            blocked=settings.blocked,
            arrivals=settings.arrivals,
            filters=settings.filters,
            transforms=load_transforms(settings.transforms),
            returned=returned,
        ),
        outcome=context.counters.outcome,
        reports=unit.reports,
        provenance=settings.provenance,
    )
    if not isinstance(unit.sink, AttributingProducer):
        return engine
    return RefusedRecordFinder(
        engine,
        attributed=unit.sink,
        table=parts.table,
        unit=unit,
        cyclic=settings.cyclic,
        one_by_one=not spec.settings.transactional,
    )
