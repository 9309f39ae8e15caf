"""What tests of role changes share: running one as an operator does, and what stands afterwards."""

import time
from collections.abc import Callable
from typing import Any

from acceptance_scene import Scene

from replicator.clock import SystemClock
from replicator.control.roles.read import read_roles
from replicator.control.store.read import read_control
from replicator.failover.report.report import TransitionReport
from replicator.failover.rules.request import StepEvent, TransitionRequest
from replicator.failover.run.runner import run_transition
from replicator.testing import wait_until
from replicator.testing.checker.history import Role as RoleSeen
from replicator.topology.file.load import require_plan
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
        self.before_answer: Callable[[], object] = lambda: None

    def run(self, kind: str, *, yes: bool = True, **fields: Any) -> TransitionReport:
        """One transition of the scene's link; ``on`` may hold what to do at a step's event."""
        return self.run_link(LINK, kind, yes=yes, **fields)

    def run_link(
        self, link: str, kind: str, *, yes: bool = True, **fields: Any
    ) -> TransitionReport:
        """One transition of any link."""

        def heard(event: StepEvent) -> None:
            self.events.append(event)
            act = self.on.get((event.step, event.state))
            if act is not None:
                act()

        def asked(question) -> bool:
            self.asked.append(question.text)
            self.before_answer()
            return yes

        # A busy machine must not make a side look dead that a test did not kill.
        if kind != "failover":
            fields.setdefault("unreachable_after_seconds", 20.0)
        request = TransitionRequest(kind=kind, link=link, by=self.name, **fields)
        return run_transition(self.plan, request, clock=SystemClock(), on_step=heard, answer=asked)

    def role(self) -> Role:
        """The role in force."""
        return read_roles(self.plan).role(self.plan.link(LINK))

    def kill_at(self, step: str, state: str) -> None:
        """The operator is killed at that instant of the next transition."""

        def die() -> None:
            raise Killed

        self.on = {(step, state): die}

    def note_role(self, *, at: float | None = None) -> Role:
        """Puts the role in force into the history, for the checker, and returns it."""
        role = self.role()
        at = time.time() if at is None else at
        self.scene.record(RoleSeen(LINK, role.active, role.epoch, role.active, (), at))
        return role


def steps(report: TransitionReport) -> list[str]:
    """Names of the steps that were taken."""
    return [step.step for step in report.steps]


def divergent(scene: Scene, east: Any, west: Any) -> tuple[Operator, Any]:
    """A link whose worker was lost a moment ago, while a writer goes on: the last it writes is the tail.

    The tail is at most what writers write in a second at the pace on record, which is the least that
    a failover ever states. Returns the operator and the writer of the tail, which is done; the writer before it is as well.
    """
    scene.active_passive(east, west)
    worker = scene.worker()
    writer = scene.writer(east, rate=300, epoch=lambda: 0)
    scene.copying("east->west")
    operator = Operator(scene)
    wait_until(
        lambda: _pace(operator) > 100,
        timeout_seconds=30.0,
        describe="the source's pace on record",
    )
    operator.note_role(at=0.0)
    writer.stop()
    scene.past("east->west", _below(scene.source_ends("east->west")), timeout_seconds=60.0)
    worker.end()
    records = min(200, int(_pace(operator)))
    assert records > 1
    tail = scene.writer(east, rate=300, epoch=lambda: 0, max_records=records)
    tail.join()
    return operator, tail


def _below(ends: dict[int, int]) -> dict[int, int]:
    """Ends that progress is past once everything was copied."""
    return {partition: end - 1 for partition, end in ends.items()}


def _pace(operator: Operator) -> float:
    """Records per second that the last contact with the source tells of."""
    plan = operator.plan
    state = read_control(plan.topology, plan.cluster("west"), client_id="test")
    found = state.contact("east", LINK)
    return 0.0 if found is None else sum(topic.records_per_second for topic in found.topics)
