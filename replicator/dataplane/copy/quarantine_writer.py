"""Writes refused records into the quarantine topic, or stops their partition, by policy."""

from collections.abc import Callable

from replicator.clock import Clock
from replicator.dataplane.copy.engine_protocol import Refusal
from replicator.dataplane.copy.quarantine_record import (
    QuarantineRecord,
    quarantine_id,
    quarantine_record,
)
from replicator.dataplane.copy.source_message import RecordSink
from replicator.dataplane.progress.first_writes import FirstWrites
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.identifiers import quarantine_topic
from replicator.kafka.clients.client import KafkaError
from replicator.kafka.logs.producer_calls import produce_when_room

_RAW_FETCH_SECONDS = 10.0
_ANY_PARTITION = -1

OnFailed = Callable[[KafkaError | None, object], None]


class QuarantineWriter:
    """Used by the lane's thread only; outlives the lane's sessions.

    It remembers records whose value does not even fit into the quarantine topic: those are kept
    without the value (the source still has it), rather than stopping everything behind them.
    """

    def __init__(self, spec: LaneSpec, *, clock: Clock) -> None:
        self._flow = spec.pair
        self._link = spec.link
        self._source = spec.source
        self._topic = quarantine_topic(spec.topology, spec.source.alias)
        self._policy = spec.settings.on_record_error
        self._clock = clock
        self._too_large: set[str] = set()

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
        """
        state = refusal.state
        offset = refusal.message.offset()
        if self._policy == "stop" and state.retry_offset != offset:
            state.problem = "TARGET_REFUSES"
            state.detail = f"offset {offset}: {refusal.error}"
            return False
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
            if error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                self._too_large.add(identity)
            on_failed(error, message)

        report = first_writes.report_for(self._topic, _ANY_PARTITION, delivered)
        # As `callback`: given as `on_delivery` beside a `callback` of None it is not called.
        produce_when_room(
            producer, self._topic, record.value, record.key, _ANY_PARTITION, report, None, 0,
            record.headers,
        )  # fmt: skip
        first_writes.wait_after(self._topic, _ANY_PARTITION)  # it has only one

    def _id(self, refusal: Refusal) -> str:
        state = refusal.state
        return quarantine_id(self._flow, state.topic, state.partition, refusal.message.offset())
