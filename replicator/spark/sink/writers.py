"""What Spark asks of a sink: a writer for one save, and one for the micro-batches of a stream."""

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from replicator.errors import ReplicatorError
from replicator.identifiers import sinks_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.spark.base.failures import task_errors
from replicator.spark.sink.options import SinkOptions
from replicator.spark.sink.write_task import ASK_SECONDS, CLIENT_ID, TaskOfQuery, forget, write_rows

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties of Spark's micro-batches: the id lives in the query's checkpoint."""


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote."""

    rows: int


class KafkaWriter(DataSourceArrowWriter):
    """One ``save``: a task that is tried again writes nothing twice."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._query = f"save-{uuid.uuid4()}"
        _prepare(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Runs in a task."""
        with task_errors():
            part = TaskOfQuery(self._query, 0, _context().partitionId())
            return Written(write_rows(self._options, part, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Every task has committed its rows; their progress is not needed again."""
        with contextlib.suppress(
            ReplicatorError
        ):  # the rows are there; entries that stay do no harm
            forget(self._options, self._query, len(messages))


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """The micro-batches of a query: one that is run again after a failure writes nothing twice."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        _prepare(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Runs in a task."""
        with task_errors():
            context = _context()
            query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
            if query is None or batch is None:
                raise ReplicatorError(
                    "Spark does not say which query and micro-batch this is",
                    remedy="Write with writeStream, not from inside foreachBatch.",
                )
            part = TaskOfQuery(query, int(batch), context.partitionId())
            return Written(write_rows(self._options, part, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Every task has committed its rows with its progress."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """What tasks committed stays; the batch is run again, and they find it."""


def _prepare(options: SinkOptions) -> None:
    """Creates the topic of progress, before any task needs it."""
    with ClusterAdmin(options.cluster, client_id=CLIENT_ID, timeout_seconds=ASK_SECONDS) as admin:
        ensure_compacted_topic(admin, sinks_topic(options.topology), partitions=1)


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise ReplicatorError("rows are written in Spark's tasks only")
    return context
