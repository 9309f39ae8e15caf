"""Inside a task: archived rows, ordered, back into a topic; transactionally, and never twice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from replicator.errors import RecordRefusedError
from replicator.identifiers import restore_transactional_id, restores_topic
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.transactions import TransactionWriter
from replicator.policy.copies.provenance import find_hops, with_hop
from replicator.spark.restore.selection import (
    RestoreProgress,
    decode_progress,
    progress_key,
    progress_partition,
)
from replicator.topology.plan import ClusterPlan

CLIENT_ID = "replicator-restore"
COMMIT_RECORDS = 20_000
COMMIT_BYTES = 32 * 1024 * 1024
TIMEOUT_SECONDS = 60.0

DONE_DDL = "topic string, partition int, records bigint, skipped bigint"
_DONE = pa.schema(
    [
        ("topic", pa.string()), ("partition", pa.int32()), ("records", pa.int64()),
        ("skipped", pa.int64()),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RestoreOrder:
    """Where rows go: the same for every task of a restore.

    ``names`` leads from archived topics to those of the target; ``alias`` is the archived cluster,
    which the provenance header names.
    """

    topology: str
    restore: str
    target: ClusterPlan
    alias: str
    names: Mapping[str, str]
    max_message_bytes: Mapping[str, int]


class PartitionWriter:
    """One partition of a restore; an earlier writer of it is fenced."""

    def __init__(self, order: RestoreOrder, topic: str, partition: int) -> None:
        """Fences an earlier owner, then reads how far it came.

        Raises:
            ReplicatorError: the target cannot be used.
        """
        self._order = order
        self._topic, self._partition = topic, partition
        self._target_topic = order.names[topic]
        self._held_records = self._held_bytes = 0
        self.skipped = 0
        self._transactions = TransactionWriter(
            order.target,
            restore_transactional_id(order.topology, order.restore, topic, partition),
            client_id=CLIENT_ID,
            timeout_seconds=TIMEOUT_SECONDS,
            compression="lz4",
            max_message_bytes=order.max_message_bytes[topic],
        )
        self._transactions.open()
        self.progress = self._stored()
        self._before = self.progress.records

    @property
    def written(self) -> int:
        """Records written by this owner."""
        return self.progress.records - self._before

    def take(self, row: Mapping[str, Any]) -> None:
        """Writes one row; rows come in the order of their offsets.

        Raises:
            RecordRefusedError: the client library cannot write it as it was.
            ReplicatorError: the target refuses a record, or cannot be reached.
        """
        offset = row["offset"]
        if offset < self.progress.next_offset:
            self.skipped += 1
            return
        if row["timestamp"] == 0:
            raise RecordRefusedError(
                f"archived offset {offset} has create time 0, which would become the time of now",
                subject=f"{self._topic}/{self._partition}",
                remedy="Restore around it: --to-offset before it, then --from-offset behind it with "
                "--append.",
            )
        self._transactions.begin(f"write {self._target_topic}/{self._partition}")
        key, value = row["key"], row["value"]
        pairs = [(each["key"], each["value"]) for each in row["headers"] or ()]
        hop = f"{self._order.alias}/{self._topic}/{self._partition}/{offset}".encode()
        self._transactions.add(
            self._target_topic, self._partition, key, value,
            timestamp_ms=max(0, row["timestamp"] or 0), headers=with_hop(pairs, find_hops(pairs), hop),
        )  # fmt: skip
        self.progress = replace(
            self.progress, next_offset=offset + 1, records=self.progress.records + 1
        )
        self._held_records += 1
        self._held_bytes += len(key or b"") + len(value or b"")
        if self._held_records >= COMMIT_RECORDS or self._held_bytes >= COMMIT_BYTES:
            self.commit()

    def commit(self) -> None:
        """Commits records and progress together; nothing where nothing is open.

        Raises:
            ReplicatorError: see its class; nothing was written unless the outcome is unknown.
        """
        if not self._held_records:
            return
        key, value = self.progress.encode()
        number = progress_partition(self._topic, self._partition)
        self._transactions.add(restores_topic(self._order.topology), number, key, value)
        self._transactions.commit()
        self._held_records = self._held_bytes = 0

    def close(self) -> None:
        """Aborts an open transaction and gives the connections back."""
        self._transactions.close()

    def _stored(self) -> RestoreProgress:
        number = progress_partition(self._topic, self._partition)
        stored = read_compacted(
            self._order.target,
            restores_topic(self._order.topology),
            (number,),
            client_id=CLIENT_ID,
            timeout_seconds=TIMEOUT_SECONDS,
            past_open_transactions=True,
            known_to_exist=True,
        )[number]
        where = self._order.restore, self._topic, self._partition
        return decode_progress(*where, stored.get(progress_key(*where)))


def restore_rows(
    order: RestoreOrder, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Writes rows that are ordered by topic, partition and offset; one row out per partition."""
    writer: PartitionWriter | None = None
    where: tuple[str, int] | None = None
    done: list[dict[str, object]] = []
    try:
        for batch in batches:
            for row in batch.to_pylist():
                if where != (row["topic"], row["partition"]):
                    done += _finished(writer, where)
                    writer, where = None, (row["topic"], row["partition"])
                    writer = PartitionWriter(order, *where)
                if writer is not None:
                    writer.take(row)
        done += _finished(writer, where)
        writer = None
    finally:
        if writer is not None:
            writer.close()
    yield pa.RecordBatch.from_pylist(done, schema=_DONE)


def _finished(
    writer: PartitionWriter | None, where: tuple[str, int] | None
) -> list[dict[str, object]]:
    if writer is None or where is None:
        return []
    try:
        writer.commit()
    finally:
        writer.close()
    return [
        {
            "topic": where[0], "partition": where[1],
            "records": writer.written, "skipped": writer.skipped,
        }
    ]  # fmt: skip
