"""What tests of role changes share: running one as an operator does, and what stands afterwards."""

import time
from collections.abc import Callable
from typing import Any

from acceptance_scene import Scene

from replicator.clock import SystemClock
from replicator.control.role_reading import read_roles
from replicator.failover.report import TransitionReport
from replicator.failover.request import StepEvent, TransitionRequest
from replicator.failover.runner import run_transition
from replicator.testing.history import Role as RoleSeen
from replicator.topology.load import require_plan
from replicator.topology.roles import Role

LINK = "link-0"


class Killed(BaseException):
    """The operator's process ends at this instant: nothing of ours may catch it."""


class Operator:
    """Runs transitions of a scene's link in this process."""

    def __init__(self, scene: Scene, name: str = "ann") -> None:
        self.plan = require_plan(scene.topology())
        self.scene = scene
        self.name = name
        self.events: list[StepEvent] = []
        self.asked: list[str] = []
        self.on: dict[tuple[str, str], Callable[[], None]] = {}

    def run(self, kind: str, *, yes: bool = True, **fields: Any) -> TransitionReport:
        """One transition; ``on`` may hold what to do at a step's event."""

        def heard(event: StepEvent) -> None:
            self.events.append(event)
            act = self.on.get((event.step, event.state))
            if act is not None:
                act()

        def asked(question) -> bool:
            self.asked.append(question.text)
            return yes

        request = TransitionRequest(kind=kind, link=LINK, by=self.name, **fields)
        return run_transition(self.plan, request, clock=SystemClock(), on_step=heard, answer=asked)

    def role(self) -> Role:
        """The role in force."""
        return read_roles(self.plan).role(self.plan.link(LINK))

    def kill_at(self, step: str, state: str) -> None:
        """The operator is killed at that instant of the next transition."""

        def die() -> None:
            raise Killed

        self.on = {(step, state): die}

    def note_role(self, *, at: float | None = None) -> None:
        """Puts the role in force into the history, for the checker."""
        role = self.role()
        at = time.time() if at is None else at
        self.scene.record(RoleSeen(LINK, role.active, role.epoch, role.active, (), at))


def steps(report: TransitionReport) -> list[str]:
    """Names of the steps that were taken."""
    return [step.step for step in report.steps]
