"""The comparison itself, as DataFrames: marks of both sides joined, and every pair judged.

Both sides are grouped by what they are matched on, which is a full outer join that also counts; it
needs one shuffle, and Spark spills it to disk, so memory does not grow with the data.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from replicator.spark.verify.fingerprint import EXPECTED, OTHERS, SOURCE, TARGET

ANOMALIES = ("lost", "duplicated", "reordered", "changed", "foreign")
_HOUR_MS = 3_600_000


def matched(marks: DataFrame) -> DataFrame:
    """One row per record that either side knows, with how often each side has it and its content.

    Columns: case, match1, match2, segment, here, there (how often), place, copy (offsets), excuse,
    back, hash1, hash2 (of the source), copyHash1, copyHash2, differs, at.
    """
    here, there = f.col("side") == SOURCE, f.col("side") == TARGET
    return (
        marks.groupBy("case", "match1", "match2")
        .agg(
            f.min("segment").alias("segment"),
            f.sum(f.when(here, 1).otherwise(0)).alias("here"),
            f.sum(f.when(there, 1).otherwise(0)).alias("there"),
            f.min(f.when(here, f.col("offset"))).alias("place"),
            f.min(f.when(there, f.col("offset"))).alias("copy"),
            f.max("excuse").alias("excuse"),
            f.max(f.col("back").cast("int")).alias("back"),
            f.min(f.when(here, f.col("hash1"))).alias("hash1"),
            f.min(f.when(here, f.col("hash2"))).alias("hash2"),
            f.min(f.when(there, f.col("hash1"))).alias("copyHash1"),
            f.min(f.when(there, f.col("hash2"))).alias("copyHash2"),
            f.max(f.when(there, f.col("hash1"))).alias("copyHash1Most"),
            f.max(f.when(there, f.col("hash2"))).alias("copyHash2Most"),
            f.coalesce(f.min(f.when(here, f.col("at"))), f.min("at")).alias("at"),
        )
        .withColumn("differs", _differs())
        .drop("copyHash1Most", "copyHash2Most")
    )


def _differs() -> Column:
    pairs = (("copyHash1", "hash1"), ("copyHash1Most", "hash1"), ("copyHash2", "hash2"),
             ("copyHash2Most", "hash2"))  # fmt: skip
    found = f.lit(False)
    for copy, original in pairs:
        found |= f.col(copy) != f.col(original)
    return f.coalesce(found, f.lit(False))


def judged(rows: DataFrame) -> DataFrame:
    """Adds ``compared``, ``excused`` and a count for each anomaly."""
    here, there = f.col("here"), f.col("there")
    expected = f.col("excuse") == EXPECTED
    return (
        rows.withColumn("compared", f.least(here, there))
        .withColumn("lost", f.when(expected, f.greatest(here - there, f.lit(0))).otherwise(0))
        .withColumn("excused", f.when(~expected & (there == 0), here).otherwise(0))
        .withColumn("others", f.when((here == 0) & (f.col("excuse") == OTHERS), there).otherwise(0))
        .withColumn("duplicated", f.when(here > 0, f.greatest(there - here, f.lit(0))).otherwise(0))
        .withColumn("reordered", f.when((there == 1) & (here == 1), f.col("back")).otherwise(0))
        .withColumn("changed", f.when(f.col("differs") & expected, 1).otherwise(0))
        .withColumn("foreign", f.when((here == 0) & expected, there).otherwise(0))
    )


def with_order_of_content(rows: DataFrame) -> DataFrame:
    """Where hops name no place: records that stand behind a later one are ``back``.

    Only records that either side has once can be told apart, so only they are looked at.
    """
    before = Window.partitionBy("case").orderBy("copy").rowsBetween(Window.unboundedPreceding, -1)
    single = rows.filter((f.col("here") == 1) & (f.col("there") == 1)).withColumn(
        "back", (f.coalesce(f.max("place").over(before), f.lit(-1)) > f.col("place")).cast("int")
    )
    others = rows.filter((f.col("here") != 1) | (f.col("there") != 1))
    return single.unionByName(others)


def without_missing_headers(rows: DataFrame) -> DataFrame:
    """Takes back what is only a copy without our header.

    A record that fits only without the header is copied without it. Then its source looks lost and
    its copy foreign, with the same content: the two are one.
    """
    key = ["case", "contentHash1", "contentHash2"]
    content = rows.withColumn("contentHash1", f.coalesce("hash1", "copyHash1")).withColumn(
        "contentHash2", f.coalesce("hash2", "copyHash2")
    )
    order = Window.partitionBy(*key, f.col("lost") > 0, f.col("foreign") > 0).orderBy(
        "place", "copy"
    )
    numbered = content.withColumn("rank", f.row_number().over(order))
    both = Window.partitionBy(*key, "rank")
    one_of_two = (f.sum("lost").over(both) > 0) & (f.sum("foreign").over(both) > 0)
    return (
        numbered.withColumn("bare", one_of_two & ((f.col("lost") > 0) | (f.col("foreign") > 0)))
        .filter(~f.col("bare"))
        .drop("bare", "rank", "contentHash1", "contentHash2")
    )


def differing(rows: DataFrame) -> DataFrame:
    """The rows with anything wrong."""
    wrong = f.lit(False)
    for anomaly in ANOMALIES:
        wrong |= f.col(anomaly) > 0
    return rows.filter(wrong)


def newest_per_key(marks: DataFrame) -> DataFrame:
    """For compacted logs: the newest mark of every key on each side, judged against each other.

    Keys that moved on behind the cut are left out: their older values may be compacted away already.
    """
    order = f.struct("offset", "origin", "hash1", "hash2", "at", "excuse", "tombstone")
    here, there = f.col("side") == SOURCE, f.col("side") == TARGET
    return marks.groupBy("case", "match1", "match2").agg(
        f.max(f.when(here, order)).alias("mine"), f.max(f.when(there, order)).alias("copied")
    )


def judged_keys(rows: DataFrame, cuts: DataFrame) -> DataFrame:
    """The same columns as ``judged``, one row per key; ``cuts`` has a case and its cut."""
    mine, copied = f.col("mine"), f.col("copied")
    lives_here = mine.isNotNull() & ~f.coalesce(mine.tombstone, f.lit(False))
    lives_there = copied.isNotNull() & ~f.coalesce(copied.tombstone, f.lit(False))
    excused = f.coalesce(mine.excuse, copied.excuse) != EXPECTED
    same = (mine.hash1 == copied.hash1) & (mine.hash2 == copied.hash2)
    older = (copied.origin >= 0) & (copied.origin < mine.origin)
    lost = lives_here & (~lives_there | (f.coalesce(~same, f.lit(True)) & older))
    gone = mine.isNotNull() & ~lives_here & lives_there  # the deletion did not arrive
    changed = lives_here & lives_there & ~same & ~older
    moving = f.coalesce(mine.origin, f.lit(-1)) >= f.col("cut")

    def count(what: Column) -> Column:
        return f.when(f.coalesce(what, f.lit(False)) & ~excused, 1).otherwise(0)

    nothing = f.lit(0)
    return (
        rows.join(f.broadcast(cuts), "case")
        .filter(~moving)
        .select(
            "case", "match1", "match2", f.lit(0).alias("segment"),
            f.when(mine.isNotNull(), 1).otherwise(0).alias("here"),
            f.when(copied.isNotNull(), 1).otherwise(0).alias("there"),
            mine.offset.alias("place"), copied.offset.alias("copy"),
            f.coalesce(mine.excuse, copied.excuse).alias("excuse"), f.lit(0).alias("back"),
            mine.hash1.alias("hash1"), mine.hash2.alias("hash2"),
            copied.hash1.alias("copyHash1"), copied.hash2.alias("copyHash2"),
            f.coalesce(mine.at, copied.at).alias("at"), changed.alias("differs"),
            f.when(mine.isNotNull() & copied.isNotNull(), 1).otherwise(0).alias("compared"),
            count(lost | gone).alias("lost"),
            f.when(excused & copied.isNull(), 1).otherwise(0).alias("excused"),
            f.when(mine.isNull() & (copied.excuse == OTHERS), 1).otherwise(0).alias("others"),
            nothing.alias("duplicated"), nothing.alias("reordered"),
            count(changed).alias("changed"),
            count(mine.isNull() & lives_there).alias("foreign"),
        )
    )  # fmt: skip


def counts(rows: DataFrame) -> DataFrame:
    """Sums per case, hour (milliseconds of its start) and excuse, with a hash over either side."""
    expected = f.col("compared") > 0
    return rows.groupBy(
        "case", (f.floor(f.col("at") / _HOUR_MS) * _HOUR_MS).alias("hour"), "excuse"
    ).agg(
        *(f.sum(name).alias(name) for name in ("compared", "excused", "others", *ANOMALIES)),
        f.bit_xor(f.when(expected, f.col("hash1"))).alias("sourceHash"),
        f.bit_xor(f.when(expected, f.col("copyHash1"))).alias("targetHash"),
    )
