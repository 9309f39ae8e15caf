"""How a drill is played: steady state, the fault or role change, recovery, applications move, the end.

A play waits for conditions, asks the ground at every look whether it may go on, and always ends what
it has begun. What it found is judged elsewhere.
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
from replicator.failover.rules.commands import resume_command
from replicator.failover.rules.report import TransitionReport
from replicator.failover.rules.request import StepEvent
from replicator.testing.checker.history import Role
from replicator.testing.kit.waiting import NotInTimeError, wait_until

Aborted = Literal["condition", "interrupt"]

LOOK_SECONDS = 0.25
CROSSING_SECONDS = 90.0
RECOVERY_SECONDS = 180.0
MOVE_SECONDS = 90.0
RETURN_SECONDS = 5.0
"""How long the old side is watched after it came back: it must not write anything."""


@dataclass(slots=True)
class Executed:
    """What happened when; wall-clock seconds, 0 for what did not.

    Attributes:
        began_at: steady state was there.
        fault_at: the last moment before the fault or role change.
        in_force_at: the fault was there for sure.
        mended_at: it was taken back.
        promoted_at: the other side took over.
        moved_at: applications began to move; interruptions after it are of their own making.
        ended_at: writers stopped.
        transition: the role change's own report.
        trouble: why it was not played to its end; empty when it was.
        aborted: whether it was ended early on purpose: by a condition of its file, or by a person.
    """

    began_at: float = 0.0
    fault_at: float = 0.0
    in_force_at: float = 0.0
    mended_at: float = 0.0
    promoted_at: float = 0.0
    moved_at: float = 0.0
    ended_at: float = 0.0
    transition: TransitionReport | None = None
    trouble: str = ""
    aborted: Aborted | None = None
    marks: list[tuple[float, str]] = field(default_factory=list)


class Execution:
    """One drill on one ground."""

    def __init__(
        self,
        drill: Drill,
        scene: Scene,
        *,
        ground: Environment,
        traffic: Traffic,
        steps: StepLog,
        clock: Clock,
    ) -> None:
        self._drill = drill
        self._scene = scene
        self._ground = ground
        self._traffic = traffic
        self._steps = steps
        self._clock = clock
        self._played = Executed()
        self._began: dict[str, float] = {}
        self._changing = False

    def run(self) -> Executed:
        """Plays it; errors and Ctrl-C become its trouble, the fault is ended whatever happens.

        Raises:
            KeyboardInterrupt: a second one, while the fault is ended.
        """
        played = self._played
        try:
            self._steady()
            if self._drill.kind in ROLE_KINDS:
                self._change_roles()
            else:
                self._disturb()
            self._stop_writers()
        except AbortedError as error:
            played.trouble, played.aborted = error.paragraph(), "condition"
        except ReplicatorError as error:
            played.trouble = error.paragraph()
        except KeyboardInterrupt:
            played.trouble, played.aborted = self._interrupted(), "interrupt"
        finally:
            if played.in_force_at and not played.mended_at:
                self._mend()
        if played.trouble and not self._traffic.stopped:
            # What goes on writing would never be where it belongs, and be told as lost.
            try:
                self._stop_writers()
            except ReplicatorError as error:
                played.trouble += f" {error.paragraph()}"
        played.ended_at = self._clock.now()
        return played

    def _stop_writers(self) -> None:
        with self._steps.step("writers stop") as outcome:
            outcome.result = self._traffic.stop_writing()

    def _interrupted(self) -> str:
        """What a person who ended the drill has to know."""
        kind, link = self._drill.kind, self._drill.link
        if self._changing and self._scene.real:
            return f"aborted by hand; the {kind} is still open: '{resume_command(kind, link)}' resumes it."
        return "aborted by hand."

    # -- parts of every play --------------------------------------------------------------------

    def _steady(self) -> None:
        with self._steps.step("steady state") as outcome:
            self._traffic.start()
            self._played.began_at = self._clock.now()
            self._crossing(self._played.began_at, CROSSING_SECONDS)
            self._wait(lambda: self._traffic.delivered > 0, CROSSING_SECONDS, "the group to read")
            self._pass(self._drill.load.before_seconds)
            self._ground.aim()
            outcome.result = f"{self._traffic.acknowledged} writes acknowledged"

    def _break(self, name: str) -> None:
        played = self._played
        with self._steps.step(name, part="fault") as outcome:
            played.fault_at = played.in_force_at = self._clock.now()
            played.marks.append((played.fault_at, name))
            outcome.result = self._ground.inject_fault()
            played.in_force_at = self._clock.now()

    def _mend(self) -> None:
        if not self._ground.clears_fault:
            return
        with self._steps.step("fault ends", part="fault") as outcome:
            outcome.result = self._ground.clear_fault()
            self._played.mended_at = self._clock.now()
            self._played.marks.append((self._played.mended_at, "fault ends"))

    # -- crash and cut --------------------------------------------------------------------------

    def _disturb(self) -> None:
        played, drill = self._played, self._drill
        self._break("worker killed" if drill.kind == "worker-crash" else "network cut")
        if drill.kind == "network-cut":
            with self._steps.step("cut lasts", part="fault"):
                self._pass(drill.fault.duration_seconds)
        self._mend()
        with self._steps.step("recovery") as outcome:
            self._crossing(played.in_force_at, RECOVERY_SECONDS)
            outcome.result = "every partition moves again"
        with self._steps.step("steady again"):
            self._pass(drill.load.after_seconds)
            # A partition that only had something in flight is found here, and waited for.
            self._crossing(self._clock.now(), RECOVERY_SECONDS)
        played.moved_at = self._clock.now()
        played.marks.append((played.moved_at, "group moves"))
        with self._steps.step("group moves to the other side") as outcome:
            self._traffic.stop_reading()
            exact = wait_until_exact(self._scene, timeout_seconds=MOVE_SECONDS)
            self._traffic.read_from(self._scene.target)
            self._wait(lambda: self._traffic.delivered > 0, MOVE_SECONDS, "the group to read there")
            outcome.result = exact

    # -- switchover and failover ----------------------------------------------------------------

    def _change_roles(self) -> None:
        played, drill = self._played, self._drill
        failover = drill.kind == "failover"
        if failover:
            self._break("active side cut off")
        else:
            played.fault_at = self._clock.now()
        played.marks.append((self._clock.now(), f"{drill.kind} begins"))
        with self._steps.step(f"{drill.kind} command") as outcome:
            self._changing = True
            report = played.transition = self._ground.change_roles(on_step=self._hear)
            self._changing = False
            outcome.result = f"{report.outcome}, epoch {report.epoch}"
        if report.outcome != "done":
            raise AbortedError(f"the {drill.kind} was {report.outcome}: {report.reason}")
        self._note(report)
        played.promoted_at = self._clock.now()
        played.marks.append((played.promoted_at, f"{self._scene.target.name} is active"))
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
        played.moved_at = self._clock.now()
        with self._steps.step("steady again"):
            self._pass(drill.load.after_seconds)
        if failover:
            self._mend()
            with self._steps.step("the old side is back") as outcome:
                self._pass(RETURN_SECONDS)
                outcome.result = "whether it wrote anything is judged"

    def _hear(self, event: StepEvent) -> None:
        """The role change's own steps; writers stop where a fence by word counts on it."""
        now = self._clock.now()
        if event.state == "began":
            self._began[event.step] = now
            fencing = event.step.startswith("fence") and self._scene.fenced_by_word
            if fencing and not self._traffic.stopped:
                self._traffic.stop_writing()
        elif event.state in {"done", "failed"}:
            at = self._began.get(event.step, now)
            ok = event.state == "done"
            self._steps.note(Step(event.step, at, now - at, event.text, ok, "roles"))

    def _note(self, report: TransitionReport) -> None:
        """What the role change told before anything was changed, for the judge."""
        link, now = self._scene.link, self._clock.now()
        old, new = self._scene.source.name, self._scene.target.name
        self._traffic.history.record(
            Role(link, new, report.epoch - 1, old, (self._scene.topic,), self._played.began_at),
            Role(link, new, report.epoch, new, (self._scene.topic, self._scene.copy), now),
        )
        if self._drill.kind == "switchover":
            self._traffic.history.expect([f"{new}->{old}"])

    # -- waiting --------------------------------------------------------------------------------

    def _crossing(self, since: float, timeout_seconds: float) -> None:
        """Until every partition has a copy of something written after a moment."""
        watcher = self._traffic.watcher
        self._wait(
            lambda: watcher.written_after(since) >= watcher.partitions,
            timeout_seconds,
            "records of every partition to cross",
        )

    def _wait(self, condition: Callable[[], bool], timeout_seconds: float, what: str) -> None:
        def checked() -> bool:
            self._ground.check(last_write_at=self._traffic.last_write_at)
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

    def _pass(self, seconds: float) -> None:
        """Lets time pass, looking all the while whether the drill may go on."""
        deadline = self._clock.monotonic() + seconds
        while (left := deadline - self._clock.monotonic()) > 0:
            self._ground.check(last_write_at=self._traffic.last_write_at)
            self._clock.sleep(min(LOOK_SECONDS, left))
