"""``--compacted latest``: of a compacted topic only the last record of each key is copied.

Which offsets those are is found by a Spark aggregation over keys; the copying itself stays a chain per
partition, in order, through the same task. Records without a key are all kept.
"""

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from replicator.kafka.admin.admin import ClusterAdmin
from replicator.spark.base.failures import task_errors
from replicator.spark.copy.task import CopyOrder, CopyResult, copy_order, patience_of_attempt
from replicator.topology.plan import PairPlan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

CLIENT_ID = "replicator-seed"
_RESULT = "result string"


def compacted_only(pair: PairPlan, wanted: Iterable[CopyOrder]) -> tuple[CopyOrder, ...]:
    """The orders whose source topic is compacted; of other topics every record counts.

    Raises:
        ClusterError: the source does not answer.
    """
    listed = tuple(wanted)
    names = {order.work.topic for order in listed}
    with ClusterAdmin(pair.source, client_id=CLIENT_ID) as source:
        configs = source.topic_configs(names) if names else {}
    compacted = {
        name
        for name, settings in configs.items()
        if "compact" in (settings["cleanup.policy"].value or "").split(",")
    }
    return tuple(order for order in listed if order.work.topic in compacted)


def copy_latest(
    session: "SparkSession", wanted: Sequence[CopyOrder], *, topology_file: Path
) -> tuple[CopyResult, ...]:
    """Copies the last record per key of each range; ranges without a record give no result.

    Args:
        session: with the ``replicator-kafka`` source registered.
        wanted: ranges of compacted topics.
        topology_file: where tasks find the source cluster.

    Raises:
        ReplicatorError: a task failed for good.
    """
    from pyspark.sql import functions as columns

    if not wanted:
        return ()
    by_place = {(order.work.topic, order.work.partition): order for order in wanted}
    source = records_of(session, wanted, topology_file=topology_file)
    lonely = columns.when(columns.col("key").isNull(), columns.col("offset"))
    last = source.groupBy("topic", "partition", "key", lonely.alias("lonely")).agg(
        columns.max("offset").alias("offset")
    )

    def copy(offsets: "pa.Table") -> "pa.Table":
        import numpy as np
        import pyarrow as pa

        place = offsets["topic"][0].as_py(), offsets["partition"][0].as_py()
        keep = array("q")  # eight bytes an offset, also on the way here
        keep.frombytes(np.sort(offsets["offset"].to_numpy()).tobytes())
        with task_errors():
            result = copy_order(by_place[place], keep=keep, patience=patience_of_attempt())
        return pa.table({"result": [json.dumps(asdict(result))]})

    rows = (
        last.select("topic", "partition", "offset")
        # An explicit number: Spark would put small partitions into one task, which copies them in turn.
        .repartition(len(wanted), "topic", "partition")
        .groupBy("topic", "partition")
        .applyInArrow(copy, _RESULT)
        .collect()
    )
    return tuple(_result(row.result) for row in rows)


def records_of(
    session: "SparkSession", wanted: Sequence[CopyOrder], *, topology_file: Path
) -> "DataFrame":
    """What the ranges hold, read by as many tasks as run at once: which record is a key's last needs no order."""
    by_place = {(order.work.topic, order.work.partition): order for order in wanted}
    places: dict[str, list[int]] = {}
    for topic, partition in by_place:
        places.setdefault(topic, []).append(partition)
    return (
        session.read.format("replicator-kafka")
        .option("cluster", str(wanted[0].source.alias))
        .option("topology", str(topology_file))
        .option("assign", json.dumps(places))
        .option("startingOffsets", _offsets(by_place, "start"))
        .option("endingOffsets", _offsets(by_place, "end"))
        .option("minPartitions", session.sparkContext.defaultParallelism)
        .option("failOnDataLoss", "false")
        .load()
    )


def _offsets(by_place: dict[tuple[str, int], CopyOrder], end: str) -> str:
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), order in by_place.items():
        found.setdefault(topic, {})[str(partition)] = order.start if end == "start" else order.end
    return json.dumps(found)


def _result(text: str) -> CopyResult:
    fields = json.loads(text)
    return CopyResult(**{**fields, "gaps": tuple(fields["gaps"])})
