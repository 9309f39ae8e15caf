"""One transition under its lock: the loop between the pure machine, the steps and the journal."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from replicator.control.records.role_records import RoleRecord
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.report.report import Loss, StepResult, TransitionReport
from replicator.failover.rules.before import REPLACES, REST
from replicator.failover.rules.machine import (
    STATE_AFTER,
    STATE_OF,
    Action,
    Step,
    TransitionFacts,
    TransitionProgress,
    decide,
    promoted,
    steps_of,
)
from replicator.failover.rules.request import Question, StepEvent
from replicator.failover.steps.failback import FailbackSteps
from replicator.failover.steps.failover import FailoverSteps
from replicator.failover.steps.fence_steps import remove_fences
from replicator.failover.steps.journal import TakenOverError, why_ended
from replicator.failover.steps.switchover import Done, SwitchoverSteps
from replicator.failover.steps.transition_context import RollBackError, TransitionContext
from replicator.topology.roles import RoleState, has_roles

log = structlog.get_logger("failover")

POLL_SECONDS = 0.1


class TransitionExecutor:
    """Runs one transition to its end; for one thread."""

    def __init__(
        self, run: TransitionContext, draft: TransitionReport, *, rolling_back: bool = False
    ) -> None:
        self._run = run
        self._draft = draft
        self._rolling_back = rolling_back
        self._steps = steps_of(
            run.journal.header.kind,
            and_switch=run.request.and_switch,
            with_roles=has_roles(run.clusters.link),
        )
        self._switch = SwitchoverSteps(run)
        self._back = FailbackSteps(run)
        self._over = FailoverSteps(run)
        self._begun: dict[Step, float] = {}

    def run(self) -> TransitionReport:
        """Runs until the transition is done or rolled back; the report is recorded then.

        Raises:
            TakenOverError: another operator has taken it over.
            RefusedError: it cannot proceed now and stays open, with the reason.
            ReplicatorError: a cluster that is needed does not answer; it stays open.
        """
        try:
            self._update_other_cluster()
            while True:
                ended = self._advance()
                if ended is not None:
                    return ended
        finally:
            self._switch.close()

    def _advance(self) -> TransitionReport | None:
        progress = self._progress()
        step = progress.next
        try:
            if self._stays(progress):
                return None
            if step is not None and not progress.rolling_back and step not in self._begun:
                self._begin(step)
            return self._perform(self._decide(progress, step))
        except RollBackError as error:
            if promoted(progress):
                raise
            return self._roll_back(error.message)
        except (TakenOverError, RefusedError):
            raise
        except ReplicatorError as error:
            self._fail(step, error)
            raise

    def _stays(self, progress: TransitionProgress) -> bool:
        """Asks before a failback turns the link; without consent it ends with the reversed mirroring."""
        turns = self._draft.kind == "failback" and progress.next is Step.PREPARE
        journal = self._run.journal
        if not turns or progress.rolling_back or journal.step(Step.PREPARE) is not None:
            return False
        old, new = self._run.clusters.old.alias, self._run.clusters.new.alias
        text = f"{new} has caught up. Switch over from {old} to {new} now? Writers are fenced meanwhile."
        if self._run.answer(Question(text, 0, old_side_answers=True)):
            return False
        options = {**journal.header.options, "andSwitch": False}
        journal.header = journal.header.model_copy(update={"options": options})
        journal.write([journal.header])
        self._steps = steps_of("failback", and_switch=False)
        return True

    def _perform(self, action: Action) -> TransitionReport | None:
        """Does what the machine decided; returns the report once that ends the transition."""
        if action.do == "finish":
            return self._end("done", "")
        if action.do == "stop":
            raise RefusedError(
                action.reason, subject=self._draft.link, remedy="It stays open; resume it later."
            )
        if action.do == "roll-back":
            reason = self._switch.rollback_reason(action.reason)
            return self._roll_back(why_ended(self._run.journal.header) or reason)
        if action.do == "wait":
            self._run.clock.sleep(POLL_SECONDS)
        elif action.step is not None:
            self._run_step(action.step)
        return None

    def _progress(self) -> TransitionProgress:
        return self._run.journal.progress(self._steps, rolling_back=self._rolling_back)

    def _decide(self, progress: TransitionProgress, step: Step | None) -> Action:
        if step is None or progress.rolling_back:
            return decide(progress, TransitionFacts())
        waited = self._run.clock.monotonic() - self._begun[step]
        if step is Step.CATCH_UP:
            return decide(progress, self._back.facts(step, waited_seconds=waited))
        if step in {Step.DRAIN, Step.VERIFY, Step.PROMOTE} and Step.FENCE in self._steps:
            return decide(progress, self._switch.facts(step, waited_seconds=waited))
        return decide(progress, TransitionFacts(waited_seconds=waited))

    # A step.

    def _begin(self, step: Step) -> None:
        self._notify(step, "began")
        self._begun[step] = self._run.clock.monotonic()
        if (
            step is not Step.PROMOTE
        ):  # its intent changes the epoch: it is recorded only when the step may run
            self._intend(step)

    def _intend(self, step: Step) -> None:
        """Records that a step begins, together with the role that it begins with."""
        run = self._run
        evidence: dict[str, Any] = {"begunAt": run.journal.now_ms()}
        if step is Step.FENCE:
            evidence["before-fence"] = run.hooks(step, "before-fence")
        if step is Step.PROMOTE:
            evidence["before-promote"] = run.hooks(step, "before-promote")
        role = self._role_of(step, STATE_OF.get(step))
        run.journal.intend(step, *([role] if role is not None else []), evidence=evidence)
        if role is not None:
            # Lanes are fenced where the new role is stored: on the cluster that they write to.
            needed = step is Step.PROMOTE and run.journal_cluster != run.clusters.new
            run.write_to_other_cluster(role, needed=needed or step is Step.REJOIN)

    def _role_of(self, step: Step, state: RoleState | None) -> RoleRecord | None:
        if state is None:
            return None
        clusters = self._run.clusters
        turned = step in {Step.PROMOTE, Step.TURN, Step.COMPLETE}
        active = clusters.new if turned else clusters.old
        return self._run.role_record(active, state, f"{self._draft.kind} {step.value}")

    def _run_step(self, step: Step) -> None:
        run = self._run
        if step is Step.PROMOTE:
            self._intend(step)
        done = self._work(step)
        role = self._role_of(step, STATE_AFTER.get(step))
        seconds = run.clock.monotonic() - self._begun[step]
        run.journal.finish(
            step,
            *([role] if role is not None else []),
            *done.records,
            seconds=seconds,
            result=done.result,
            evidence=done.evidence,
        )
        if role is not None:
            run.write_to_other_cluster(role, needed=step is not Step.COMPLETE)
        log.info("step done", link=self._draft.link, step=step.value, result=done.result)
        self._notify(step, "done", done.result, seconds)

    def _work(self, step: Step) -> Done:
        kind = self._draft.kind
        steps: Mapping[Step, Callable[[], Done]] = {
            Step.PREPARE: self._switch.prepare,
            Step.FENCE: self._switch.fence,
            Step.DRAIN: self._switch.drain,
            Step.VERIFY: self._switch.verify,
            Step.PROMOTE: self._over.promote if kind == "failover" else self._switch.promote,
            Step.TURN: self._switch.turn,
            Step.RELEASE: self._switch.release,
            Step.DECLARE: self._over.declare,
            Step.COMPLETE: self._over.complete,
            Step.REJOIN: self._back.rejoin,
            Step.SALVAGE: self._back.salvage,
            Step.INJECT: self._back.inject,
            Step.REALIGN: self._back.realign,
            Step.CATCH_UP: self._back.catch_up,
            Step.MOVE_GROUPS: self._over.move_groups,
            Step.MARK: self._over.mark,
            Step.UNMARK: self._over.unmark,
        }
        return steps[step]()

    def _fail(self, step: Step | None, error: ReplicatorError) -> None:
        if step is not None:
            self._notify(step, "failed", error.message)
        log.warning("transition stops", link=self._draft.link, error=error.paragraph())

    def _notify(self, step: Step, state: Any, text: str = "", seconds: float = 0.0) -> None:  # noqa: ANN401
        self._run.on_step(StepEvent(step.value, state, text, seconds))

    # How a transition ends.

    def _update_other_cluster(self) -> None:
        """After a crash the newest role may be missing on the other cluster: write it there."""
        run = self._run
        run.journal.refresh()
        held = run.journal.state.role(self._draft.link)
        if held is None or not run.clusters.answers(run.other_cluster):
            return
        theirs = run.clusters.control(run.other_cluster).role(self._draft.link)
        if theirs is None or theirs.role().rank < held.role().rank:
            run.write_to_other_cluster(held, needed=False)

    def _roll_back(self, reason: str) -> TransitionReport:
        run, clusters = self._run, self._run.clusters
        self._rolling_back = True
        run.on_step(StepEvent("rollback", "began", reason))
        # Recorded first: nobody may go forward after a crash once the fence is removed.
        run.journal.record_rollback(reason)
        done = self._progress().done
        removed = remove_fences(run) if has_roles(clusters.link) else []
        role = run.role()
        header = run.journal.header
        touched = role.epoch != header.base_epoch or run.transition_owns_role()
        if touched or header.options.get(REPLACES):  # what it has replaced will not go on
            run.write_role(
                clusters.old, self._rest_state(done), f"rolled back: {reason}", needed=False
            )
        run.on_step(StepEvent("rollback", "done", "; ".join(removed)))
        return self._end("rolled-back", reason)

    def _rest_state(self, done: frozenset[Step]) -> RoleState:
        """The state that the link had before, or that a failback has safely reached."""
        if self._draft.kind == "failback":
            return "mirroring" if Step.REALIGN in done else "promoted"
        before = self._run.journal.header.options.get(
            REST
        )  # none in records of before it was noted
        return "promoted" if before == "promoted" else "mirroring"

    def _end(self, outcome: Any, reason: str) -> TransitionReport:  # noqa: ANN401
        run, header = self._run, self._run.journal.header
        steps = tuple(
            StepResult(record.step, record.seconds, record.result or record.state, record.evidence)
            for record in run.journal.state.steps(header.link, header.id)
        )
        report = replace(
            self._draft,
            outcome=outcome,
            reason=reason,
            epoch=run.role().epoch,
            steps=steps,
            loss=self._final_loss(),
            rto_seconds=self._rto() if outcome == "done" else None,
        )
        stored = replace(report, steps=tuple(replace(one, evidence={}) for one in steps))
        # Without evidence, which is on record with each step: once more, and it is too large to store.
        ended = header.model_copy(update={"state": outcome, "report": stored.as_json()})
        run.journal.write([ended])
        return report

    def _final_loss(self) -> Loss:
        """As it was measured after the fence, else as it was stated; for a failback the counted tail."""
        journal = self._run.journal
        measured = journal.evidence(Step.PROMOTE)
        if self._draft.kind == "failover" and measured.get("measured"):
            stored = measured.get("loss")
            if isinstance(stored, Mapping):
                return Loss.from_json(stored)
        for step, name in ((Step.SALVAGE, "loss"), (Step.DECLARE, "loss")):
            stored = journal.evidence(step).get(name) if step in self._steps else None
            if isinstance(stored, Mapping):
                return Loss.from_json(stored)
        return self._run.loss

    def _rto(self) -> float | None:
        journal = self._run.journal
        opened = journal.evidence(Step.RELEASE).get("openedAt")
        begun = journal.evidence(Step.FENCE).get("begunAt") or journal.header.at_ms
        if isinstance(opened, int) and isinstance(begun, int):
            return max(0.0, (opened - begun) / 1000)
        return None
