"""Inside a task: rows into topics in one transaction, which also says that the task was done.

A task that is run again finds what the attempt before it committed, and writes nothing. This holds as
long as a batch that is run again has the same tasks, which Spark promises for the streams it restarts.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from replicator.errors import InputError, RecordRefusedError
from replicator.identifiers import sink_transactional_id, sinks_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.wire_json import decode_value, encode_key, encode_value
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.transactions import TransactionWriter
from replicator.spark.sink.options import SinkOptions

CLIENT_ID = "replicator-sink"
ASK_SECONDS = 60.0
_BY_KEY, _JAVA = -1, "murmur2_random"
"""Partitions are chosen as the Java client does: by the key's hash, or any where there is none."""


@dataclass(frozen=True, slots=True)
class TaskOfQuery:
    """Which part of which query: ``batch`` counts up from 0, and what was written once stays."""

    query: str
    batch: int
    task: int

    @property
    def key(self) -> bytes:
        """The key of its progress."""
        return progress_key(self.query, self.task)


def progress_key(query: str, task: int) -> bytes:
    """Where a task of a query stores which batch it wrote last."""
    return encode_key({"kind": "sink", "query": query, "task": task})


def write_rows(options: SinkOptions, part: TaskOfQuery, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes the rows of a task, unless an attempt before did; returns how many it wrote.

    Raises:
        InputError: a row names no topic, or one that does not exist.
        ReplicatorError: the target refuses a record or cannot be reached; nothing was written.
    """
    writer = TransactionWriter(
        options.cluster,
        sink_transactional_id(options.topology, part.query, part.task),
        client_id=CLIENT_ID,
        timeout_seconds=options.wait_seconds,
        transaction_seconds=options.transaction_seconds,
        on_wait=_Told(f"query {part.query}, task {part.task}: cluster {options.cluster.alias}"),
        max_message_bytes=options.max_request_bytes,
        partitioner=_JAVA,
    )
    with writer:
        writer.open()  # fences an earlier attempt: from here on what is stored does not change
        if _stored_batch(options, part) >= part.batch:
            return 0
        places = _Places(options)
        written = 0
        for batch in batches:
            for row in _rows(batch):
                writer.begin(f"write rows of query {part.query}")
                _add(writer, places, row)
                written += 1
        if written:
            writer.add(
                sinks_topic(options.topology), 0, part.key, encode_value({"batch": part.batch})
            )
            writer.commit()
        return written


class _Told:
    """Says in the executor's log that a task waits; nothing else shows there for minutes."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __call__(self, seconds: float, cause: str) -> None:
        why = f" ({cause})" if cause else ""
        sys.stderr.write(
            f"replicator-kafka: {self._what} has not answered for {seconds:.0f} s{why}\n"
        )
        sys.stderr.flush()


def forget(options: SinkOptions, query: str, tasks: int) -> None:
    """Deletes the progress of a query that is done and is never run again.

    Raises:
        ReplicatorError: see its class; the entries stay, and do no harm.
    """
    with TransactionWriter(
        options.cluster, sink_transactional_id(options.topology, query, -1), client_id=CLIENT_ID
    ) as writer:
        writer.open()
        writer.begin("delete the progress of a query that is done")
        for task in range(tasks):
            writer.add(sinks_topic(options.topology), 0, progress_key(query, task), None)
        writer.commit()


def _stored_batch(options: SinkOptions, part: TaskOfQuery) -> int:
    """The last batch that this task wrote; -1 before the first."""
    stored = read_compacted(
        options.cluster, sinks_topic(options.topology), (0,),
        client_id=CLIENT_ID, timeout_seconds=ASK_SECONDS, past_open_transactions=True,
        known_to_exist=True,
    )[0].get(part.key)  # fmt: skip
    return -1 if stored is None else int(decode_value(stored)["batch"])


class _Places:
    """Where rows go, checked against the topics that there are."""

    def __init__(self, options: SinkOptions) -> None:
        self._topic = options.topic
        self._subject = f"cluster:{options.cluster.alias}"
        with ClusterAdmin(
            options.cluster, client_id=CLIENT_ID, timeout_seconds=ASK_SECONDS
        ) as admin:
            self._partitions: Mapping[str, int] = admin.topic_partitions()

    def of(self, row: Mapping[str, Any]) -> tuple[str, int]:
        """Topic and partition of a row."""
        topic = row.get("topic") or self._topic
        if not topic:
            raise InputError(
                "a row has no topic", subject=self._subject,
                remedy="Fill the column 'topic', or give the option topic.",
            )  # fmt: skip
        count = self._partitions.get(topic)
        if not count:
            raise InputError(
                f"no such topic: {topic}", subject=self._subject,
                remedy="Create it first; a writer creates none.",
            )  # fmt: skip
        wanted = row.get("partition")
        if wanted is None:
            return topic, _BY_KEY
        if not 0 <= wanted < count:
            raise InputError(
                f"{topic} has {count} partitions, and a row names partition {wanted}",
                subject=self._subject,
                remedy="Correct the column 'partition', or leave it out.",
            )
        return topic, wanted


def _add(writer: TransactionWriter, places: _Places, row: Mapping[str, Any]) -> None:
    topic, partition = places.of(row)
    stamp = row.get("timestamp")
    if stamp is not None and stamp <= 0:
        raise RecordRefusedError(
            f"a row for {topic}/{partition} has a time of 1970 or before, which would become the time of now",
            remedy="Leave the column 'timestamp' out, or correct it.",
        )
    writer.add(
        topic, partition, _bytes(row.get("key")), _bytes(row.get("value")),
        timestamp_ms=stamp or 0,
        headers=[(one["key"], one["value"]) for one in row.get("headers") or ()],
    )  # fmt: skip


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch, with times in milliseconds."""
    at = batch.schema.get_field_index("timestamp")
    if at >= 0:
        times = batch.column(at).cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
        batch = batch.set_column(at, "timestamp", times)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
