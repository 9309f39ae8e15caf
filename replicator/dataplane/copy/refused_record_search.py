"""Finding the records a target refuses, and putting exactly those into quarantine.

A broker refuses a batch whole and does not say which record is at fault. So the range that failed is
copied once more, slowly: one record a batch, every delivery reported. A record that is refused by
itself is at fault; the unit is aborted and written again without it, with its quarantine record in its
place and in the same transaction. Then the lane goes back to full speed.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import cast

from replicator.dataplane.copy.delivery_errors import PURGED, RECORD_REFUSALS
from replicator.dataplane.copy.engine_protocol import CopyStep, Engine, Refusal
from replicator.dataplane.copy.progress_unit import ProgressUnit
from replicator.dataplane.copy.source_message import ProducedHeaders, SourceMessage
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.transport.delivery import OnDelivery
from replicator.formats.left_out import LeftOut
from replicator.identifiers import HOPS_HEADER
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError, KafkaException, Message, Producer

RETRY_BATCH_RECORDS = 200
RETRY_POLL_SECONDS = 0.1
_FLUSH_SECONDS = 30.0
_REPORT_SECONDS = 0.2
_UNEXPLAINED = 5
"""How often a unit is tried again without a culprit. librdkafka (2.16) goes on counting behind a
refused record after the abort, so that the next transaction can fail once for its sequence numbers."""

_NOT_AT_FAULT = PURGED | {codes.INVALID_DIFFERENT_RECORD}

Origin = tuple[str, int, int]


class AttributingProducer:
    """Stands between an engine and the real producer and knows which source record each write is.

    Attributes:
        current: origin of the record the engine is about to write.
        failures: refused origins of this attempt, with the broker's error.
        broken: why the client took no more records in this attempt, if so.
        bare: origins whose record fits only without our header.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.current: Origin | None = None
        self.failures: dict[Origin, KafkaError] = {}
        self.broken: KafkaError | None = None
        self.without_header: set[Origin] = set()

    def produce(  # noqa: PLR0917  the client's own positional form, as the engines use it
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        callback: OnDelivery | None,
        _on_delivery: None,
        timestamp: int,
        headers: ProducedHeaders,
        /,
    ) -> None:
        """Same positional form as the client's, as the engines use it."""
        origin = self.current
        if origin in self.without_header:
            pairs = list(headers.items()) if isinstance(headers, dict) else headers or []
            headers = [pair for pair in pairs if pair[0] != HOPS_HEADER] or None

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None and origin is not None and error.code() not in _NOT_AT_FAULT:
                self.failures.setdefault(origin, error)
            if callback is not None:
                callback(error, message)

        try:
            # As `callback`: given as `on_delivery` beside a `callback` of None it is not called.
            self._producer.produce(
                topic, value, key, partition, delivered, None, timestamp, headers
            )
        except KafkaException as error:
            # Once a record of a transaction has failed the client takes no more of them: the
            # failure itself is still to be reported.
            self.broken = error.args[0]

    def poll(self, timeout: float, /) -> int:
        """Serves delivery reports."""
        return self._producer.poll(timeout)


class RefusedRecordFinder:
    """Copies a batch as one unit, with its refused records in quarantine."""

    def __init__(
        self,
        engine: Engine,
        *,
        attributed: AttributingProducer,
        table: PartitionTable,
        unit: ProgressUnit,
        cyclic: bool,
        one_by_one: bool,
    ) -> None:
        """``engine`` writes through ``attributed``, which writes with the producer of the unit.

        ``one_by_one`` waits for each record: without transactions none may overtake a refused one.
        """
        self._engine = engine
        self._attributed = attributed
        self._table = table
        self._unit = unit
        self._cyclic = cyclic
        self._one_by_one = one_by_one

    def copy(self, messages: Sequence[SourceMessage]) -> Iterator[CopyStep]:
        """Copies and commits the batch in units that end behind a refused record.

        Raises:
            KafkaException: for an error that is not a record's fault.
        """
        rest = messages
        while rest:
            rest = rest[(yield from self._copy_unit(rest)) :]

    def _copy_unit(self, messages: Sequence[SourceMessage]) -> Generator[CopyStep, None, int]:
        """Copies and commits the first messages; returns how many."""
        attributed = self._attributed
        refused: dict[Origin, KafkaError] = {}
        attributed.without_header = set()
        before = {
            state: _saved(state)
            for by_partition in self._table.values()
            for state in by_partition.values()
        }
        unit = messages
        unexplained = 0
        while True:
            error = yield from self._attempt(unit, refused)
            if error is None:
                self._unit.omitted_headers(len(attributed.without_header - refused.keys()))
                return len(unit)
            failures = attributed.failures
            if not failures:
                unexplained += 1
                if unexplained > _UNEXPLAINED or not error.txn_requires_abort():
                    raise KafkaException(error)
            self._unit.abort()
            for state, saved in before.items():
                _restore(state, saved)
            self._classify(failures, refused)
            for place, message in enumerate(unit):
                if _origin(message) in failures:
                    # What comes behind waits, or many refusals would copy the batch many times.
                    unit = unit[: place + 1]
                    break

    def _attempt(
        self, messages: Sequence[SourceMessage], refused: dict[Origin, KafkaError]
    ) -> Generator[CopyStep, None, KafkaError | None]:
        """Writes and commits; returns None when that was done, else what the client said."""
        attributed = self._attributed
        attributed.failures = {}
        attributed.broken = None
        self._unit.begin()
        for message in messages:
            origin = _origin(message)
            if origin is not None and origin in refused:
                yield from self._refusal(message, origin, refused[origin])
            else:
                attributed.current = origin
                for step in self._engine.copy([message]):
                    if isinstance(step, Refusal):
                        attributed.current = None  # its quarantine record is written next
                    yield step
            if self._one_by_one:
                self._unit.producer.flush(_FLUSH_SECONDS)
                attributed.broken = next(iter(attributed.failures.values()), None)
            if attributed.broken is not None:
                self._unit.producer.poll(_REPORT_SECONDS)
                return attributed.broken
        # One that was refused all the same left no copy.
        bare = attributed.without_header - refused.keys()
        for topic, partition, offset in bare & {_origin(each) for each in messages}:
            self._forget_copy(topic, partition, offset)
        try:
            self._unit.commit()
        except KafkaException as error:
            return cast("KafkaError", error.args[0])
        return None

    def _forget_copy(self, topic: str, partition: int, offset: int) -> None:
        """A copy without our header cannot be found again by its source offset, nor be told from other writers' records."""
        state = self._table.get(topic, {}).get(partition)
        if state is not None:
            state.target.last_copied = -1
            state.left_out = state.left_out.behind(offset + 1)

    def _refusal(
        self, message: SourceMessage, origin: Origin, error: KafkaError
    ) -> Iterator[CopyStep]:
        state = self._table.get(origin[0], {}).get(origin[1])
        self._attributed.current = None
        if state is not None and not state.problem and not state.needs_check:
            yield Refusal(state, message, error.name(), error.str())

    def _classify(
        self, failures: dict[Origin, KafkaError], refused: dict[Origin, KafkaError]
    ) -> None:
        for origin, error in failures.items():
            if error.code() not in RECORD_REFUSALS:
                raise KafkaException(error)
            only_header = (
                error.code() == KafkaError.MSG_SIZE_TOO_LARGE
                and not self._cyclic
                and origin not in self._attributed.without_header
            )
            if only_header:
                self._attributed.without_header.add(origin)
            else:
                refused[origin] = error


_Saved = tuple[int, int, int, int, int, int, str, str, LeftOut]


def _saved(state: PartitionState) -> _Saved:
    return (
        state.position, state.leader_epoch, state.records, state.bytes, state.dropped, state.quarantined,
        state.problem, state.detail, state.left_out,
    )  # fmt: skip


def _restore(state: PartitionState, saved: _Saved) -> None:
    (
        state.position, state.leader_epoch, state.records, state.bytes, state.dropped, state.quarantined,
        state.problem, state.detail, state.left_out,
    ) = saved  # fmt: skip


def _origin(message: SourceMessage) -> Origin | None:
    if message.error() is not None:
        return None
    return message.topic(), message.partition(), message.offset()
