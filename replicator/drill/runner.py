"""Runs a drill from its file's content to its stored report."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from replicator.clock import Clock
from replicator.control.roles.read import in_force
from replicator.control.store.drills import write_drill
from replicator.drill.environment.environment import Environment, Notify
from replicator.drill.environment.link_environment import LinkEnvironment, refuse_what_cannot_be
from replicator.drill.environment.sandbox import Sandbox
from replicator.drill.execution.execution import Execution
from replicator.drill.execution.settling import SETTLE_SECONDS, settle
from replicator.drill.execution.steps import StepLog
from replicator.drill.execution.traffic import Traffic
from replicator.drill.file.plan import Drill
from replicator.drill.report.checksum_chain import Stored, append, require_writable
from replicator.drill.report.metrics import Seen, measure
from replicator.drill.report.page import draw_page
from replicator.drill.report.report import Run, digest, make_report
from replicator.topology.plan import Plan

ABORTED_SETTLE_SECONDS = 20.0
"""How long records in flight are waited for after a drill was aborted."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where reports go, and who runs the drill."""

    reports: Path
    by: str


def run_in_sandbox(
    drill: Drill,
    original: Mapping[str, Any] | None,
    *,
    place: Place,
    clock: Clock,
    notify: Notify,
) -> Stored:
    """Runs the drill on temporary local clusters and stores the report.

    Args:
        drill: the drill.
        original: the operator's topology document, whose link is rehearsed; None for a plain one.
        place: where the report goes.
        clock: time as a dependency.
        notify: called as each step begins and ends.

    Raises:
        InputError: the directory of reports cannot be written.
        ReplicatorError: clusters or workers did not start; there is no report then.
    """
    require_writable(place.reports)
    with Sandbox(drill, original, clock=clock, notify=notify) as environment:
        return execute_on(environment, drill, place=place, clock=clock, notify=notify)


def run_on_link(drill: Drill, plan: Plan, *, place: Place, clock: Clock, notify: Notify) -> Stored:
    """Runs the drill on the real link and stores the report; asks no more questions.

    Raises:
        InputError: the directory of reports cannot be written; nothing was touched.
        RefusedError: this drill cannot be run on a real link; nothing was touched.
        ReplicatorError: a cluster does not answer; there is no report then.
    """
    require_writable(place.reports)
    now = in_force(plan)
    refuse_what_cannot_be(drill, now)
    with LinkEnvironment(drill, now, file_plan=plan, clock=clock, notify=notify) as environment:
        stored = execute_on(environment, drill, place=place, clock=clock, notify=notify)
    for alias, reason in write_drill(plan, digest(stored.report)).items():
        notify("digest", f"not written into the control topic of {alias}: {reason}")
    return stored


def execute_on(
    environment: Environment, drill: Drill, *, place: Place, clock: Clock, notify: Notify
) -> Stored:
    """Runs the drill in an environment and stores the report, also of one that ended early.

    Raises:
        ReplicatorError: the environment could not be set up; there is no report then.
        KeyboardInterrupt: before the fault began, or a second one while the report is made.
    """
    steps = StepLog(clock, notify=notify)
    with steps.step("set-up") as outcome:
        scene = environment.ready()
        outcome.result = f"{scene.pair.id} copies {scene.topic}"
    traffic = Traffic(scene, drill.load)
    try:
        execution = Execution(
            drill, scene, environment=environment, traffic=traffic, steps=steps, clock=clock
        )
        executed = execution.run()
        with steps.step("both sides are read and compared") as outcome:
            settled = settle(
                scene,
                traffic.events,
                loss_accepted=drill.kind == "failover",
                group_moved=bool(executed.moved_at),
                timeout_seconds=ABORTED_SETTLE_SECONDS if executed.aborted else SETTLE_SECONDS,
            )
            outcome.result = "clean" if settled.report.clean else ", ".join(settled.report.names())
    finally:
        problems = traffic.close()
    executed.trouble = "; ".join(filter(None, (executed.trouble, *problems)))
    arrivals = traffic.watcher.arrivals()
    seen = Seen(drill, scene, executed, settled, arrivals, traffic.watcher.partitions)
    run = Run(
        id=_new_id(drill, clock),
        by=place.by,
        drill=drill,
        scene=scene,
        executed=executed,
        settled=settled,
        metrics=measure(seen),
        steps=steps.steps,
        arrivals=arrivals,
    )

    def make(previous: str, number: int) -> dict[str, Any]:
        return make_report(run, previous=previous, number=number)

    return append(place.reports, make, draw=draw_page)


def _new_id(drill: Drill, clock: Clock) -> str:
    moment = datetime.fromtimestamp(clock.now(), UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{drill.name}-{secrets.token_hex(2)}"
