"""The first record that a producer writes to a partition, watched until it has surely arrived.

Brokers up to Kafka 4.3 let the first write that they see of a producer begin anywhere
(KAFKA-15591). A leader that refuses one request, because it has not heard yet that it leads, and
takes the next one leaves a hole; librdkafka (2.16) takes the second answer as one for both requests
and reports all their records as stored, those of the first one at no offset. A transaction then
commits without them. A broker that knows the producer refuses such a gap, so what matters is the
first write to each partition, and again once the broker may have forgotten the producer.
docs/decisions/first-writes-are-watched.md
"""

from collections.abc import Callable

from replicator.clock import Clock
from replicator.dataplane.transport.delivery import OnDelivery
from replicator.errors import TargetRegressedError, UnknownOutcomeError
from replicator.kafka.clients.client import KafkaError, KafkaException, Message, Producer

KNOWN_SECONDS = 600.0
"""How long a broker is trusted to remember a producer; its own default is a day."""

_STEP_SECONDS = 0.1

_Place = tuple[str, int]


class FirstWrites:
    """Of one session's producer; used by the lane's thread only."""

    def __init__(
        self,
        producer: Producer,
        *,
        clock: Clock,
        transactional: bool,
        failed: Callable[[], bool],
        give_up: Callable[[], bool],
    ) -> None:
        """``transactional`` producers report what is asked for; others only failures.

        ``failed`` says whether something was refused, so that nothing more will be acknowledged.
        """
        self._producer = producer
        self._clock = clock
        self.transactional = transactional
        self._failed = failed
        self._give_up = give_up
        self._current: dict[_Place, float] = {}
        self._awaited = 0
        self._without_offset: set[_Place] = set()
        self._too_low: dict[_Place, tuple[int, int]] = {}

    def report_for(
        self, topic: str, partition: int, noted: OnDelivery | None, *, expected: int = -1
    ) -> OnDelivery | None:
        """The delivery report for a record about to be produced; it calls ``noted`` too.

        Nothing waits for it before the commit: there ``confirm`` does. Stored below the offset that is
        ``expected`` at least, the record shows that the log lost what it held.
        """
        place = (topic, partition)
        first = self._is_first(place)
        if not self.transactional or (not first and expected < 0):
            return noted
        if first:
            self._current[place] = self._clock.monotonic()
        self._awaited += 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._awaited -= 1
            offset = message.offset()
            if error is not None:
                self._current.pop(place, None)
            elif offset is None or offset < 0:
                self._without_offset.add(place)
            elif offset < expected:
                self._too_low[place] = (offset, expected)
            if noted is not None:
                noted(error, message)

        return delivered

    def wait_after(self, topic: str, partition: int) -> None:
        """After a record was produced without a report: if it was a first one, waits until it is stored.

        Raises:
            UnknownOutcomeError: the lane had to stop before the target answered.
        """
        place = (topic, partition)
        if self._is_first(place):
            self._flush()
            self._current[place] = self._clock.monotonic()

    def confirm(self) -> None:
        """Before a transaction is committed: the records that are watched must be where they belong.

        Raises:
            UnknownOutcomeError: one has no offset, or no answer came before the lane had to stop.
            TargetRegressedError: one stands below what the target held before.
        """
        if self._awaited:
            self._flush()
        if self._without_offset:
            topic, partition = min(self._without_offset)
            raise UnknownOutcomeError(
                "the target took later records, and does not say where the first ones are",
                subject=f"{topic}/{partition}",
                remedy="The lane aborts this transaction and copies its records again.",
            )
        if self._too_low:
            (topic, partition), (offset, expected) = min(self._too_low.items())
            raise TargetRegressedError(
                f"the target stored a record at offset {offset} of a log that reached {expected}",
                subject=f"{topic}/{partition}",
                remedy="The lane looks for what is missing and copies it again.",
            )

    def clear(self) -> None:
        """The transaction was aborted, and with it whatever was missing from it."""
        self._without_offset.clear()
        self._too_low.clear()

    def _is_first(self, place: _Place) -> bool:
        known = self._current.get(place)
        return known is None or self._clock.monotonic() - known > KNOWN_SECONDS

    def _flush(self) -> None:
        try:
            while self._producer.flush(_STEP_SECONDS) and not self._failed():
                if self._give_up():
                    raise UnknownOutcomeError(
                        "the target did not acknowledge before the lane had to stop",
                        remedy="The next owner goes on from the last checkpoint.",
                    )
        except (KafkaException, SystemError):
            # A fenced producer raises here too; the commit that follows says that it was fenced.
            return


def transaction_failed(producer: Producer) -> bool:
    """Whether the open transaction cannot be committed any more.

    The client sends nothing of such a transaction, nor reports what it holds back, and has no call that
    only asks. Beginning a transaction inside one is always refused, and the refusal says which it is.
    """
    try:
        producer.begin_transaction()
    except KafkaException as error:
        return bool(error.args[0].txn_requires_abort() or error.args[0].fatal())
    raise RuntimeError("asked about a transaction that is not open")
