"""Opening what one session of a lane works with, and wiring it together."""

from collections.abc import Callable, Mapping

from replicator.clock import Clock
from replicator.dataplane.copy.delivery_errors import RECORD_REFUSALS
from replicator.dataplane.copy.engine_protocol import Engine
from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.copy.records_engine import RecordsEngine
from replicator.dataplane.copy.refused_record_search import RefusedRecordFinder
from replicator.dataplane.copy.rewrite import Rewriter, load_transforms
from replicator.dataplane.copy.source_message import RecordSink
from replicator.dataplane.lane.bounded_copy import BoundedCopy
from replicator.dataplane.lane.idle_poller import Rest
from replicator.dataplane.lane.lane_throttle import LaneThrottle
from replicator.dataplane.lane.session import Session
from replicator.dataplane.lane.session_clients import LaneClients, batch_bytes, lane_client_id
from replicator.dataplane.progress.commit import (
    AcknowledgedCommitter,
    CheckpointWriter,
    TransactionalCommitter,
)
from replicator.dataplane.progress.first_writes import FirstWrites, transaction_failed
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.identifiers import checkpoints_topic, lane_transactional_id, progress_group
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.client import KafkaError, open_consumer, open_producer
from replicator.kafka.settings import consumer_config, producer_config
from replicator.kafka.topic_ids import watch_topic_ids

COMMITTED_LINGER = 0.02
"""Seconds a batch may wait to fill inside a transaction: the commit sends it off anyway, and larger
batches save a quarter of the CPU on both sides."""

DIRECT_LINGER = 0.001
"""Without transactions nothing else sends a batch off, so this is latency."""

QUEUE_BYTES = 48 * 1024 * 1024
QUEUE_RECORDS = 100_000
FETCH_AHEAD_RECORDS = 20_000
FETCH_BYTES = 2 * 1024 * 1024
"""What a lane may hold on each side: as fast as larger queues, at half the memory (measured)."""

FETCH_WAIT_SECONDS = 2.0
"""How long a broker holds a fetch that finds nothing; records end the wait at once. Longer costs less
while idle, and delays a partition that is added to an idle lane by as much."""

ERRAND_FETCH_WAIT_SECONDS = 0.02
"""The same for a range: where it ends in markers, only a fetch that finds nothing tells its end."""

LARGEST_RECORD_BYTES = 1_000_000_000


def open_clients(
    spec: LaneSpec,
    *,
    clock: Clock,
    figures: LaneCounters,
    flow_control: LaneThrottle,
    quarantine: QuarantineWriter,
    careful_until: Mapping[tuple[str, int], int],
    examine: Callable[[set[PartitionState]], None],
    on_problem: Callable[[str, KafkaError | None], None],
    give_up: Callable[[], bool],
    errand: BoundedCopy | None = None,
    rest: Rest | None = None,
) -> LaneClients:
    """Opens the clients of a session; nothing is sent to a broker before ``take_over``.

    An errand has a transactional id of its own, and always writes in transactions.

    Raises:
        ReplicatorError: for settings or secrets that cannot be used.
    """
    client_id = lane_client_id(spec)
    rewriter = Rewriter(
        blocked=spec.settings.blocked,
        arrivals=spec.settings.arrivals,
        filters=spec.settings.filters,
        transforms=load_transforms(spec.settings.transforms),
    )
    careful = bool(careful_until)
    transactional = spec.settings.delivery == "exactly-once"
    own_id = lane_transactional_id(spec.topology, spec.source.alias, spec.target.alias, spec.lane)
    sessions: list[Session] = []

    def delivered(error: KafkaError | None, message: object) -> None:
        sessions[0].deliveries.report(error, message)

    def learned_topic_id(topic: str, topic_id: str) -> None:
        sessions[0].on_topic_id(topic, topic_id)

    consumer_settings = {
        **consumer_config(
            spec.source,
            follower_reads=True,
            client_id=client_id,
            group_id=progress_group(spec.topology, spec.target.alias),
            partition_fetch_bytes=FETCH_BYTES,
            queue_bytes=QUEUE_BYTES,
            fetch_wait_seconds=ERRAND_FETCH_WAIT_SECONDS if errand else FETCH_WAIT_SECONDS,
        ),
        "queued.min.messages": FETCH_AHEAD_RECORDS,
        "error_cb": lambda error: on_problem("source", error),
    }
    consumer = open_consumer(watch_topic_ids(consumer_settings, learned_topic_id))
    transactional_id = (errand.writer if errand else own_id) if transactional else None
    producer = open_producer(
        {
            **producer_config(
                spec.target,
                client_id=client_id,
                transactional_id=transactional_id,
                linger_seconds=COMMITTED_LINGER if transactional else DIRECT_LINGER,
                queue_bytes=QUEUE_BYTES,
                requests_in_flight=5,
            ),
            "queue.buffering.max.messages": QUEUE_RECORDS,
            # The broker decides what is too large, not the client: only then is it a fact.
            "message.max.bytes": LARGEST_RECORD_BYTES,
            "batch.size": batch_bytes(spec),
            **({"batch.num.messages": 1} if careful else {}),
            # Nothing behind a refused batch may be written before the lane has seen the refusal;
            # inside a transaction nothing is.
            **({} if careful or transactional else {"enable.gapless.guarantee": True}),
            # In a transaction the commit tells of every failure, and a report per record costs; the
            # few that the index asks for must be told of success.
            **(
                {"delivery.report.only.error": False}
                if transactional
                else {"on_delivery": delivered, "delivery.report.only.error": True}
            ),
            "error_cb": lambda error: on_problem("target", error),
        }
    )
    first_writes = FirstWrites(
        producer,
        clock=clock,
        transactional=transactional,
        failed=lambda: (
            transaction_failed(producer) if transactional else sessions[0].deliveries.failed
        ),
        give_up=give_up,
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
            producer=producer, writer=writer, clock=clock, give_up=give_up
        )
    else:
        committer = AcknowledgedCommitter(
            producer=producer,
            writer=writer,
            clock=clock,
            give_up=give_up,
            failed=lambda: sessions[0].deliveries.failed,
        )
    session = Session(
        consumer=consumer,
        producer=producer,
        committer=committer,
        first_writes=first_writes,
        table={},
        dirty=set(),
        figures=figures,
        flow_control=flow_control,
        clock=clock,
        commit_interval_seconds=spec.settings.commit_interval_seconds,
        eager=transactional,
        examine=examine,
        quarantine=lambda refusal: quarantine.handle(
            refusal, producer, first_writes, on_failed=delivered
        ),
        on_problem=on_problem,
        give_up=give_up,
        careful=careful,
        rest=rest,
    )
    sessions.append(session)

    def use(engine: Engine) -> None:
        session.use(engine if errand is None else errand.engine(engine, session.table))

    def records_engine(sink: RecordSink) -> Engine:
        return RecordsEngine(
            producer=sink,
            routes=session.table,
            dirty=session.dirty,
            suspects=session.suspects,
            rewriter=rewriter,
            outcome=figures.outcome,
            begin=session.begin,
            wait_for_room=session.wait_for_room,
            refuse=session.refuse,
            on_event=session.on_event,
            on_run=figures.run,
            report_for=session.report_for,
            on_first=session.on_first,
            provenance=spec.settings.provenance,
            source_alias=spec.source.alias,
        )

    if careful:
        use(
            RefusedRecordFinder(
                engine_for=records_engine,
                producer=producer,
                table=session.table,
                dirty=session.dirty,
                begin=session.begin,
                abort=session.abort,
                commit=session.commit,
                refuse=session.refuse,
                refusals=RECORD_REFUSALS,
                cyclic=spec.settings.cyclic,
                one_by_one=not transactional,
                on_omitted_header=figures.omitted,
            )
        )
    else:
        use(records_engine(producer))
    try:
        admin = ClusterAdmin(spec.source, client_id=client_id)
    except ReplicatorError:
        consumer.close()
        raise
    return LaneClients(
        spec=spec,
        consumer=consumer,
        producer=producer,
        source_admin=admin,
        session=session,
        clock=clock,
        careful=careful,
    )
