"""Injects a tail into the new active cluster: each record once, with a hop that names its origin.

Records and the positions reached are written in one transaction, so a crash at any point neither loses
nor repeats a record; a later injector fences an earlier one.
"""

from collections.abc import Iterable, Iterator

from replicator.control.records.role_records import SalvageRecord
from replicator.failover.clusters.link_clusters import CLIENT_ID
from replicator.failover.clusters.tail import TailRecord
from replicator.identifiers import TopicPartition, control_topic, salvage_transactional_id
from replicator.kafka.logs.transactions import TransactionWriter
from replicator.policy.copies.provenance import Hop, encode_hop, find_hops, with_hop
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
        self._transactions = TransactionWriter(
            target, salvage_transactional_id(topology, link), client_id=f"{CLIENT_ID}-salvage",
            timeout_seconds=TRANSACTION_SECONDS, max_message_bytes=MAX_RECORD_BYTES,
        )  # fmt: skip
        self._transactions.open()

    def close(self) -> None:
        """Closes the connections."""
        self._transactions.close()

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
        progress: dict[TopicPartition, SalvageRecord] = {}
        self._transactions.begin(f"inject {len(chunk)} records")
        for record in chunk:
            key = (record.topic, record.partition)
            counted[key] = counted.get(key, 0) + 1
            progress[key] = SalvageRecord(
                link=self._link, id=self._transition, topic=record.topic,
                partition=record.partition, next_offset=record.offset + 1,
                records=counted[key],
            )  # fmt: skip
            self._add(record)
        for one in progress.values():
            self._transactions.add(control_topic(self._topology), 0, *one.encode())
        self._transactions.commit()

    def _add(self, record: TailRecord) -> None:
        hop = Hop(self._source, record.topic, record.partition, record.offset)
        if self._provenance == "path":
            hop = Hop(self._source)
        self._transactions.add(
            record.topic, record.partition, record.key, record.value,
            timestamp_ms=max(0, record.timestamp_ms),
            headers=with_hop(record.headers, find_hops(record.headers), encode_hop(hop)),
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
