"""The clients of one session of a lane, opened, wired together and closed as one."""

from collections.abc import Callable, Mapping

from replicator.clock import Clock
from replicator.dataplane.careful import CarefulCopier
from replicator.dataplane.checkpoint import Checkpoint, decode_checkpoints
from replicator.dataplane.commit import AcknowledgedCommitter, TransactionalCommitter
from replicator.dataplane.deliveries import RECORD_REFUSALS
from replicator.dataplane.engine import Engine
from replicator.dataplane.errand import Errand
from replicator.dataplane.figures import Figures
from replicator.dataplane.flow_control import FlowControl
from replicator.dataplane.indexing import Indexing, OpenIndex
from replicator.dataplane.positions import StartDecision
from replicator.dataplane.quarantine_writer import QuarantineWriter
from replicator.dataplane.records_engine import RecordsEngine
from replicator.dataplane.rewrite import Rewriter, load_transforms
from replicator.dataplane.route import Route
from replicator.dataplane.session import Session
from replicator.dataplane.source_message import RecordSink
from replicator.dataplane.spec import LaneSpec
from replicator.dataplane.takeover import decide_starts, read_lane_records
from replicator.errors import ReplicatorError, UnreachableError
from replicator.identifiers import checkpoints_topic, lane_transactional_id, progress_group
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.client import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    open_consumer,
    open_producer,
)
from replicator.kafka.settings import consumer_config, producer_config
from replicator.kafka.topic_ids import watch_topic_ids

Key = tuple[str, int]

CONNECTED_SECONDS = 60.0
"""How long a lane tries to reach the target before it says so and starts over."""


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
BATCH_BYTES = 1_000_000
"""Batches stay below the smallest limit of the lane's target topics, or they would be refused."""


class LaneClients:
    """A consumer on the source, a producer on the target, and the session between them."""

    def __init__(
        self,
        *,
        spec: LaneSpec,
        consumer: Consumer,
        producer: Producer,
        source_admin: ClusterAdmin,
        session: Session,
        clock: Clock,
        careful: bool,
    ) -> None:
        self.spec = spec
        self.consumer = consumer
        self.producer = producer
        self.session = session
        self.careful = careful
        self._clock = clock
        self._source_admin = source_admin

    def serves(self, spec: LaneSpec) -> bool:
        """Whether other work fits this session: its batches fit into the smallest target topic."""
        return batch_bytes(spec) >= batch_bytes(self.spec)

    def fence_last_owner(self, stopping: Callable[[], bool]) -> bool:
        """Makes this the only writer of the lane; False when told to stop meanwhile.

        Raises:
            KafkaException: when the target refuses.
            UnreachableError: when it does not answer for CONNECTED_SECONDS.
        """
        if self.spec.settings.delivery != "exactly-once":
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

    def read_checkpoints(self, open_index: OpenIndex | None) -> dict[Key, Checkpoint]:
        """What the last owner stored; to be read only after it was fenced.

        The index, where there is one, goes on from there: in transactions only, because delivery
        reports of every record would cost more than it is worth.
        """
        records = read_lane_records(self.spec, client_id=_client_id(self.spec))
        transactional = self.spec.settings.delivery == "exactly-once"
        if open_index is not None and transactional and not self.careful:
            self.session.indexing = Indexing(open_index(records), clock=self._clock)
        return decode_checkpoints(records)

    def learn_leaders(self, topics: set[str]) -> None:
        """Fetches metadata before partitions are assigned; the client waits half a second else."""
        try:
            if len(topics) > 3:
                self.consumer.list_topics(timeout=10.0)
            else:
                for topic in topics:
                    self.consumer.list_topics(topic, timeout=10.0)
        except KafkaException:
            return  # only a matter of speed: the client asks again by itself

    def answers(self, side: str) -> bool:
        """Whether a side that was silent answers now; asked only while it has a problem."""
        client = self.consumer if side == "source" else self.producer
        try:
            client.list_topics("__consumer_offsets", timeout=0.5)
        except KafkaException:
            return False
        return True

    def decide(
        self,
        spec: LaneSpec,
        routes: set[Route],
        stored: Mapping[tuple[str, int], Checkpoint],
    ) -> dict[Route, StartDecision]:
        """Asks the source where each route stands; routes it cannot answer for are left out."""
        return decide_starts(spec, routes, stored, self._source_admin)

    def close(self) -> None:
        """Closes without waiting for anything: what is not committed is not done."""
        try:
            self.producer.purge(in_queue=True, in_flight=True, blocking=False)
            self.producer.poll(0)
        except KafkaException:
            pass  # a fenced or fatal producer refuses even that; closing is all that is left
        self.consumer.close()
        self._source_admin.close()


def open_clients(
    spec: LaneSpec,
    *,
    clock: Clock,
    figures: Figures,
    flow_control: FlowControl,
    quarantine: QuarantineWriter,
    careful_until: Mapping[tuple[str, int], int],
    examine: Callable[[set[Route]], None],
    on_problem: Callable[[str, KafkaError | None], None],
    give_up: Callable[[], bool],
    errand: Errand | None = None,
) -> LaneClients:
    """Opens the clients of a session; nothing is sent to a broker before ``take_over``.

    An errand has a transactional id of its own, and always writes in transactions.

    Raises:
        ReplicatorError: for settings or secrets that cannot be used.
    """
    client_id = _client_id(spec)
    rewriter = Rewriter(
        blocked=spec.settings.blocked,
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
    topic = checkpoints_topic(spec.topology, spec.source.alias)
    committer: TransactionalCommitter | AcknowledgedCommitter
    if transactional:
        committer = TransactionalCommitter(
            producer=producer, topic=topic, lane=spec.lane, clock=clock, give_up=give_up
        )
    else:
        committer = AcknowledgedCommitter(
            producer=producer, topic=topic, lane=spec.lane, clock=clock, give_up=give_up,
            failed=lambda: sessions[0].deliveries.failed,
        )  # fmt: skip
    session = Session(
        consumer=consumer,
        producer=producer,
        committer=committer,
        table={},
        dirty=set(),
        figures=figures,
        flow_control=flow_control,
        clock=clock,
        commit_interval_seconds=spec.settings.commit_interval_seconds,
        eager=transactional,
        examine=examine,
        quarantine=lambda refusal: quarantine.handle(refusal, producer, on_failed=delivered),
        on_problem=on_problem,
        give_up=give_up,
        careful=careful,
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
            provenance=spec.settings.provenance,
            source_alias=spec.source.alias,
        )

    if careful:
        use(
            CarefulCopier(
                engine_for=records_engine,
                producer=producer,
                table=session.table,
                dirty=session.dirty,
                begin=session.begin,
                abort=session.take_back,
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


def batch_bytes(spec: LaneSpec) -> int:
    """The largest batch that no target topic of the lane refuses for its size."""
    return min([BATCH_BYTES, *(work.max_message_bytes for work in spec.work)])


def _client_id(spec: LaneSpec) -> str:
    return f"replicator-{spec.topology}-{spec.source.alias}-{spec.target.alias}-lane-{spec.lane}"
