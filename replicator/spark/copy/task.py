"""What one Spark task does for one partition: copy a range, exactly once, whatever happened before.

Needs no Spark: it is a function of plain data, so it runs in a Python worker of any cluster, in a test
and in a benchmark alike. Where it begins is decided by what is stored on the target, never by Spark:
a retried or repeated task goes on at the checkpoint, and a range that is done costs one read of the control topic.
"""

import gc
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from replicator.clock import Clock, SystemClock
from replicator.control.backfill.standstill import why_still
from replicator.control.lanes.layout import lane_in
from replicator.control.records.pair_records import BackfillRecord
from replicator.control.store.state import EMPTY
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.ranges.range_copy import RangeOutcome, copy_range
from replicator.dataplane.ranges.range_patience import Patience
from replicator.dataplane.session.bounded_copy import BoundedCopy, RangeTotals
from replicator.dataplane.takeover.lane_records import EndOf
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec, PartitionWork
from replicator.errors import RefusedError, ReplicatorError, UnreachableError
from replicator.identifiers import control_topic, seed_transactional_id
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.offsets.index.index import LaneIndex
from replicator.policy.values import Throttle
from replicator.spark.base.failures import task_errors
from replicator.topology.plan import ClusterPlan

COMMIT_SECONDS = 1.0
"""How long a transaction of a bulk copy stays open: no reader waits for single records of history."""

BATCHES = "batches:"

REPEATED = Patience(seconds=20.0, refused_seconds=3.0)
"""Of an attempt of a Spark task that follows one that failed."""

_READ_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """Everything a task needs; travels by pickle, with references to secrets only.

    ``run`` is the run that declared the range. ``ends_backfill``: the range's end is the end of what
    Spark copies of the partition, and its last transaction says so to the lanes.
    """

    topology: str
    link: str
    source: ClusterPlan
    target: ClusterPlan
    settings: LaneSettings
    work: PartitionWork
    lane: int
    run: str
    start: int
    end: int
    ends_backfill: bool = True
    throttle: Throttle = Throttle()  # noqa: RUF009  frozen, so one instance is safe


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What became of a range; source offsets ``start`` to ``position``, half open.

    ``size`` are bytes of keys and values, ``checksum`` the CRC-32C of them in order of offset. With the batches
    engine ``size`` are bytes of the log, and ``checksum`` begins with ``BATCHES``: it is over the offsets and
    checksums of the batches.
    """

    topic: str
    partition: int
    start: int
    position: int
    records: int
    size: int
    checksum: str
    superseded: int
    seconds: float
    problem: str = ""
    detail: str = ""
    gaps: tuple[str, ...] = ()


def copy_order(
    order: CopyOrder,
    *,
    keep: "array[int] | None" = None,
    clock: Clock | None = None,
    patience: Patience = Patience(),  # noqa: B008  frozen, so one instance is safe
) -> CopyResult:
    """Copies the range.

    Args:
        order: the range.
        keep: offsets worth copying of a range of which only last values count.
        clock: the machine's by default.
        patience: how long it may stand still, because a cluster is away or refuses it.

    Raises:
        RefusedError: the partition is no longer this run's to copy.
        FencedError: another attempt at the same partition took over.
        NotAuthorizedError, NotFoundError: our user lacks a right, or a topic was deleted.
        ReplicatorError: nothing moved for too long.
    """
    _quiet_collector()
    clock = clock or SystemClock()
    permit = _Permit(order)
    bounded = BoundedCopy(
        writer=seed_transactional_id(
            order.topology, order.source.alias, order.target.alias,
            order.work.topic, order.work.partition,
        ),
        start=order.start,
        end=order.end,
        clock=clock,
        final_record=(
            (lambda totals, route: permit.final_record(totals, route, round(clock.now() * 1000)))
            if order.ends_backfill
            else None
        ),
        keep=keep,
    )  # fmt: skip
    outcome = copy_range(
        _spec(order), bounded, may_start=permit.given, open_index=LaneIndex, clock=clock,
        patience=patience,
        why_still=lambda: _why_still(order),
    )  # fmt: skip
    if not outcome.ours:
        return permit.known_result()
    return _result(order, outcome, now_ms=round(clock.now() * 1000))


def _why_still(order: CopyOrder) -> Iterable[ReplicatorError]:
    """What the clusters say of the partition; that one does not answer, the lane knows better."""
    work = order.work
    targets = {work.topic: work.target_topic}
    said = why_still(order.source, order.target, targets, [(work.topic, work.partition)])
    return [error for error in said.values() if not isinstance(error, UnreachableError)]


def copied(order: CopyOrder, patience: Patience = Patience()) -> CopyResult:  # noqa: B008  frozen
    """What a task runs, in a Python worker of Spark or in a process of this machine.

    Raises:
        TaskError: what ``copy_order`` raised, in a form that reaches the driver.
    """
    with task_errors():
        return copy_order(order, patience=patience)


def patience_of_attempt() -> Patience:
    """How long this attempt of a Spark task may stand still; only in such a task.

    Spark repeats a task whatever it failed with, and the first attempt has waited for what may pass.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    return REPEATED if context is not None and context.attemptNumber() else Patience()


@cache
def _quiet_collector() -> None:
    """Freezes imported modules out of collection, once per process: the copy makes short-lived objects only."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


class _Permit:
    """Whether the control topic permits this run to copy the partition; read after every fence."""

    def __init__(self, order: CopyOrder) -> None:
        self._order = order
        self._held: BackfillRecord | None = None

    def given(self, spec: LaneSpec, end_of: EndOf) -> bool:
        """Reads the control topic to its end, past whatever is open in it."""
        order = self._order
        topic = control_topic(order.topology)
        log = read_compacted(
            order.target, topic, [0],
            client_id=f"replicator-{order.topology}-seed", timeout_seconds=_READ_SECONDS,
            past_open_transactions=True, known_to_exist=True, reaches={0: end_of((topic, 0))},
        )  # fmt: skip
        control = EMPTY.fold(log[0].items())
        source, work = order.source.alias, order.work
        self._held = control.seed(source, order.link, work.topic, work.partition)
        layout = control.layout(source)
        block = layout.block(order.link) if layout is not None else None
        role = control.role(order.link)
        return (
            (role is None or role.role().lets(source))
            and self._held is not None
            and self._held.state == "seeding"
            and self._held.run == order.run
            and layout is not None
            and layout.state == "stable"
            and block is not None
            and lane_in(block, work.topic, work.partition) == spec.lane
        )

    def final_record(
        self, totals: RangeTotals, route: PartitionState, at_ms: int
    ) -> tuple[str, bytes, bytes | None]:
        """The control record that ends the backfill of the partition, with its totals."""
        if self._held is None:
            raise RuntimeError("a range cannot end before it was permitted to begin")
        done = self._held.model_copy(
            update={
                "state": "done",
                "at_ms": at_ms,
                "start": totals.start,
                "position": route.position,
                "records": totals.records,
                "bytes": totals.size,
                "checksum": _checksum(totals),
                "seconds": _seconds(totals, at_ms),
                "problem": route.problem,
                "superseded": totals.superseded,
            }
        )
        return control_topic(self._order.topology), *done.encode()

    def known_result(self) -> CopyResult:
        """The range is done by an earlier attempt.

        Raises:
            RefusedError: it is not, and another run or the lanes own the partition.
        """
        held, work = self._held, self._order.work
        if held is None or held.state != "done":
            raise RefusedError(
                "the partition is no longer this run's to copy",
                subject=f"{work.topic}/{work.partition}",
                remedy="Another run has begun, or it was handed back to the workers; see 'status'.",
            )
        return result_of(held)


def result_of(done: BackfillRecord) -> CopyResult:
    """The result that a finished range left in the control topic."""
    return CopyResult(
        topic=done.topic,
        partition=done.partition,
        start=done.start,
        position=done.position,
        records=done.records,
        size=done.bytes,
        checksum=done.checksum,
        superseded=done.superseded,
        seconds=done.seconds,
        problem=done.problem,
    )


def _spec(order: CopyOrder) -> LaneSpec:
    settings = replace(
        order.settings,
        delivery="exactly-once",
        commit_interval_seconds=max(COMMIT_SECONDS, order.settings.commit_interval_seconds),
    )
    return LaneSpec(
        topology=order.topology,
        link=order.link,
        source=order.source,
        target=order.target,
        lane=order.lane,
        layout_epoch=0,
        settings=settings,
        work=(replace(order.work, in_range=True),),
        throttle=order.throttle,
    )


def _result(order: CopyOrder, outcome: RangeOutcome, *, now_ms: int) -> CopyResult:
    totals = outcome.totals or RangeTotals(outcome.position, order.end)
    return CopyResult(
        topic=order.work.topic,
        partition=order.work.partition,
        start=totals.start,
        position=outcome.position,
        records=totals.records,
        size=totals.size,
        checksum=_checksum(totals),
        superseded=totals.superseded,
        seconds=_seconds(totals, now_ms),
        problem=outcome.problem,
        detail=outcome.detail,
        gaps=outcome.gaps,
    )


def _checksum(totals: RangeTotals) -> str:
    return f"{BATCHES if totals.of_batches else ''}{totals.checksum:08x}"


def _seconds(totals: RangeTotals, now_ms: int) -> float:
    return round(max(0, now_ms - totals.began_ms) / 1000, 3) if totals.began_ms else 0.0
