"""One round of an audit: fingerprints of both sides counted by span of time, without any join of records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from replicator.identifiers import TopicPartition
from replicator.spark.audit.ledger import Bucket, Ledger, Reached
from replicator.spark.verify.both_sides import fingerprints_of
from replicator.spark.verify.cases import Case
from replicator.spark.verify.fingerprint import EXPECTED, FOREIGN_ALLOWED, SOURCE, TARGET
from replicator.topology.plan import PairPlan

_NO_CUT = 2**62


def new_cases(cases: Iterable[Case], ledger: Ledger) -> list[Case]:
    """What the books do not cover yet; counts of compacted and restamped logs cannot agree."""
    found: list[Case] = []
    for case in cases:
        facts = case.facts
        if case.mode == "latest" or facts.target.appends_time:
            continue
        held = ledger.reached.get((facts.topic, facts.partition))
        if held is None:
            found.append(case)
        elif held.source <= case.cut:
            found.append(
                replace(
                    case,
                    source_from=max(held.source, facts.source.start),
                    target_from=max(held.target, facts.target.start),
                    target_to=max(held.target, case.target_to),
                )
            )
    return found


def counted(
    session: SparkSession, pair: PairPlan, cases: Sequence[Case], *, bucket_ms: int
) -> list[dict[str, Any]]:
    """Counts by case, side, exclusion, bucket and whether the copy lies behind the cut."""
    # Copies behind the cut are kept apart, not left out: the next round begins at the first of them.
    open_ended = [replace(case, cut=_NO_CUT) for case in cases]
    fingerprints = fingerprints_of(session, pair, open_ended)
    cuts = session.createDataFrame(
        [(case.number, case.cut) for case in cases], "case int, cut bigint"
    )
    rows = fingerprints.join(f.broadcast(cuts), "case").join(
        f.broadcast(_noted(session, cases)), ["case", "side", "offset"], "left"
    )
    late = f.col("noted") - f.col("at")
    return [
        row.asDict()
        for row in rows.groupBy(
            "case", "side", "exclusion",
            (f.floor(f.col("at") / bucket_ms) * bucket_ms).alias("bucket"),
            ((f.col("side") == TARGET) & (f.col("origin") >= f.col("cut"))).alias("behind"),
        )
        .agg(
            f.count("*").alias("records"), f.min("offset").alias("first"),
            f.max("offset").alias("last"), f.count(late).alias("samples"),
            f.coalesce(f.sum(late), f.lit(0)).alias("late"),
            f.coalesce(f.max(late), f.lit(0)).alias("latest"),
        )
        .collect()
    ]  # fmt: skip


def _noted(session: SparkSession, cases: Sequence[Case]) -> DataFrame:
    noted = [
        (case.number, SOURCE, offset, at_ms)
        for case in cases
        for offset, at_ms in dict(case.facts.noted).items()
    ]
    return session.createDataFrame(noted, "case int, side int, offset bigint, noted bigint")


def round_of(
    cases: Sequence[Case], rows: Iterable[Mapping[str, Any]]
) -> tuple[list[Bucket], dict[TopicPartition, Reached]]:
    """The round as additions to the books. Pure."""
    by_number = {case.number: case for case in cases}
    first_behind: dict[int, int] = {}
    buckets: dict[tuple[int, int], Bucket] = {}
    for row in rows:
        case = by_number[row["case"]]
        if row["behind"]:
            held = first_behind.get(case.number, row["first"])
            first_behind[case.number] = min(held, row["first"])
            continue
        counted_row = _bucket(case, row)
        if counted_row is not None:
            key = case.number, row["bucket"]
            known = buckets.get(key)
            buckets[key] = counted_row if known is None else known.plus(counted_row)
    reached = {
        (case.facts.topic, case.facts.partition): Reached(
            case.cut, first_behind.get(case.number, case.target_to)
        )
        for case in cases
    }
    return [buckets[key] for key in sorted(buckets)], reached


def _bucket(case: Case, row: Mapping[str, Any]) -> Bucket | None:
    empty = Bucket(case.facts.topic, case.facts.partition, row["bucket"])
    if row["side"] == TARGET:
        return None if row["exclusion"] == FOREIGN_ALLOWED else replace(empty, found=row["records"])
    if row["exclusion"] != EXPECTED:
        return replace(empty, excused=row["records"])
    return replace(
        empty,
        expected=row["records"],
        from_offset=row["first"],
        to_offset=row["last"],
        latency_samples=row["samples"],
        latency_sum_ms=row["late"],
        latency_max_ms=max(0, row["latest"]),
    )
