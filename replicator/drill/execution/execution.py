"""Runs a drill: steady state, the fault or role change, recovery, applications move, the end.

It waits for conditions, checks the abort conditions all the while, and always clears the fault that it
injected. The results are judged in ``drill.report``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from replicator.clock import Clock
from replicator.drill.environment.environment import Environment, Scene
from replicator.drill.execution.group_moves import wait_until_exact
from replicator.drill.execution.steps import Step, StepLog
from replicator.drill.execution.traffic import Traffic
from replicator.drill.file.errors import AbortedError
from replicator.drill.file.plan import ROLE_KINDS, Drill
from replicator.errors import ReplicatorError
from replicator.failover.report.report import TransitionReport
from replicator.failover.rules.commands import resume_command
from replicator.failover.rules.request import StepEvent
from replicator.testing.checker.history import Role
from replicator.testing.kit.waiting import NotInTimeError, wait_until

Aborted = Literal["condition", "interrupt"]

LOOK_SECONDS = 0.25
CROSSING_SECONDS = 90.0
RECOVERY_SECONDS = 180.0
MOVE_SECONDS = 90.0
RETURN_SECONDS = 5.0
"""How long the drill goes on after the old cluster came back, which must not write anything."""


@dataclass(slots=True)
class Executed:
    """What happened when; wall-clock seconds, 0 for what did not.

    Attributes:
        began_at: steady state was reached.
        fault_at: the last moment before the fault or role change.
        in_force_at: the fault was certainly in force.
        fault_cleared_at: it was cleared.
        promoted_at: the other cluster took over.
        moved_at: applications began to move; later interruptions are caused by the move.
        ended_at: writers stopped.
        transition: the role change's own report.
        trouble: why it did not run to its end; empty when it did.
        aborted: whether it was ended early on purpose: by a condition of its file, or by a person.
    """

    began_at: float = 0.0
    fault_at: float = 0.0
    in_force_at: float = 0.0
    fault_cleared_at: float = 0.0
    promoted_at: float = 0.0
    moved_at: float = 0.0
    ended_at: float = 0.0
    transition: TransitionReport | None = None
    trouble: str = ""
    aborted: Aborted | None = None
    marks: list[tuple[float, str]] = field(default_factory=list)


class Execution:
    """One drill in one environment."""

    def __init__(
        self,
        drill: Drill,
        scene: Scene,
        *,
        environment: Environment,
        traffic: Traffic,
        steps: StepLog,
        clock: Clock,
    ) -> None:
        self._drill = drill
        self._scene = scene
        self._environment = environment
        self._traffic = traffic
        self._steps = steps
        self._clock = clock
        self._executed = Executed()
        self._began: dict[str, float] = {}
        self._changing = False

    def run(self) -> Executed:
        """Runs it; errors and Ctrl-C are recorded in ``trouble``, the fault is cleared in any case.

        Raises:
            KeyboardInterrupt: a second one, while the fault is cleared.
        """
        executed = self._executed
        try:
            self._steady()
            if self._drill.kind in ROLE_KINDS:
                self._change_roles()
            else:
                self._run_fault()
            self._stop_writers()
        except AbortedError as error:
            executed.trouble, executed.aborted = error.paragraph(), "condition"
        except ReplicatorError as error:
            executed.trouble = error.paragraph()
        except KeyboardInterrupt:
            executed.trouble, executed.aborted = self._interrupted(), "interrupt"
        finally:
            if executed.in_force_at and not executed.fault_cleared_at:
                self._clear_fault()
        if executed.trouble and not self._traffic.stopped:
            # Records that are still being written would be counted as lost.
            try:
                self._stop_writers()
            except ReplicatorError as error:
                executed.trouble += f" {error.paragraph()}"
        executed.ended_at = self._clock.now()
        return executed

    def _stop_writers(self) -> None:
        with self._steps.step("writers stop") as outcome:
            outcome.result = self._traffic.stop_writing()

    def _interrupted(self) -> str:
        """What the person who aborted the drill has to know."""
        kind, link = self._drill.kind, self._drill.link
        if self._changing and self._scene.real:
            return f"aborted by hand; the {kind} is still open: '{resume_command(kind, link)}' resumes it."
        return "aborted by hand."

    # -- parts of every drill -------------------------------------------------------------------

    def _steady(self) -> None:
        with self._steps.step("steady state") as outcome:
            self._traffic.start()
            self._executed.began_at = self._clock.now()
            self._crossing(self._executed.began_at, CROSSING_SECONDS)
            self._wait(lambda: self._traffic.delivered > 0, CROSSING_SECONDS, "the group to read")
            self._hold(self._drill.load.before_seconds)
            self._environment.aim()
            outcome.result = f"{self._traffic.acknowledged} writes acknowledged"

    def _inject_fault(self, name: str) -> None:
        executed = self._executed
        with self._steps.step(name, part="fault") as outcome:
            executed.fault_at = executed.in_force_at = self._clock.now()
            executed.marks.append((executed.fault_at, name))
            outcome.result = self._environment.inject_fault()
            executed.in_force_at = self._clock.now()

    def _clear_fault(self) -> None:
        if not self._environment.clears_fault:
            return
        with self._steps.step("fault ends", part="fault") as outcome:
            outcome.result = self._environment.clear_fault()
            self._executed.fault_cleared_at = self._clock.now()
            self._executed.marks.append((self._executed.fault_cleared_at, "fault ends"))

    # -- crash and cut --------------------------------------------------------------------------

    def _run_fault(self) -> None:
        executed, drill = self._executed, self._drill
        self._inject_fault("worker killed" if drill.kind == "worker-crash" else "network cut")
        if drill.kind == "network-cut":
            with self._steps.step("cut lasts", part="fault"):
                self._hold(drill.fault.duration_seconds)
        self._clear_fault()
        with self._steps.step("recovery") as outcome:
            self._crossing(executed.in_force_at, RECOVERY_SECONDS)
            outcome.result = "every partition moves again"
        with self._steps.step("steady again"):
            self._hold(drill.load.after_seconds)
            # A partition that only had something in flight is found here, and waited for.
            self._crossing(self._clock.now(), RECOVERY_SECONDS)
        executed.moved_at = self._clock.now()
        executed.marks.append((executed.moved_at, "group moves"))
        with self._steps.step("group moves to the other side") as outcome:
            self._traffic.stop_reading()
            exact = wait_until_exact(self._scene, timeout_seconds=MOVE_SECONDS)
            self._traffic.read_from(self._scene.target)
            self._wait(lambda: self._traffic.delivered > 0, MOVE_SECONDS, "the group to read there")
            outcome.result = exact

    # -- switchover and failover ----------------------------------------------------------------

    def _change_roles(self) -> None:
        executed, drill = self._executed, self._drill
        failover = drill.kind == "failover"
        if failover:
            self._inject_fault("active side cut off")
        else:
            executed.fault_at = self._clock.now()
        executed.marks.append((self._clock.now(), f"{drill.kind} begins"))
        with self._steps.step(f"{drill.kind} command") as outcome:
            self._changing = True
            report = executed.transition = self._environment.change_roles(on_step=self._on_step)
            self._changing = False
            outcome.result = f"{report.outcome}, epoch {report.epoch}"
        if report.outcome != "done":
            raise AbortedError(f"the {drill.kind} was {report.outcome}: {report.reason}")
        self._record_roles(report)
        executed.promoted_at = self._clock.now()
        executed.marks.append((executed.promoted_at, f"{self._scene.target.name} is active"))
        with self._steps.step("applications move"):
            if failover:
                self._traffic.lose()
            else:
                self._traffic.stop_reading()
            self._traffic.write_to(self._scene.target)
            self._traffic.read_from(self._scene.target)
            self._wait(lambda: self._traffic.wrote_last > 0, MOVE_SECONDS, "a write there")
            since = self._clock.now()
            self._wait(
                lambda: self._traffic.read_written_after(since), MOVE_SECONDS, "a new read there"
            )
        executed.moved_at = self._clock.now()
        with self._steps.step("steady again"):
            self._hold(drill.load.after_seconds)
        if failover:
            self._clear_fault()
            with self._steps.step("the old side is back") as outcome:
                self._hold(RETURN_SECONDS)
                outcome.result = "whether it wrote anything is judged"

    def _on_step(self, event: StepEvent) -> None:
        """The role change's own steps; writers stop where the fence relies on the operator."""
        now = self._clock.now()
        if event.state == "began":
            self._began[event.step] = now
            fencing = event.step.startswith("fence") and self._scene.fenced_by_word
            if fencing and not self._traffic.stopped:
                self._traffic.stop_writing()
        elif event.state in {"done", "failed"}:
            at = self._began.get(event.step, now)
            ok = event.state == "done"
            self._steps.add(Step(event.step, at, now - at, event.text, ok, "roles"))

    def _record_roles(self, report: TransitionReport) -> None:
        """Records the role change in the history, for the checker."""
        link, now = self._scene.link, self._clock.now()
        old, new = self._scene.source.name, self._scene.target.name
        self._traffic.history.record(
            Role(link, new, report.epoch - 1, old, (self._scene.topic,), self._executed.began_at),
            Role(link, new, report.epoch, new, (self._scene.topic, self._scene.copy), now),
        )
        if self._drill.kind == "switchover":
            self._traffic.history.expect([f"{new}->{old}"])

    # -- waiting --------------------------------------------------------------------------------

    def _crossing(self, since: float, timeout_seconds: float) -> None:
        """Waits until every partition has a copy of a record written after a moment."""
        watcher = self._traffic.watcher
        self._wait(
            lambda: watcher.written_after(since) >= watcher.partitions,
            timeout_seconds,
            "records of every partition to cross",
        )

    def _wait(self, condition: Callable[[], bool], timeout_seconds: float, what: str) -> None:
        def checked() -> bool:
            self._environment.check(last_write_at=self._traffic.last_write_at)
            return condition()

        try:
            wait_until(
                checked,
                timeout_seconds=timeout_seconds,
                describe=what,
                interval_seconds=LOOK_SECONDS,
            )
        except NotInTimeError as error:
            error.subject = error.subject or self._scene.link
            raise

    def _hold(self, seconds: float) -> None:
        """Waits for some time, checking the abort conditions all the while."""
        deadline = self._clock.monotonic() + seconds
        while (left := deadline - self._clock.monotonic()) > 0:
            self._environment.check(last_write_at=self._traffic.last_write_at)
            self._clock.sleep(min(LOOK_SECONDS, left))
