"""Writes refused records into the quarantine topic, or stops their partition, by policy."""

from collections.abc import Callable

from replicator.clock import Clock
from replicator.dataplane.copy.delivery_errors import RECORD_REFUSALS
from replicator.dataplane.copy.engine_protocol import Refusal
from replicator.dataplane.copy.quarantine_record import (
    QuarantineRecord,
    quarantine_id,
    quarantine_record,
)
from replicator.dataplane.copy.source_message import RecordSink
from replicator.dataplane.progress.first_writes import FirstWrites
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import BrokerRefusedError, PartitionsRefusedError, ReplicatorError
from replicator.identifiers import TopicPartition, quarantine_topic
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError
from replicator.kafka.logs.producer_calls import produce_when_room

_RAW_FETCH_SECONDS = 10.0
_ANY_PARTITION = -1
_ASKED_AGAIN_SECONDS = 60.0
"""How long the topic is trusted to take writes after the target said so."""

OnFailed = Callable[[KafkaError | None, object], None]


class QuarantineWriter:
    """Used by the lane's thread only; outlives the lane's sessions.

    It remembers records whose value does not even fit into the quarantine topic: those are kept
    without the value (the source still has it), rather than stopping everything behind them.

    Attributes:
        ask: raises where the quarantine topic takes no writes, or nobody says that it does, for the partition
            whose record is to go there; None asks nobody.
    """

    def __init__(self, spec: LaneSpec, *, clock: Clock) -> None:
        self.ask: Callable[[PartitionState], None] | None = None
        self._flow = spec.pair
        self._link = spec.link
        self._source = spec.source
        self._topic = quarantine_topic(spec.topology, spec.source.alias)
        self._policy = spec.settings.on_record_error
        self._clock = clock
        self._ask_at = float("-inf")
        self._too_large: set[str] = set()
        self._newest: dict[TopicPartition, int] = {}
        self._refused: dict[TopicPartition, tuple[TopicPartition, ReplicatorError]] = {}

    @property
    def place(self) -> TopicPartition:
        """Topic and partition on the target; it has only one."""
        return self._topic, 0

    def is_needed_by(self, state: PartitionState) -> bool:
        """Whether the partition has a record to put there that it has no stored progress past."""
        newest = self._newest.get(state.key)
        return newest is not None and state.committed <= newest

    def doubt(self) -> None:
        """The topic took no writes just now: it is asked about before the next record."""
        self._ask_at = float("-inf")

    def take_refused(self) -> PartitionsRefusedError | None:
        """The partitions of which the topic refused a record since the last call, also without its value."""
        refused, self._refused = self._refused, {}
        return PartitionsRefusedError(dict(refused.values())) if refused else None

    def handle(
        self,
        refusal: Refusal,
        producer: RecordSink,
        first_writes: FirstWrites,
        *,
        on_failed: OnFailed,
    ) -> bool:
        """Quarantines the record; False when the policy is to stop: the partition has a problem then.

        ``on_failed`` is called when the quarantine record itself is refused: its unit must not be stored.

        Raises:
            PartitionsRefusedError: the quarantine topic takes no writes; nothing is written. A transaction
                with the topic in it could not end, and would hold up the lane's other partitions.
        """
        state = refusal.state
        offset = refusal.message.offset()
        if self._policy == "stop" and state.retry_offset != offset:
            state.problem = "TARGET_REFUSES"
            state.detail = f"offset {offset}: {refusal.error}"
            return False
        self._refused.pop(state.key, None)
        self._newest[state.key] = max(offset, self._newest.get(state.key, -1))
        now = self._clock.monotonic()
        if self.ask is not None and now >= self._ask_at:
            self.ask(state)
            self._ask_at = now + _ASKED_AGAIN_SECONDS
        state.quarantined += 1
        self._produce(self._record(refusal), refusal, producer, first_writes, on_failed)
        return True

    def _record(self, refusal: Refusal) -> QuarantineRecord:
        raw = None
        if refusal.code == "HEADER_NAME":
            raw = self._raw(refusal)
        return quarantine_record(
            refusal,
            flow=self._flow,
            link=self._link,
            at_ms=int(self._clock.now() * 1000),
            raw=raw,
            keep_value=self._id(refusal) not in self._too_large,
        )

    def _raw(self, refusal: Refusal) -> bytes:
        """The record's own bytes; empty when the source does not give them in time."""
        from replicator.wire.requests.fetch_one import fetch_record_bytes

        state = refusal.state
        try:
            return fetch_record_bytes(
                self._source, state.topic, state.partition, refusal.message.offset(),
                timeout_seconds=_RAW_FETCH_SECONDS,
            )  # fmt: skip
        except ReplicatorError:
            return b""

    def _produce(
        self,
        record: QuarantineRecord,
        refusal: Refusal,
        producer: RecordSink,
        first_writes: FirstWrites,
        on_failed: OnFailed,
    ) -> None:
        identity = self._id(refusal)

        def delivered(error: KafkaError | None, message: object) -> None:
            if error is not None:
                self._note_refused(refusal.state, identity, error)
            on_failed(error, message)

        report = first_writes.report_for(self._topic, _ANY_PARTITION, delivered)
        # As `callback`: given as `on_delivery` beside a `callback` of None it is not called.
        produce_when_room(
            producer, self._topic, record.value, record.key, _ANY_PARTITION, report, None, 0,
            record.headers,
        )  # fmt: skip
        first_writes.wait_after(self._topic, _ANY_PARTITION)  # it has only one

    def _note_refused(self, state: PartitionState, identity: str, error: KafkaError) -> None:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE and identity not in self._too_large:
            self._too_large.add(identity)
        elif error.code() in RECORD_REFUSALS - {codes.INVALID_DIFFERENT_RECORD}:
            place = f"{state.topic}/{state.partition}"
            self._refused[state.key] = (
                (state.target_topic, state.partition),
                BrokerRefusedError(
                    f"{place} has a record for the quarantine topic: {self._topic} refuses it: {error.str()}",
                    subject=place,
                    remedy="Look at the topic's settings: max.message.bytes, cleanup.policy and "
                    "message.timestamp.*. The record is retried automatically.",
                ),
            )

    def _id(self, refusal: Refusal) -> str:
        state = refusal.state
        return quarantine_id(self._flow, state.topic, state.partition, refusal.message.offset())
