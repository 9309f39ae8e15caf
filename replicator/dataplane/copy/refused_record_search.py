"""Finding the records a target refuses, and putting exactly those into quarantine.

A refused batch tells little: the broker refuses it whole. So the stretch that failed is copied once
more, slowly: one record a batch, every delivery reported. A record that is refused by itself is
known to be at fault; the unit is taken back and written again without it, with its quarantine
record in its place and in the same transaction. Then the lane goes back to full speed.
"""

from collections.abc import Callable, Sequence
from typing import cast

from replicator.dataplane.copy.delivery_errors import PURGED
from replicator.dataplane.copy.engine_protocol import Engine, Refusal
from replicator.dataplane.copy.source_message import ProducedHeaders, RecordSink, SourceMessage
from replicator.dataplane.progress.partition_state import PartitionState, RouteTable
from replicator.dataplane.transport.delivery import OnDelivery
from replicator.identifiers import HOPS_HEADER
from replicator.kafka import codes
from replicator.kafka.client import KafkaError, KafkaException, Message, Producer

CAREFUL_BATCH_RECORDS = 200
CAREFUL_POLL_SECONDS = 0.1
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
        self.bare: set[Origin] = set()

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
        if origin in self.bare:
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


class RefusedRecordFinder:
    """Copies a batch as one unit, with its refused records in quarantine."""

    def __init__(
        self,
        *,
        engine_for: Callable[[RecordSink], Engine],
        producer: Producer,
        table: RouteTable,
        dirty: set[PartitionState],
        begin: Callable[[], None],
        abort: Callable[[], None],
        commit: Callable[[], None],
        refuse: Callable[[Refusal], bool],
        refusals: frozenset[int],
        cyclic: bool,
        one_by_one: bool,
        on_omitted_header: Callable[[int], None],
    ) -> None:
        """``one_by_one`` waits for each record: what cannot be taken back must not overtake."""
        self._attributing = AttributingProducer(producer)
        self._engine = engine_for(self._attributing)
        self._producer = producer
        self._table = table
        self._dirty = dirty
        self._begin = begin
        self._abort = abort
        self._commit = commit
        self._refuse = refuse
        self._refusals = refusals
        self._cyclic = cyclic
        self._one_by_one = one_by_one
        self._on_omitted_header = on_omitted_header

    def copy(self, messages: Sequence[SourceMessage]) -> None:
        """Copies and commits the batch in units that end behind a refused record.

        Raises:
            KafkaException: for an error that is not a record's fault.
        """
        rest = messages
        while rest:
            rest = rest[self._copy_unit(rest) :]

    def _copy_unit(self, messages: Sequence[SourceMessage]) -> int:
        """Copies and commits the first messages; returns how many."""
        refused: dict[Origin, KafkaError] = {}
        self._attributing.bare = set()
        before = {
            route: _state(route)
            for by_partition in self._table.values()
            for route in by_partition.values()
        }
        unit = messages
        unexplained = 0
        while True:
            error = self._attempt(unit, refused)
            if error is None:
                self._on_omitted_header(len(self._attributing.bare - refused.keys()))
                return len(unit)
            failures = self._attributing.failures
            if not failures:
                unexplained += 1
                if unexplained > _UNEXPLAINED or not error.txn_requires_abort():
                    raise KafkaException(error)
            self._abort()
            for route, state in before.items():
                _restore(route, state)
            self._judge(failures, refused)
            for place, message in enumerate(unit):
                if _origin(message) in failures:
                    # What comes behind waits, or many refusals would copy the batch many times.
                    unit = unit[: place + 1]
                    break

    def _attempt(
        self, messages: Sequence[SourceMessage], refused: dict[Origin, KafkaError]
    ) -> KafkaError | None:
        """Writes and commits; None when that was done, else what the client said."""
        attributing = self._attributing
        attributing.failures = {}
        attributing.broken = None
        self._begin()
        for message in messages:
            origin = _origin(message)
            if origin is not None and origin in refused:
                self._set_aside(message, origin, refused[origin])
            else:
                attributing.current = origin
                self._engine.copy([message])
            if self._one_by_one:
                self._producer.flush(_FLUSH_SECONDS)
                attributing.broken = next(iter(attributing.failures.values()), None)
            if attributing.broken is not None:
                self._producer.poll(_REPORT_SECONDS)
                return attributing.broken
        try:
            self._commit()
        except KafkaException as error:
            return cast("KafkaError", error.args[0])
        return None

    def _set_aside(self, message: SourceMessage, origin: Origin, error: KafkaError) -> None:
        route = self._table.get(origin[0], {}).get(origin[1])
        if route is None or route.problem or route.suspect:
            return
        if self._refuse(Refusal(route, message, error.name(), error.str())):
            route.position = origin[2] + 1
            self._dirty.add(route)

    def _judge(self, failures: dict[Origin, KafkaError], refused: dict[Origin, KafkaError]) -> None:
        for origin, error in failures.items():
            if error.code() not in self._refusals and error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise KafkaException(error)
            only_header = (
                error.code() == KafkaError.MSG_SIZE_TOO_LARGE
                and not self._cyclic
                and origin not in self._attributing.bare
            )
            if only_header:
                self._attributing.bare.add(origin)
            else:
                refused[origin] = error


_State = tuple[int, int, int, int, int, str, str]


def _state(route: PartitionState) -> _State:
    return (
        route.position, route.records, route.bytes, route.dropped, route.quarantined,
        route.problem, route.detail,
    )  # fmt: skip


def _restore(route: PartitionState, state: _State) -> None:
    (
        route.position, route.records, route.bytes, route.dropped, route.quarantined,
        route.problem, route.detail,
    ) = state  # fmt: skip


def _origin(message: SourceMessage) -> Origin | None:
    if message.error() is not None:
        return None
    return message.topic(), message.partition(), message.offset()
