"""One round of an audit: fingerprints of both sides counted by span of time.

Records are only joined where a count falls short, to name those that are missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from replicator.identifiers import TopicPartition
from replicator.spark.audit.ledger import Bucket, Ledger, Reached
from replicator.spark.compare import matching
from replicator.spark.compare.both_sides import fingerprints_of
from replicator.spark.compare.cases import Case
from replicator.spark.compare.fingerprint import EXPECTED, FOREIGN_ALLOWED, SOURCE, TARGET
from replicator.topology.plan import PairPlan

_NO_CUT = 2**62


def void_books(cases: Iterable[Case], ledger: Ledger) -> list[TopicPartition]:
    """Partitions whose books no longer describe what the clusters hold, so they are counted again.

    Either topic was created again, a log is shorter than the books, or the target's log begins later than
    its retention explains: copies that were counted are gone then.
    """
    found: list[TopicPartition] = []
    for case in cases:
        facts = case.facts
        held = ledger.reached.get((facts.topic, facts.partition))
        if held is None:
            continue
        ids = (held.source_id, facts.source.topic_id), (held.target_id, facts.target.topic_id)
        head_lost = (
            0 <= held.target_start < facts.target.start
            and facts.kept_from is not None
            and facts.kept_from < min(case.head_to, held.source)
        )
        if (
            any(old and new and old != new for old, new in ids)
            or held.target > facts.target.end
            or held.source > facts.source.end
            or head_lost
        ):
            found.append((facts.topic, facts.partition))
    return found


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
            (f.col("origin") >= 0).alias("placed"),
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
            case.cut,
            first_behind.get(case.number, case.target_to),
            case.facts.source.topic_id,
            case.facts.target.topic_id,
            case.facts.target.start,
        )
        for case in cases
    }
    return [buckets[key] for key in sorted(buckets)], reached


def short_cases(cases: Iterable[Case], buckets: Iterable[Bucket]) -> list[Case]:
    """The cases of a round in which a span lacks copies."""
    short = {(each.topic, each.partition) for each in buckets if each.missing}
    return [case for case in cases if (case.facts.topic, case.facts.partition) in short]


def missing_records(
    session: SparkSession, pair: PairPlan, cases: Sequence[Case], *, bucket_ms: int
) -> list[dict[str, Any]]:
    """Which records lack a copy, found by joining both sides: case, bucket, records, first, last."""
    rows = matching.judged(matching.matched(fingerprints_of(session, pair, cases)))
    lost = matching.without_missing_headers(matching.differing(rows)).filter(f.col("lost") > 0)
    return [
        row.asDict()
        for row in lost.groupBy(
            "case", (f.floor(f.col("at") / bucket_ms) * bucket_ms).alias("bucket")
        )
        .agg(
            f.sum("lost").alias("records"), f.min("sourceOffset").alias("first"),
            f.max("sourceOffset").alias("last"),
        )
        .collect()
    ]  # fmt: skip


def with_missing(
    buckets: Iterable[Bucket], cases: Sequence[Case], missing: Iterable[Mapping[str, Any]]
) -> list[Bucket]:
    """The round's buckets with what the join found for these cases. Pure."""
    by_number = {case.number: case.facts for case in cases}
    joined = {(facts.topic, facts.partition) for facts in by_number.values()}
    found = {
        (by_number[row["case"]].topic, by_number[row["case"]].partition, row["bucket"]): row
        for row in missing
    }
    result: list[Bucket] = []
    for each in buckets:
        row = found.get((each.topic, each.partition, each.at_ms))
        if (each.topic, each.partition) not in joined:
            result.append(each)
        elif row is None:
            result.append(replace(each, found=each.expected))
        else:
            result.append(
                replace(
                    each, found=each.expected - row["records"], missing_from=row["first"],
                    missing_to=row["last"],
                )
            )  # fmt: skip
    return result


def _bucket(case: Case, row: Mapping[str, Any]) -> Bucket | None:
    empty = Bucket(case.facts.topic, case.facts.partition, row["bucket"])
    if row["side"] == TARGET:
        # Where copies name their place, a record without one may be foreign: it counts as no copy, and
        # `missing_records` recognises copies without our header by their content.
        foreign = case.mode == "origin" and not row["placed"]
        if foreign or row["exclusion"] == FOREIGN_ALLOWED:
            return None
        return replace(empty, found=row["records"])
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
