"""The differing records themselves: both sides, with their content, for people and for Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from replicator.identifiers import HOPS_HEADER, JsonObject
from replicator.spark.base.failures import task_errors
from replicator.spark.base.ranges import Range
from replicator.spark.compare.cases import Case
from replicator.spark.compare.facts import CLIENT_ID
from replicator.spark.compare.matching import ANOMALIES
from replicator.spark.source.record_batches import SCHEMA, header_rows, timestamp_type
from replicator.spark.source.scan import RangeScanner
from replicator.topology.plan import PairPlan

FIRST_PLACES = 5
"""How many differing records the text of ``verify`` names."""
_SIDE = (
    "struct<offset: bigint, timestamp: bigint, timestampType: int, key: binary, value: binary, "
    "headers: array<struct<key: string, value: binary>>>"
)
DDL = (
    f"topic string, target string, partition int, kinds string, source {_SIDE}, copy {_SIDE}, "
    "at bigint"
)


def write_records(
    pair: PairPlan, cases: Sequence[Case], differences: DataFrame, folder: Path, *, most: int
) -> list[Row]:
    """Writes ``differences.parquet`` (all of them) and ``records.parquet`` (the first, whole).

    Returns:
        Those first ones, in the order of topic, partition and time.
    """
    session = differences.sparkSession
    names = session.createDataFrame(
        [
            (case.number, case.facts.topic, case.facts.target_topic, case.facts.partition)
            for case in cases
        ],
        "case int, topic string, target string, partition int",
    )
    named = differences.join(f.broadcast(names), "case").select(
        "topic", "target", "partition", "case",
        *(f.col(name).cast("int").alias(name) for name in ANOMALIES),
        "sourceOffset", "targetOffset",
        f.timestamp_millis("at").alias("timestamp"), "at",
        "hash1", "hash2", "copyHash1", "copyHash2",
    )  # fmt: skip
    named.drop("case", "at").write.mode("overwrite").parquet(str(folder / "differences.parquet"))
    first = named.orderBy("case", "at", "sourceOffset", "targetOffset").limit(most)
    whole = _with_content(pair, cases, first)
    whole.write.mode("overwrite").parquet(str(folder / "records.parquet"))
    written = session.read.parquet(str(folder / "records.parquet"))
    return written.orderBy("topic", "partition", "at").collect()


def first_places(pair: PairPlan, cases: Sequence[Case], differences: DataFrame) -> list[JsonObject]:
    """Where the first FIRST_PLACES differing records stand, and which of their fields differ.

    Returns:
        ``{"topic", "target", "partition", "kinds", "sourceOffset", "targetOffset", "fields"}``; an offset
        is None where that side has no such record. ``fields`` is empty unless the copy was changed.
    """
    ordered = differences.orderBy("case", "at", "sourceOffset", "targetOffset")
    rows = ordered.limit(FIRST_PLACES).collect()
    by_number = {case.number: case for case in cases}
    with (
        RangeScanner(pair.source, client_id=CLIENT_ID, lost_is_error=False) as source,
        RangeScanner(pair.target, client_id=CLIENT_ID, lost_is_error=False) as target,
    ):
        return [
            _place(_both_sides(row, by_number[row["case"]], source, target), by_number[row["case"]])
            for row in (row.asDict() for row in rows)
        ]


def _place(sides: Mapping[str, Any], case: Case) -> JsonObject:
    source, copy = sides["source"], sides["copy"]
    return {
        "topic": sides["topic"],
        "target": sides["target"],
        "partition": sides["partition"],
        "kinds": sides["kinds"].split(),
        "sourceOffset": sides["sourceOffset"],
        "targetOffset": sides["targetOffset"],
        "fields": list(differing_fields(source, copy, timed=not case.facts.target.appends_time))
        if source and copy and "changed" in sides["kinds"]
        else [],
    }


def differing_fields(
    source: Mapping[str, Any], copy: Mapping[str, Any], *, timed: bool
) -> tuple[str, ...]:
    """The fields in which a copy differs from its source record: key, value, headers, timestamp. Pure."""
    pairs = [(name, source[name], copy[name]) for name in ("key", "value")]
    pairs.append(("headers", _without_hops(source["headers"]), _without_hops(copy["headers"])))
    if timed:
        pairs.append(("timestamp", source["timestamp"], copy["timestamp"]))
    return tuple(name for name, one, other in pairs if one != other)


def _without_hops(headers: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    return [header for header in headers or () if header["key"] != HOPS_HEADER]


def _with_content(pair: PairPlan, cases: Sequence[Case], rows: DataFrame) -> DataFrame:
    by_number = {case.number: case for case in cases}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with (
            task_errors(),
            # A record that retention deletes meanwhile is shown as none.
            RangeScanner(pair.source, client_id=CLIENT_ID, lost_is_error=False) as source,
            RangeScanner(pair.target, client_id=CLIENT_ID, lost_is_error=False) as target,
        ):
            for batch in batches:
                found = [
                    _both_sides(row, by_number[row["case"]], source, target)
                    for row in batch.to_pylist()
                ]
                if found:
                    yield pa.RecordBatch.from_pylist(found, schema=_SCHEMA)

    return rows.mapInArrow(read, DDL)


_PYARROW_SIDE = pa.struct(
    [
        ("offset", pa.int64()), ("timestamp", pa.int64()), ("timestampType", pa.int32()),
        ("key", pa.binary()), ("value", pa.binary()), ("headers", SCHEMA.field("headers").type),
    ]
)  # fmt: skip
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()), ("target", pa.string()), ("partition", pa.int32()),
        ("kinds", pa.string()), ("source", _PYARROW_SIDE), ("copy", _PYARROW_SIDE),
        ("at", pa.int64()),
    ]
)  # fmt: skip


def _both_sides(
    row: dict[str, object], case: Case, source: RangeScanner, target: RangeScanner
) -> dict[str, object]:
    facts = case.facts
    return {
        "topic": facts.topic,
        "target": facts.target_topic,
        "partition": facts.partition,
        "sourceOffset": row["sourceOffset"],
        "targetOffset": row["targetOffset"],
        "kinds": " ".join(name for name in ANOMALIES if row[name]),
        "source": _content(source, facts.topic, facts.partition, row["sourceOffset"]),
        "copy": _content(target, facts.target_topic, facts.partition, row["targetOffset"]),
        "at": row["at"],
    }


def _content(
    scanner: RangeScanner, topic: str, partition: int, offset: object
) -> dict[str, object] | None:
    """The record at an offset; None where there is none (any more)."""
    if not isinstance(offset, int):
        return None
    for scanned in scanner.scan(Range(topic, partition, offset, offset + 1)):
        for message, headers in zip(scanned.messages, scanned.headers, strict=True):
            kind, at = message.timestamp()
            return {
                "offset": offset,
                "timestamp": at,
                "timestampType": timestamp_type(kind),
                "key": message.key(),
                "value": message.value(),
                "headers": header_rows(headers),
            }
    return None
