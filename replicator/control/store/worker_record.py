"""What a worker says of itself in the control topic, so that ``status`` needs no worker to answer."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Protocol

from replicator.clock import Clock
from replicator.control.records.problem_part import ProblemPart, problem_part
from replicator.control.records.worker_records import (
    CanaryPart,
    FlowRates,
    MemoryPart,
    WorkerRecord,
)
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.formats.lane_stats import LaneStats, PartitionStats
from replicator.formats.partition_failure import PartitionFailure
from replicator.identifiers import LinkName, control_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.logins.cluster_login import login_of
from replicator.observability.snapshot import TaskMetrics
from replicator.policy.copies.engines import BatchesWait, FlowEngine, engine_now, engine_of_lanes
from replicator.topology.plan import ClusterPlan, FlowPlan, PairPlan, Plan

FRESH_SECONDS = 15.0
"""A worker writes its record about every 5 s; an older one says nothing about now."""

MOST_FAILURES = 20
"""Partitions of one lane that the record names one by one: it must stay small where all of them fail."""


def fresh_workers(control: ControlState, source: str, *, now_ms: int) -> tuple[WorkerRecord, ...]:
    """The workers and streams of a pair that are at work now, in order of id: the one rule for it.

    Args:
        control: the control topic of the pair's target.
        source: alias of the cluster it copies from.
        now_ms: milliseconds since the epoch.
    """
    return tuple(
        worker for worker in control.workers(source) if now_ms - worker.at_ms < FRESH_SECONDS * 1000
    )


def batches_wait(control: ControlState, source: str, *, now_ms: int) -> BatchesWait:
    """Who keeps whole batches of a pair waiting now; the arguments as ``fresh_workers`` has them."""
    if any(not each.tells_batches for each in fresh_workers(control, source, now_ms=now_ms)):
        return "older-workers"
    return "other-topology" if control.unaware_topologies(source) else ""


def shown_engine(control: ControlState, flow: FlowPlan, *, now_ms: int) -> FlowEngine:
    """How a flow is copied at this moment, as its workers tell; ``control`` and ``now_ms`` as above."""
    ordered = engine_now(flow.policy, waits_for=batches_wait(control, flow.source, now_ms=now_ms))
    workers = fresh_workers(control, flow.source, now_ms=now_ms)
    rates = (rate for worker in workers for rate in worker.flows if rate.link == flow.link)
    return engine_of_lanes(ordered, (rate.records_reason for rate in rates))


class Identity(Protocol):
    """Who the worker is."""

    @property
    def id(self) -> str:
        """Unique among workers."""
        ...

    @property
    def host(self) -> str:
        """Where it runs."""
        ...

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def http(self) -> str:
        """Where it answers, empty when nowhere."""
        ...


def with_canaries(
    rates: Iterable[FlowRates], figures: Mapping[LinkName, TaskMetrics] | None
) -> tuple[FlowRates, ...]:
    """The rates with what the controller's canaries found; ``figures`` is None where it is another."""
    known = {rate.link: rate for rate in rates}
    for link, each in (figures or {}).items():
        if each.canary_at_ms >= 0:
            canary = CanaryPart(
                at_ms=each.canary_at_ms,
                round_trip_seconds=round(each.canary_last_seconds, 4),
                lost=each.canary_lost,
            )
            rate = known.get(link, FlowRates(link=link))
            known[link] = rate.model_copy(update={"canary": canary})
    return tuple(known.values())


def lane_problems(stats: LaneStats) -> list[ProblemPart]:
    """What a lane itself complains about, as problems of its flow."""
    source, _, target = stats.pair.partition("->")
    sides = (
        (source, stats.source_problem),
        (target, stats.target_problem),
        (source, stats.progress_problem),
        (source, stats.source_quota),
        (target, stats.target_quota),
    )
    found = failure_parts(stats.partitions)
    found += [_of_cluster(alias, text) for alias, text in sides if text]
    found += [part for _, part in lane_logins(stats)]
    found += lane_openings(stats)
    if stats.foreign_headers:
        found.append(
            ProblemPart(
                code="FOREIGN_HEADER",
                subject=f"lane {stats.lane}",
                detail=f"{stats.foreign_headers} records had a replicator-hops header of another",
                remedy="Find who writes headers of that name; they were kept as they are.",
            )
        )
    return found


def lane_logins(stats: LaneStats) -> Iterator[tuple[str, ProblemPart]]:
    """What the lane's process logs in with and that will not hold, with the cluster's alias."""
    source, _, target = stats.pair.partition("->")
    for alias, text in ((source, stats.source_login), (target, stats.target_login)):
        if text:
            part = _of_cluster(alias, text)
            detail = f"lane process {stats.pid}: {part.detail}"
            yield alias, part.model_copy(update={"detail": detail})


def lane_openings(stats: LaneStats) -> Iterator[ProblemPart]:
    """Why clients that the lane should go over to cannot be opened; it goes on with those it has."""
    source, _, target = stats.pair.partition("->")
    for alias, text in ((source, stats.source_opening), (target, stats.target_opening)):
        if text:
            yield _of_cluster(alias, text)


def _of_cluster(alias: str, text: str) -> ProblemPart:
    code, _, told = text.partition(" ")
    detail, _, remedy = told.partition("\n")
    return ProblemPart(code=code, subject=f"cluster:{alias}", detail=detail, remedy=remedy)


def told_at_once(lanes: Iterable[LaneStats]) -> frozenset[tuple[str, int, PartitionFailure | str]]:
    """Partitions that do not move, and lanes that copy otherwise than asked: others should learn of a change at once."""
    lanes = tuple(lanes)
    failing = (
        (each.topic, each.partition, each.failure)
        for stats in lanes
        for each in stats.partitions
        if each.failure is not None
    )
    by_records = (
        (stats.link, stats.lane, stats.records_reason) for stats in lanes if stats.records_reason
    )
    return frozenset((*failing, *by_records))


def login_parts(clusters: Iterable[ClusterPlan]) -> Iterator[ProblemPart]:
    """What this process logs in with to the clusters and that will not hold."""
    for cluster in clusters:
        if (found := login_of(cluster).problem()) is not None:
            yield problem_part(found)


def failure_parts(partitions: Iterable[PartitionStats]) -> list[ProblemPart]:
    """What keeps partitions from moving now, a problem each, up to MOST_FAILURES; the rest is counted."""
    failing = [(each, each.failure) for each in partitions if each.failure is not None]
    found = [
        ProblemPart(
            code=failure.code,
            subject=f"{each.topic}/{each.partition}",
            detail=f"{failure.detail} (on the {failure.side}, since {_moment(failure.since_ms)})",
            remedy=failure.remedy,
        )
        for each, failure in failing[:MOST_FAILURES]
    ]
    rest = len(failing) - len(found)
    if rest:
        first = failing[MOST_FAILURES][1]
        found.append(
            ProblemPart(
                code=first.code,
                subject="flow",
                detail=f"{rest} more partitions of one lane do not move; the first: {first.detail}",
                remedy=first.remedy,
            )
        )
    return found


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")


class WorkerRecordWriter:
    """Writes and finally deletes one worker's record for one pair; opens its client late."""

    def __init__(
        self, plan: Plan, pair: PairPlan, identity: Identity, *, clock: Clock, client_id: str
    ) -> None:
        self._plan = plan
        self._pair = pair
        self._identity = identity
        self._clock = clock
        self._client_id = client_id
        self._writer: LogWriter | None = None
        self._written: WorkerRecord | None = None

    def write(
        self,
        *,
        lanes: tuple[int, ...],
        rates: tuple[FlowRates, ...],
        memory: MemoryPart | None = None,
        processes: int = 0,
    ) -> None:
        """Replaces the record; what is wrong with the pair's logins stands in it as well.

        Raises:
            ReplicatorError: when the target does not take it now.
        """
        record = WorkerRecord(
            source=self._pair.source.alias,
            id=self._identity.id,
            at_ms=int(self._clock.now() * 1000),
            host=self._identity.host,
            pid=self._identity.pid,
            http=self._identity.http,
            lanes=lanes,
            plan_hash=self._plan.hash,
            flows=rates,
            logins=tuple(login_parts((self._pair.source, self._pair.target))),
            memory=memory,
            processes=processes,
            tells_batches=True,
        )
        self._open().write([record.encode()])
        self._written = record

    def close(self) -> None:
        """Takes the record back, so that nobody waits for this worker."""
        if self._written is not None and self._writer is not None:
            with contextlib.suppress(ReplicatorError):  # it goes stale by itself
                self._writer.write([self._written.tombstone()])
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self) -> LogWriter:
        if self._writer is None:
            self._writer = LogWriter(
                self._pair.target,
                control_topic(self._plan.topology),
                client_id=self._client_id,
                timeout_seconds=4.0,
            )
        return self._writer
