"""The Python Data Source ``replicator-kafka``: any cluster of a topology as a DataFrame.

``spark.read.format("replicator-kafka")`` and ``readStream`` alike. Ranges are planned on the driver;
each task reads its own with confluent-kafka and answers with Arrow batches. What is pickled into a
plan holds references to secrets, never secrets.
"""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from replicator.errors import InputError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.spark.base.failures import task_errors
from replicator.spark.base.ranges import (
    Range,
    keyed_offsets,
    offsets_json,
    ranges_between,
)
from replicator.spark.sink.options import read_sink_options
from replicator.spark.sink.writers import KafkaStreamWriter, KafkaWriter
from replicator.spark.source.options import SourceOptions, read_options
from replicator.spark.source.planning import (
    CLIENT_ID,
    TIMEOUT_SECONDS,
    partitions_of,
    plan_ranges,
    read_bounds,
    require_reached,
    resolved_starts,
    tasks_of,
)
from replicator.spark.source.record_batches import HEADERS_DDL, SCHEMA_DDL, record_batches
from replicator.spark.source.scan import RangeScanner
from replicator.spark.source.stream_limits import limited

FORMAT = "replicator-kafka"


class KafkaDataSource(DataSource):
    """``spark.read.format("replicator-kafka").option(...)``; options in ``options.py``.

    It takes no filters (docs/decisions/filters-are-not-pushed-down.md).
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> str:
        """Columns of the stock Kafka source, and ``leaderEpoch``."""
        with task_errors():
            options = read_options(_plain(self.options))
        return SCHEMA_DDL if options.with_headers else SCHEMA_DDL.replace(HEADERS_DDL, "")

    def reader(self, schema: StructType) -> "KafkaReader":  # noqa: ARG002  it never varies
        """A batch reader."""
        with task_errors():
            return KafkaReader(read_options(_plain(self.options)))

    def streamReader(self, schema: StructType) -> "KafkaStreamReader":  # noqa: ARG002, N802
        """A reader of micro-batches."""
        with task_errors():
            return KafkaStreamReader(read_options(_plain(self.options)))

    def writer(self, schema: StructType, overwrite: bool) -> KafkaWriter:
        """A writer of one ``save``; topics are appended to, never overwritten."""
        with task_errors():
            if overwrite:
                raise InputError(
                    "a topic cannot be overwritten", remedy="Write with mode('append')."
                )
            return KafkaWriter(read_sink_options(_plain(self.options), schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaStreamWriter:  # noqa: ARG002, N802
        """A writer of micro-batches, in output mode append or update."""
        with task_errors():
            return KafkaStreamWriter(read_sink_options(_plain(self.options), schema))


class Ranges(InputPartition):
    """What one task reads, one after the other."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class KafkaReader(DataSourceReader):
    """Reads what the options name, as it stands when the query is planned."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Plans the ranges; a partition is one task's unless the options split it."""
        with task_errors():
            return [Ranges(task) for task in tasks_of(plan_ranges(self._options), self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        yield from _read(self._options, partition)


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are ``{"topic": {"0": 23}}``, as the stock source writes them into its checkpoints."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._last: Mapping[TopicPartition, int] | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is all that the query reads, in micro-batches of the usual size."""
        with task_errors(), self._admin() as admin:
            keys = partitions_of(admin, self._options)
            self._last = admin.every_offset(keys, "latest", self._options.isolation)

    def initialOffset(self) -> dict[str, dict[str, int]]:  # noqa: N802  Spark's name
        """Where a query without a checkpoint begins."""
        with task_errors(), self._admin() as admin:
            keys = partitions_of(admin, self._options)
            bounds = read_bounds(admin, keys, self._options.isolation)
            starts = resolved_starts(admin, keys, self._options, bounds, otherwise="latest")
            return offsets_json(starts)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What ``maxOffsetsPerTrigger`` says."""
        most = self._options.most_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, Mapping[str, int]], limit: ReadLimit
    ) -> dict[str, dict[str, int]]:
        """Where the next micro-batch ends; new partitions join with it."""
        with task_errors(), self._admin() as admin:
            keys = partitions_of(admin, self._options)
            ends = admin.every_offset(keys, "latest", self._options.isolation)
            if self._options.lost_is_error:
                require_reached(keyed_offsets(start), ends, self._options)
        if self._last is not None:
            ends = {key: min(ends.get(key, last), last) for key, last in self._last.items()}
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return offsets_json(limited(keyed_offsets(start), ends, most))

    def partitions(
        self, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
    ) -> Sequence[InputPartition]:
        """The ranges of a micro-batch; a partition that is new since ``start`` begins at its start."""
        starts, ends = keyed_offsets(start), keyed_offsets(end)
        new = [key for key in ends if key not in starts]
        with task_errors():
            ranges = ranges_between({**starts, **self._begin(new)}, ends)
            return [Ranges(task) for task in tasks_of(ranges, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        yield from _read(self._options, partition)

    def _begin(self, keys: list[TopicPartition]) -> dict[TopicPartition, int]:
        if not keys:
            return {}
        with self._admin() as admin:
            return admin.every_offset(keys, "earliest", self._options.isolation)

    def _admin(self) -> ClusterAdmin:
        return ClusterAdmin(
            self._options.cluster, client_id=CLIENT_ID, timeout_seconds=TIMEOUT_SECONDS
        )


def _read(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, Ranges):
        return  # Spark's own stand-in where nothing is to be read
    with (
        task_errors(),
        RangeScanner(
            options.cluster,
            isolation=options.isolation,
            client_id=CLIENT_ID,
            lost_is_error=options.lost_is_error,
        ) as scanner,
    ):
        for wanted in partition.ranges:
            for scanned in scanner.scan(wanted):
                yield from record_batches(scanned, with_headers=options.with_headers)


def _plain(options: MutableMapping[str, str]) -> dict[str, str]:
    return dict(options.items())
