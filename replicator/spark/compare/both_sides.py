"""The marks of both sides as one DataFrame."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from replicator.spark.base.failures import task_errors
from replicator.spark.base.ranges import PACKED_RECORDS
from replicator.spark.compare.cases import Case
from replicator.spark.compare.fingerprint import DDL, SOURCE, TARGET, fingerprints
from replicator.topology.plan import ClusterPlan, PairPlan


def fingerprints_of(session: SparkSession, pair: PairPlan, cases: Sequence[Case]) -> DataFrame:
    """The marks of both sides; each log of a partition is read by one task, in order."""
    tasks = _tasks([_lean(case) for case in cases])
    clusters: dict[int, ClusterPlan] = {SOURCE: pair.source, TARGET: pair.target}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with task_errors():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for case, side in tasks[number]:
                        yield from fingerprints(case, side, clusters[side])

    return session.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, DDL)


def _lean(case: Case) -> Case:
    """Without what only the driver needs: each task is sent the cases of all."""
    return replace(case, facts=replace(case.facts, pairs=(), noted=()))


def _tasks(cases: Sequence[Case]) -> list[list[tuple[Case, int]]]:
    """What each task reads: long logs alone, short ones together, the longest first."""
    sized = [(case.source_to - case.source_from, case, SOURCE) for case in cases]
    sized += [(case.target_to - case.target_from, case, TARGET) for case in cases]
    tasks: list[list[tuple[Case, int]]] = []
    room = 0
    for size, case, side in sorted(sized, key=lambda each: -each[0]):
        if not tasks or size > room:
            tasks.append([])
            room = PACKED_RECORDS
        tasks[-1].append((case, side))
        room -= size
    return tasks
