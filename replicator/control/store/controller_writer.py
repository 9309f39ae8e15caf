"""The controller's pen: atomic writes to control topics, and the fence around lanes.

All writes of a controller carry one transactional id, so whoever opens the pen last is the
controller, and one that was replaced fails at its next write. One write is one transaction, over as
many topics and partitions as it needs: either all of it holds or nothing.
"""

import contextlib
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from replicator.errors import ReplicatorError
from replicator.identifiers import controller_transactional_id, lane_transactional_id
from replicator.kafka.client import (
    KafkaError,
    KafkaException,
    Message,
    Producer,
    open_producer,
)
from replicator.kafka.errors import ConnectionTrouble, as_kafka_error, kafka_errors, map_kafka_error
from replicator.kafka.settings import producer_config
from replicator.topology.plan import PairPlan

TRANSACTION_SECONDS = 15.0
_FENCES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Placed:
    """One record and the partition it must go to; a ``value`` of None is a tombstone."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None


class ControllerWriter:
    """Writes as the controller of one pair. Not thread-safe: one controller, one writer."""

    def __init__(self, pair: PairPlan, topology: str, *, client_id: str) -> None:
        """Becomes the controller; whoever was it before is fenced.

        Raises:
            ClusterError: the target does not answer or lacks a right.
        """
        self._pair = pair
        self._topology = topology
        self._client_id = client_id
        self._subject = f"cluster:{pair.target.alias}"
        self._trouble = ConnectionTrouble()
        self._failed: list[KafkaError] = []
        self.spent = False
        """Set by a write that failed: what the producer is in is not known, open another."""
        self._producer = self._open(
            controller_transactional_id(topology, pair.source.alias, pair.target.alias)
        )

    def write(self, records: Sequence[Placed]) -> None:
        """Writes all records in one transaction and returns when it holds.

        Raises:
            FencedError: another controller took over.
            UnknownOutcomeError: no answer to the commit; read again before going on.
            ClusterError: nothing was written.
        """
        if not records:
            return
        try:
            self._transact(records, f"write {len(records)} control records")
        except ReplicatorError:
            self.spent = True
            raise

    def _transact(self, records: Sequence[Placed], doing: str) -> None:
        # No flush of our own: on a fenced producer it ends in a SystemError of the library
        # (confluent-kafka 2.16.1); the commit flushes and reports the fence properly.
        self._failed.clear()
        try:
            self._producer.begin_transaction()
            for record in records:
                self._produce(record)
        except KafkaException as error:
            self._abort()
            raise self._mapped(as_kafka_error(error), doing) from error
        deadline = time.monotonic() + TRANSACTION_SECONDS
        while True:
            try:
                self._producer.commit_transaction(max(0.1, deadline - time.monotonic()))
            except KafkaException as error:
                inner = as_kafka_error(error)
                if inner.retriable() and time.monotonic() < deadline:
                    continue
                if inner.txn_requires_abort():
                    self._abort()
                    raise self._mapped(self._failed[0] if self._failed else inner, doing) from error
                raise self._mapped(inner, doing, unknown_on_timeout=True) from error
            else:
                return

    def _mapped(
        self, error: KafkaError, doing: str, *, unknown_on_timeout: bool = False
    ) -> ReplicatorError:
        return map_kafka_error(
            error,
            subject=self._subject,
            doing=doing,
            cause=self._trouble.cause(),
            unknown_on_timeout=unknown_on_timeout,
        )

    def _produce(self, record: Placed) -> None:
        while True:
            try:
                self._producer.produce(record.topic, record.value, record.key, record.partition)
            except BufferError:
                self._producer.poll(0.05)
            else:
                return

    def fence_lanes(self, lanes: Iterable[int]) -> None:
        """Initialises the transactional id of every lane: no earlier owner can commit any more."""
        with ThreadPoolExecutor(_FENCES_AT_ONCE, thread_name_prefix="fence") as pool:
            list(pool.map(self._fence, lanes))

    def close(self) -> None:
        """Ends what is open; the controller's id stays ours until somebody else takes it."""
        _close(self._producer, spent=self.spent)

    def _fence(self, lane: int) -> None:
        source, target = self._pair.source.alias, self._pair.target.alias
        _close(self._open(lane_transactional_id(self._topology, source, target, lane)), spent=False)

    def _open(self, transactional_id: str) -> Producer:
        config = producer_config(
            self._pair.target,
            client_id=self._client_id,
            transactional_id=transactional_id,
            transaction_timeout_seconds=TRANSACTION_SECONDS,
            linger_seconds=0.0,
            on_delivery=self._delivered,
            only_failed_deliveries=True,
            on_error=self._trouble,
        )
        producer = open_producer(config, subject=self._subject)
        with kafka_errors(self._subject, f"initialise '{transactional_id}'", trouble=self._trouble):
            producer.init_transactions(TRANSACTION_SECONDS)
        return producer

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(TRANSACTION_SECONDS)
        except KafkaException:
            # Fenced or out of reach: the next open settles it, the broker aborts what is left.
            return


def _close(producer: Producer, *, spent: bool) -> None:
    # The library raises the fatal error of a fenced producer out of whatever serves its events
    # next, as a SystemError when that is a call which cannot fail: such a one is only dropped.
    with contextlib.suppress(KafkaException, SystemError):
        producer.purge()
        if not spent:
            producer.close()
