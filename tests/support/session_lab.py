"""Sessions of a lane between two clusters in memory, wired as the product wires them."""

from dataclasses import replace

from fake_kafka import FakeCluster, FakeConsumer, FakeProducer

from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.context.lane_throttle import LaneThrottle
from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_state import PartitionState, partition_table
from replicator.dataplane.session.session_factory import SessionParts, wire_session
from replicator.dataplane.takeover.seek import read_from
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec, PartitionWork
from replicator.errors import RecordRefusedError, ReplicatorError
from replicator.formats.checkpoint import decode_checkpoints
from replicator.identifiers import checkpoints_topic, quarantine_topic
from replicator.kafka.clients.client import KafkaException
from replicator.policy.capacity.broker_quota import BrokerQuota
from replicator.policy.values import StartFrom
from replicator.testing import ManualClock
from replicator.topology.plan import ClusterPlan

SETTINGS = LaneSettings(
    delivery="exactly-once",
    commit_interval_seconds=0.2,
    provenance="full",
    blocked=("west",),
    start_from=StartFrom(),
    on_record_error="quarantine",
    on_truncation="stop",
)
CHECKPOINTS = checkpoints_topic("lab", "east")
QUARANTINE = quarantine_topic("lab", "east")
TARGET_LIMIT = 1000


class NobodyWatchesLag:
    """In place of the group that shows progress: clusters in memory have none."""

    def show(self, states, now) -> None:
        """Nothing is due."""

    def show_end(self, states) -> None:
        """Nothing is shown."""

    def close(self) -> None:
        """Nothing is open."""


class SessionLab:
    """One lane over topic ``orders``; its sessions come one after the other, as a lane opens them.

    Attributes:
        session: the one that copies now.
        states: its partitions by number.
        examined: the partitions that were handed over to be checked.
    """

    def __init__(self, *, partitions: int = 1, queue_records: int = 100_000, **settings) -> None:
        self.source, self.target = FakeCluster(), FakeCluster()
        self.clock = ManualClock()
        self.counters = LaneCounters()
        self.examined: set[PartitionState] = set()
        self.failures: list[tuple[PartitionState, str, ReplicatorError]] = []
        self._queue_records = queue_records
        self.source.create_topic("orders", partitions=partitions)
        self.target.create_topic("orders", partitions=partitions, limit=TARGET_LIMIT)
        self.target.create_topic(CHECKPOINTS)
        self.target.create_topic(QUARANTINE)
        self.spec = LaneSpec(
            topology="lab",
            link="link",
            source=ClusterPlan("east", ("east:9092",)),
            target=ClusterPlan("west", ("west:9092",)),
            lane=0,
            layout_epoch=1,
            settings=replace(SETTINGS, **settings),
            work=tuple(PartitionWork("orders", n, "orders", "") for n in range(partitions)),
        )
        self._context = LaneContext(
            clock=self.clock,
            counters=self.counters,
            throttle=LaneThrottle(self.spec.throttle, now=0.0),
            quarantine=QuarantineWriter(self.spec, clock=self.clock),
            problems=ConnectionProblems(source="east", target="west"),
            source_quota=BrokerQuota("east"),
            target_quota=BrokerQuota("west"),
            give_up=lambda: False,
            on_flow=lambda: None,
            examine=self.examined.update,
            on_failure=lambda state, side, error: self.failures.append((state, side, error)),
        )

    def write(self, *values: bytes | None, partition: int = 0, timestamp: int = 1000) -> None:
        """Writes records to the source, outside of any transaction unless one is open."""
        producer = FakeProducer(self.source)
        for value in values:
            producer.produce("orders", value, b"k", partition, None, None, timestamp)
        producer.flush()

    def open(self, *, record_by_record: bool = False) -> None:
        """Opens a session that goes on from what is stored, as the lane's next owner would."""
        self.counters.roll_back()
        transactional = self.spec.settings.delivery == "exactly-once"
        parts = SessionParts.of(self.spec, self._context, record_by_record=record_by_record)
        self.consumer = FakeConsumer(self.source)
        producer = FakeProducer(
            self.target,
            transactional_id="lane-0" if transactional else None,
            on_delivery=parts.deliveries.report,
            queue_records=self._queue_records,
        )
        if transactional:
            producer.init_transactions()
        self.session = wire_session(
            self.spec, self._context, parts, consumer=self.consumer, producer=producer,
            progress=NobodyWatchesLag(),
        )  # fmt: skip
        stored, self.states = self.checkpoints(), {}
        for work in self.spec.work:
            state = PartitionState(work, source_alias="east", provenance="full")
            self.states[work.partition] = state
            found = stored.get(state.key)
            if found is not None:
                state.restore(found)
                state.position_epoch, state.record_end = found.position_epoch, found.record_end
            state.position = state.committed = 0 if found is None else found.offset
        parts.table.update(partition_table(list(self.states.values())))
        read_from(self.consumer, self.states.values())

    def step(self, times: int = 1) -> None:
        """Steps, each a commit interval after the last one."""
        for _ in range(times):
            self.session.step()
            self.clock.advance(0.25)

    def copy_all(self) -> None:
        """Runs sessions as a lane does until everything is copied and stored."""
        self.open()
        while True:
            try:
                self.step(6)
            except (RecordRefusedError, KafkaException):
                self.open(record_by_record=True)
                self.step(6)
            if not self._pending():
                return

    def checkpoints(self):
        """What is stored, by topic and partition."""
        newest = {each["key"]: each["value"] for each in self.target.records(CHECKPOINTS)}
        return decode_checkpoints(newest)

    def values(self, partition: int = 0) -> list[bytes | None]:
        """What a reader of committed records finds on the target."""
        return [each["value"] for each in self.target.records("orders", partition)]

    def quarantined(self) -> list[bytes | None]:
        return [each["value"] for each in self.target.records(QUARANTINE)]

    def _pending(self) -> bool:
        return any(
            not state.problem and state.committed < self.source.stable_end(*state.key)
            for state in self.states.values()
        )
