"""The comparison itself, as DataFrames: fingerprints of both sides joined, and every pair judged.

Both sides are grouped by what they are matched on, which is a full outer join that also counts; it
needs one shuffle, and Spark spills it to disk, so memory does not grow with the data.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from replicator.spark.compare.fingerprint import EXPECTED, FOREIGN_ALLOWED, SOURCE, TARGET

ANOMALIES = ("lost", "duplicated", "reordered", "changed", "foreign")
_HOUR_MS = 3_600_000


def matched(fingerprints: DataFrame) -> DataFrame:
    """One row per record that either side knows, with its count and content on each side.

    Columns: case, match1, match2, segment, sourceCount, targetCount, sourceOffset, targetOffset,
    exclusion, outOfOrder, hash1, hash2 (of the source), copyHash1, copyHash2, differs, at.
    """
    on_source, on_target = f.col("side") == SOURCE, f.col("side") == TARGET
    return (
        fingerprints.groupBy("case", "match1", "match2")
        .agg(
            f.min("segment").alias("segment"),
            f.sum(f.when(on_source, 1).otherwise(0)).alias("sourceCount"),
            f.sum(f.when(on_target, 1).otherwise(0)).alias("targetCount"),
            f.min(f.when(on_source, f.col("offset"))).alias("sourceOffset"),
            f.min(f.when(on_target, f.col("offset"))).alias("targetOffset"),
            f.max("exclusion").alias("exclusion"),
            f.max(f.col("outOfOrder").cast("int")).alias("outOfOrder"),
            f.min(f.when(on_source, f.col("hash1"))).alias("hash1"),
            f.min(f.when(on_source, f.col("hash2"))).alias("hash2"),
            f.min(f.when(on_target, f.col("hash1"))).alias("copyHash1"),
            f.min(f.when(on_target, f.col("hash2"))).alias("copyHash2"),
            f.max(f.when(on_target, f.col("hash1"))).alias("copyHash1Most"),
            f.max(f.when(on_target, f.col("hash2"))).alias("copyHash2Most"),
            f.coalesce(f.min(f.when(on_source, f.col("at"))), f.min("at")).alias("at"),
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
    on_source, on_target = f.col("sourceCount"), f.col("targetCount")
    expected = f.col("exclusion") == EXPECTED
    return (
        rows.withColumn("compared", f.least(on_source, on_target))
        .withColumn(
            "lost", f.when(expected, f.greatest(on_source - on_target, f.lit(0))).otherwise(0)
        )
        .withColumn("excused", f.when(~expected & (on_target == 0), on_source).otherwise(0))
        .withColumn(
            "others",
            f.when((on_source == 0) & (f.col("exclusion") == FOREIGN_ALLOWED), on_target).otherwise(
                0
            ),
        )
        .withColumn(
            "duplicated",
            f.when(on_source > 0, f.greatest(on_target - on_source, f.lit(0))).otherwise(0),
        )
        .withColumn(
            "reordered",
            f.when((on_target == 1) & (on_source == 1), f.col("outOfOrder")).otherwise(0),
        )
        .withColumn("changed", f.when(f.col("differs") & expected, 1).otherwise(0))
        .withColumn("foreign", f.when((on_source == 0) & expected, on_target).otherwise(0))
    )


def with_order_of_content(rows: DataFrame) -> DataFrame:
    """Where hops name no place: records that stand behind a later one are ``outOfOrder``.

    Only records that each side has once can be told apart, so only their order is judged.
    """
    before = (
        Window.partitionBy("case")
        .orderBy("targetOffset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    single = rows.filter((f.col("sourceCount") == 1) & (f.col("targetCount") == 1)).withColumn(
        "outOfOrder",
        (f.coalesce(f.max("sourceOffset").over(before), f.lit(-1)) > f.col("sourceOffset")).cast(
            "int"
        ),
    )
    repeated = rows.filter((f.col("sourceCount") != 1) | (f.col("targetCount") != 1))
    return single.unionByName(repeated)


def without_missing_headers(rows: DataFrame) -> DataFrame:
    """Removes pairs that are one record, copied without our header.

    A record that fits only without the header is copied without it. Then its source looks lost and
    its copy foreign, with the same content: the two are one.
    """
    key = ["case", "contentHash1", "contentHash2"]
    content = rows.withColumn("contentHash1", f.coalesce("hash1", "copyHash1")).withColumn(
        "contentHash2", f.coalesce("hash2", "copyHash2")
    )
    order = Window.partitionBy(*key, f.col("lost") > 0, f.col("foreign") > 0).orderBy(
        "sourceOffset", "targetOffset"
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


def newest_per_key(fingerprints: DataFrame) -> DataFrame:
    """For compacted logs: the newest fingerprint row of every key on each side, judged against each other.

    Keys with a record behind the cut are left out: their older values may be compacted already.
    """
    order = f.struct("offset", "origin", "hash1", "hash2", "at", "exclusion", "tombstone")
    on_source, on_target = f.col("side") == SOURCE, f.col("side") == TARGET
    return fingerprints.groupBy("case", "match1", "match2").agg(
        f.max(f.when(on_source, order)).alias("original"),
        f.max(f.when(on_target, order)).alias("copy"),
    )


def judged_keys(rows: DataFrame, cuts: DataFrame) -> DataFrame:
    """The same columns as ``judged``, one row per key; ``cuts`` has a case and its cut."""
    original, copy = f.col("original"), f.col("copy")
    lives_on_source = original.isNotNull() & ~f.coalesce(original.tombstone, f.lit(False))
    lives_on_target = copy.isNotNull() & ~f.coalesce(copy.tombstone, f.lit(False))
    excused = f.coalesce(original.exclusion, copy.exclusion) != EXPECTED
    same = (original.hash1 == copy.hash1) & (original.hash2 == copy.hash2)
    older = (copy.origin >= 0) & (copy.origin < original.origin)
    lost = lives_on_source & (~lives_on_target | (f.coalesce(~same, f.lit(True)) & older))
    gone = original.isNotNull() & ~lives_on_source & lives_on_target  # the deletion is missing
    changed = lives_on_source & lives_on_target & ~same & ~older
    moving = f.coalesce(original.origin, f.lit(-1)) >= f.col("cut")

    def count(what: Column) -> Column:
        return f.when(f.coalesce(what, f.lit(False)) & ~excused, 1).otherwise(0)

    nothing = f.lit(0)
    return (
        rows.join(f.broadcast(cuts), "case")
        .filter(~moving)
        .select(
            "case", "match1", "match2", f.lit(0).alias("segment"),
            f.when(original.isNotNull(), 1).otherwise(0).alias("sourceCount"),
            f.when(copy.isNotNull(), 1).otherwise(0).alias("targetCount"),
            original.offset.alias("sourceOffset"), copy.offset.alias("targetOffset"),
            f.coalesce(original.exclusion, copy.exclusion).alias("exclusion"), f.lit(0).alias("outOfOrder"),
            original.hash1.alias("hash1"), original.hash2.alias("hash2"),
            copy.hash1.alias("copyHash1"), copy.hash2.alias("copyHash2"),
            f.coalesce(original.at, copy.at).alias("at"), changed.alias("differs"),
            f.when(original.isNotNull() & copy.isNotNull(), 1).otherwise(0).alias("compared"),
            count(lost | gone).alias("lost"),
            f.when(excused & copy.isNull(), 1).otherwise(0).alias("excused"),
            f.when(original.isNull() & (copy.exclusion == FOREIGN_ALLOWED), 1).otherwise(0).alias("others"),
            nothing.alias("duplicated"), nothing.alias("reordered"),
            count(changed).alias("changed"),
            count(original.isNull() & lives_on_target).alias("foreign"),
        )
    )  # fmt: skip


def counts(rows: DataFrame) -> DataFrame:
    """Sums per case, hour (milliseconds of its start) and exclusion, with a hash over either side."""
    expected = f.col("compared") > 0
    return rows.groupBy(
        "case", (f.floor(f.col("at") / _HOUR_MS) * _HOUR_MS).alias("hour"), "exclusion"
    ).agg(
        *(f.sum(name).alias(name) for name in ("compared", "excused", "others", *ANOMALIES)),
        f.bit_xor(f.when(expected, f.col("hash1"))).alias("sourceHash"),
        f.bit_xor(f.when(expected, f.col("copyHash1"))).alias("targetHash"),
    )
