"""``bulk-sync``: ranges of history as tasks, one ordered chain per partition.

What runs the tasks (Spark, or processes of this machine) only schedules: no record passes through it. Declared ranges outlive the driver, and the next
run goes on with unfinished ranges under the same job.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from replicator.clock import Clock
from replicator.control.backfill.handover import (
    read_control_past_open_transactions,
    take_from_lanes,
)
from replicator.control.backfill.standstill import Standstill, why_still
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.identifiers import JsonObject, TopicPartition
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.spark.base.amounts import Amount
from replicator.spark.base.progress import progress
from replicator.spark.bulk.latest_values import compacted_only, copy_latest
from replicator.spark.bulk.manifest import RunFacts, manifest
from replicator.spark.copy.bulk_plan import BulkPlan, declarations, orders
from replicator.spark.copy.task import CopyOrder, CopyResult, result_of
from replicator.spark.copy.tasks import Tasks
from replicator.topology.plan import PairPlan, Plan

CLIENT_ID = "replicator-seed"

log = structlog.get_logger("replicator.spark")


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """What a run did; ``stopped`` are the ranges that ended early by policy."""

    results: tuple[CopyResult, ...]
    manifest: JsonObject

    @property
    def stopped(self) -> tuple[CopyResult, ...]:
        """Ranges whose partition is stopped now, with the problem."""
        return tuple(result for result in self.results if result.problem)


def run_bulk(
    tasks: Tasks,
    plan: Plan,
    found: BulkPlan,
    *,
    topology_file: Path,
    by: str,
    clock: Clock,
    shown: bool | None = None,
    declared: Callable[[], None] = lambda: None,
) -> BulkOutcome:
    """Takes the partitions from their lanes, copies them, and returns each to its lane at the exact offset.

    Args:
        tasks: what runs them.
        plan: the topology.
        found: what to copy.
        topology_file: where tasks that look at keys find the source cluster.
        by: who asked, for the record.
        clock: of the driver.
        shown: whether a progress bar is shown; None decides by the terminal.
        declared: called once the lanes have released the partitions.

    Raises:
        RefusedError: lanes are being changed.
        ReplicatorError: a task failed for good; a later run goes on where this one ended.
    """
    began_at = clock.now()
    run = f"{found.job}.{secrets.token_hex(3)}"
    backfills = declarations(found, run=run, by=by, at_ms=round(began_at * 1000))
    take_from_lanes(plan, found.pair, backfills, clock=clock)
    declared()
    wanted = orders(plan, found.pair, found.ranges, run=run, at_once=tasks.at_once)
    whole = Amount(found.records, found.size or -1)
    targets = {one.record.topic: one.record.target for one in found.ranges}
    still = Standstill(
        partial(why_still, found.pair.source, found.pair.target, targets), _say_still, clock=clock
    )
    reached = partial(copied_so_far, plan, found, whole, still)
    with progress(tasks.session, "Copying history", shown=shown, whole=whole, reached=reached):
        if found.keeps_latest and tasks.session is not None:
            compacted = compacted_only(found.pair, wanted)
            latest = copy_latest(tasks.session, compacted, topology_file=topology_file)
            left = _without(wanted, latest)
            results = (*latest, *tasks.copy(left))
        else:
            results = tasks.copy(wanted)
    control = read_control_past_open_transactions(plan, found.pair)
    every = (*results, *_finished_before(control, found.pair, found.job, results))
    facts = RunFacts(
        topology=plan.topology,
        flow=str(found.pair.id),
        job=found.job,
        run=run,
        master=tasks.master,
        began_at=began_at,
        ended_at=clock.now(),
    )
    return BulkOutcome(every, manifest(facts, found, every))


def copied_so_far(
    plan: Plan, found: BulkPlan, whole: Amount, still: Standstill | None = None
) -> Amount:
    """The part of what was planned that checkpoints on the target cover.

    What stands still is told to ``still``, which says why.

    Raises:
        ReplicatorError: the target does not answer.
    """
    try:
        stored = read_checkpoints(plan.topology, found.pair, client_id=CLIENT_ID)
    except ReplicatorError as error:
        if still is not None:
            still.unknown(error)
        raise
    reached = {key: checkpoint.offset for key, checkpoint in stored.items()}
    if still is not None:
        still.look(
            {
                one.key: reached.get(one.key, one.position)
                for one in found.ranges
                if reached.get(one.key, -1) < one.end
                and not (one.key in stored and stored[one.key].problem)
            }
        )
    return whole.part(
        sum(max(0, min(reached.get(one.key, 0), one.end) - one.position) for one in found.ranges)
    )


def _say_still(place: TopicPartition | None, reason: ReplicatorError) -> None:
    said = {"problem": reason.code, "detail": reason.message, "remedy": reason.remedy}
    if place is None:
        log.warning("the copy cannot be followed", subject=reason.subject, **said)
    else:
        log.warning("partition does not move", topic=place[0], partition=place[1], **said)


def _without(wanted: Iterable[CopyOrder], done: Iterable[CopyResult]) -> tuple[CopyOrder, ...]:
    """Orders that no result speaks of: ranges without a single record have no keys."""
    keys = {(result.topic, result.partition) for result in done}
    return tuple(order for order in wanted if (order.work.topic, order.work.partition) not in keys)


def _finished_before(
    control: ControlState, pair: PairPlan, job: str, results: Iterable[CopyResult]
) -> tuple[CopyResult, ...]:
    """What earlier runs of the job had finished: the control topic kept it."""
    here = {(result.topic, result.partition) for result in results}
    return tuple(
        result_of(backfill)
        for backfill in control.seeds(pair.source.alias)
        if backfill.state == "done"
        and backfill.run.partition(".")[0] == job
        and (backfill.topic, backfill.partition) not in here
    )
