"""Runs a drill from its file's content to its stored report."""

import getpass
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from replicator.clock import Clock
from replicator.control.roles.read import in_force
from replicator.control.store.drills import write_drill
from replicator.drill.environment.environment import Environment, Tell
from replicator.drill.environment.link_environment import LinkEnvironment, refuse_what_cannot_be
from replicator.drill.environment.sandbox import Sandbox
from replicator.drill.execution.execution import Execution
from replicator.drill.execution.settling import SETTLE_SECONDS, settle
from replicator.drill.execution.steps import StepLog
from replicator.drill.execution.traffic import Traffic
from replicator.drill.file.plan import Drill
from replicator.drill.report.checksum_chain import Stored, append
from replicator.drill.report.metrics import Seen, measure
from replicator.drill.report.page import draw_page
from replicator.drill.report.report import Run, digest, make_report
from replicator.topology.plan import Plan

HASTY_SECONDS = 20.0
"""How long what is under way is waited for after a drill was aborted: somebody wants to be done."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where reports go and who is asked for."""

    reports: Path
    by: str = ""


def run_in_sandbox(
    drill: Drill,
    original: Mapping[str, Any] | None,
    *,
    place: Place,
    clock: Clock,
    tell: Tell,
) -> Stored:
    """Plays the drill on clusters of its own and stores the report.

    Args:
        drill: what is rehearsed.
        original: the operator's topology document, whose link is rehearsed; None for a plain one.
        place: where the report goes.
        clock: time as a dependency.
        tell: hears of every step.

    Raises:
        ReplicatorError: clusters or workers did not start; there is no report then.
    """
    with Sandbox(drill, original, clock=clock, tell=tell) as ground:
        return execute_on(ground, drill, place=place, clock=clock, tell=tell)


def run_on_link(drill: Drill, plan: Plan, *, place: Place, clock: Clock, tell: Tell) -> Stored:
    """Plays the drill on the real link and stores the report; nobody is asked any more.

    Raises:
        RefusedError: this drill cannot be run on a real link; nothing was touched.
        ReplicatorError: a cluster does not answer; there is no report then.
    """
    now = in_force(plan)
    refuse_what_cannot_be(drill, now)
    with LinkEnvironment(drill, now, file_plan=plan, clock=clock, tell=tell) as ground:
        stored = execute_on(ground, drill, place=place, clock=clock, tell=tell)
    for alias, reason in write_drill(plan, digest(stored.report)).items():
        tell("digest", f"not written into the control topic of {alias}: {reason}")
    return stored


def execute_on(
    ground: Environment, drill: Drill, *, place: Place, clock: Clock, tell: Tell
) -> Stored:
    """Plays the drill on a ground and stores the report, also of one that was ended early.

    Raises:
        ReplicatorError: the ground could not be made ready; there is no report then.
        KeyboardInterrupt: before anything was broken, or once more while the report is made.
    """
    steps = StepLog(clock, tell=tell)
    with steps.step("set-up") as outcome:
        scene = ground.ready()
        outcome.result = f"{scene.pair.id} copies {scene.topic}"
    traffic = Traffic(scene, drill.load)
    try:
        play = Execution(drill, scene, ground=ground, traffic=traffic, steps=steps, clock=clock)
        played = play.run()
        with steps.step("both sides are read and compared") as outcome:
            settled = settle(
                scene,
                traffic.events,
                loss_accepted=drill.kind == "failover",
                group_moved=bool(played.moved_at),
                timeout_seconds=HASTY_SECONDS if played.aborted else SETTLE_SECONDS,
            )
            outcome.result = "clean" if settled.report.clean else ", ".join(settled.report.names())
    finally:
        troubles = traffic.close()
    played.trouble = "; ".join(filter(None, (played.trouble, *troubles)))
    arrivals = traffic.watcher.arrivals()
    seen = Seen(drill, scene, played, settled, arrivals, traffic.watcher.partitions)
    run = Run(
        id=_new_id(drill, clock),
        by=place.by or getpass.getuser(),
        drill=drill,
        scene=scene,
        played=played,
        settled=settled,
        figures=measure(seen),
        steps=steps.steps,
        arrivals=arrivals,
    )

    def make(previous: str, number: int) -> dict[str, Any]:
        return make_report(run, previous=previous, number=number)

    return append(place.reports, make, draw=draw_page)


def _new_id(drill: Drill, clock: Clock) -> str:
    moment = datetime.fromtimestamp(clock.now(), UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{drill.name}-{secrets.token_hex(2)}"
