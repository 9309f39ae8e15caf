"""Injects a tail into the new active cluster: each record once, with a hop that names its origin.

Records and the positions reached are written in one transaction, so a crash at any point neither loses
nor repeats a record; a later injector fences an earlier one.
"""

import time
from collections.abc import Iterable, Iterator

from replicator.control.store.role_records import SalvageRecord
from replicator.errors import ReplicatorError
from replicator.failover.clusters.link_clusters import CLIENT_ID
from replicator.failover.clusters.tail import TailRecord
from replicator.identifiers import TopicPartition, control_topic, salvage_transactional_id
from replicator.kafka.client import KafkaError, KafkaException, Message, Producer, open_producer
from replicator.kafka.errors import ConnectionTrouble, as_kafka_error, map_kafka_error
from replicator.kafka.settings import producer_config
from replicator.policy.provenance import Hop, encode_hop, find_hops, with_hop
from replicator.policy.values import Provenance
from replicator.topology.plan import ClusterPlan

CHUNK = 500
TRANSACTION_SECONDS = 30.0
MAX_RECORD_BYTES = 64 * 1024 * 1024


class TailWriter:
    """Writes the tail of one link for one failback; for one thread."""

    def __init__(
        self,
        target: ClusterPlan,
        *,
        topology: str,
        link: str,
        transition: str,
        source: str,
        provenance: Provenance,
    ) -> None:
        """Fences an earlier injector of the link.

        Raises:
            ReplicatorError: the target does not answer or lacks a right.
        """
        self._topology = topology
        self._link = link
        self._transition = transition
        self._source = source
        self._provenance = provenance
        self._subject = f"cluster:{target.alias}"
        self._trouble = ConnectionTrouble()
        self._failed: list[KafkaError] = []
        config = producer_config(
            target, client_id=f"{CLIENT_ID}-salvage",
            transactional_id=salvage_transactional_id(topology, link),
            transaction_timeout_seconds=TRANSACTION_SECONDS,
            max_message_bytes=MAX_RECORD_BYTES,
            on_delivery=self._delivered, only_failed_deliveries=True, on_error=self._trouble,
        )  # fmt: skip
        self._producer: Producer = open_producer(config, subject=self._subject)
        try:
            self._producer.init_transactions(TRANSACTION_SECONDS)
        except KafkaException as error:
            raise self._mapped(as_kafka_error(error), "fence an earlier injector") from error

    def close(self) -> None:
        """Closes the connections."""
        self._producer.purge()

    def write(self, records: Iterable[TailRecord], *, counted: dict[TopicPartition, int]) -> int:
        """Writes records in transactions of some hundreds; adds to ``counted`` by partition.

        Raises:
            ReplicatorError: the current chunk was not written, or its outcome is unknown: read the stored positions.
        """
        total = 0
        for chunk in _chunks(records):
            self._transact(chunk, counted)
            total += len(chunk)
        return total

    def _transact(self, chunk: list[TailRecord], counted: dict[TopicPartition, int]) -> None:
        doing = f"inject {len(chunk)} records"
        progress: dict[TopicPartition, SalvageRecord] = {}
        self._failed.clear()
        try:
            self._producer.begin_transaction()
            for record in chunk:
                key = (record.topic, record.partition)
                counted[key] = counted.get(key, 0) + 1
                progress[key] = SalvageRecord(
                    link=self._link, id=self._transition, topic=record.topic,
                    partition=record.partition, next_offset=record.offset + 1,
                    records=counted[key],
                )  # fmt: skip
                self._send(record)
            for one in progress.values():
                entry, value = one.encode()
                self._producer.produce(control_topic(self._topology), value, entry, 0)
            self._commit(doing)
        except KafkaException as error:
            inner = self._failed[0] if self._failed else as_kafka_error(error)
            raise self._mapped(inner, doing) from error

    def _commit(self, doing: str) -> None:
        deadline = time.monotonic() + TRANSACTION_SECONDS
        while True:
            try:
                self._producer.commit_transaction(max(0.1, deadline - time.monotonic()))
            except KafkaException as error:
                inner = as_kafka_error(error)
                if inner.retriable() and time.monotonic() < deadline:
                    continue
                if inner.txn_requires_abort():
                    self._producer.abort_transaction(TRANSACTION_SECONDS)
                    raise
                raise self._mapped(inner, doing, unknown=True) from error
            else:
                return

    def _send(self, record: TailRecord) -> None:
        hop = Hop(self._source, record.topic, record.partition, record.offset)
        if self._provenance == "path":
            hop = Hop(self._source)
        headers = with_hop(record.headers, find_hops(record.headers), encode_hop(hop))
        while True:
            try:
                self._producer.produce(
                    record.topic, record.value, record.key, record.partition,
                    timestamp=max(0, record.timestamp_ms), headers=list(headers),
                )  # fmt: skip
            except BufferError:
                self._producer.poll(0.05)
            else:
                return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _mapped(self, error: KafkaError, doing: str, *, unknown: bool = False) -> ReplicatorError:
        return map_kafka_error(
            error, subject=self._subject, doing=doing, cause=self._trouble.cause(),
            unknown_on_timeout=unknown,
        )  # fmt: skip


def _chunks(records: Iterable[TailRecord]) -> Iterator[list[TailRecord]]:
    chunk: list[TailRecord] = []
    for record in records:
        chunk.append(record)
        if len(chunk) >= CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
