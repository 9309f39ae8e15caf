"""``verify`` as one job: facts, cases, fingerprints of both sides, the comparison, the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from replicator.clock import Clock, SystemClock
from replicator.errors import InputError
from replicator.identifiers import JsonObject
from replicator.spark.base.progress import progress
from replicator.spark.compare import matching
from replicator.spark.compare.amounts import compared_amount
from replicator.spark.compare.both_sides import fingerprints_of
from replicator.spark.compare.cases import Case, make_case
from replicator.spark.compare.facts import collect_facts
from replicator.spark.verify.details import first_places, write_records
from replicator.spark.verify.html import page
from replicator.spark.verify.result import result_json, totals_by_hour
from replicator.topology.plan import PairPlan, Plan, find_pair

SHOWN_RECORDS = 1_000
"""How many differing records are written out with the content of both sides."""


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What is to be compared.

    Attributes:
        flow: ``source->target``.
        topics: source topics; empty for all.
        from_ms: records with a timestamp from here on, if given.
        to_ms: and before this, if given.
        report: folder for the report, if one is wanted.
    """

    flow: str
    topics: frozenset[str] = frozenset()
    from_ms: int | None = None
    to_ms: int | None = None
    report: Path | None = None


def verify_flow(
    session: SparkSession, plan: Plan, wanted: VerifyRequest, *, clock: Clock | None = None
) -> JsonObject:
    """Compares both sides of a flow; the object of ``verify -o json``.

    Raises:
        InputError: no such flow or topic, never applied, or the report's folder cannot be used.
        ReplicatorError: a cluster cannot be read.
    """
    clock = clock or SystemClock()
    began = clock.monotonic()
    pair = find_pair(plan, wanted.flow)
    folder = _folder(wanted.report)
    cut_ms = round(clock.now() * 1000)
    found = collect_facts(plan, pair, topics=wanted.topics, from_ms=wanted.from_ms, now_ms=cut_ms)
    cases = [make_case(number, facts) for number, facts in enumerate(found)]
    rows = _rows(session, pair, cases, wanted)
    rows.persist(StorageLevel.DISK_ONLY)
    try:
        with progress(session, "Comparing", whole=compared_amount(pair, cases)):
            counted = [row.asDict() for row in matching.counts(rows).collect()]
        wrong: list[dict[str, int | None]] = []
        differences = matching.differing(rows)
        if any(row[name] for row in counted for name in matching.ANOMALIES):
            if all(any(row[name] for row in counted) for name in ("lost", "foreign")):
                differences = matching.without_missing_headers(differences)
            with progress(session, "Collecting what differs"):
                wrong = [row.asDict() for row in matching.counts(differences).collect()]
        first = first_places(pair, cases, differences) if wrong else []
        result = result_json(
            pair.id, cases, totals_by_hour(counted, wrong), cut_ms=cut_ms,
            seconds=clock.monotonic() - began, report=None if folder is None else str(folder),
            first=first,
        )  # fmt: skip
        if folder is not None:
            shown = write_records(pair, cases, differences, folder, most=SHOWN_RECORDS) \
                if wrong else []  # fmt: skip
            (folder / "report.html").write_text(page(result, shown), encoding="utf-8")
    finally:
        rows.unpersist()
    return result


def _rows(
    session: SparkSession, pair: PairPlan, cases: Sequence[Case], wanted: VerifyRequest
) -> DataFrame:
    parts: list[DataFrame] = []
    for mode in ("origin", "content", "latest"):
        chosen = [case for case in cases if case.mode == mode]
        if not chosen:
            continue
        fingerprints = fingerprints_of(session, pair, chosen)
        if mode == "latest":
            cuts = session.createDataFrame(
                [(case.number, case.cut) for case in chosen], "case int, cut bigint"
            )
            parts.append(matching.judged_keys(matching.newest_per_key(fingerprints), cuts))
            continue
        rows = matching.matched(fingerprints)
        if mode == "content":
            rows = matching.with_order_of_content(rows)
        parts.append(matching.judged(rows))
    if not parts:
        raise InputError(
            f"flow {pair.id} replicates no topic yet, so there is nothing to compare",
            remedy="`replicator topics` lists what is replicated.",
        )
    rows = reduce(lambda one, other: one.unionByName(other), parts)
    if wanted.from_ms is not None:
        rows = rows.filter(f.col("at") >= wanted.from_ms)
    if wanted.to_ms is not None:
        rows = rows.filter(f.col("at") < wanted.to_ms)
    return rows


def _folder(report: Path | None) -> Path | None:
    if report is None:
        return None
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be made ({error.strerror or error})",
            subject=str(report),
            remedy="Name another folder with --report.",
        ) from error
    return report
