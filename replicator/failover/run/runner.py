"""Carries a transition out: the one entry of the room.

Look (roles, checks, loss), ask, lock, then one step after the other: the journal says before and after
each what is intended and what came of it, and the pure machine says when it may be taken. A run that
ends at any point is gone on with by ``--resume`` or taken back by ``--rollback``, by anybody.
"""

import secrets
from dataclasses import replace

from replicator.clock import Clock
from replicator.control.roles.read import RolesRead, read_roles
from replicator.control.store.role_records import TransitionRecord
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.clusters.fencing import method_in_force
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters, find_link
from replicator.failover.rules.client_properties import client_properties
from replicator.failover.rules.commands import resume_command, rollback_command
from replicator.failover.rules.directions import directions
from replicator.failover.rules.locks import (
    Lock,
    newest_role,
    open_transition,
    others_open,
    overtaken_transitions,
)
from replicator.failover.rules.machine import steps_of
from replicator.failover.rules.report import Loss, StepResult, TransitionReport
from replicator.failover.rules.request import Answer, OnStep, Question, TransitionRequest
from replicator.failover.run.executor import TransitionExecutor
from replicator.failover.steps.journal import Journal, why_ended
from replicator.failover.steps.preflight import Preflight
from replicator.failover.steps.transition_context import TransitionContext
from replicator.topology.plan import LinkPlan, Plan
from replicator.topology.roles import Role, has_roles


def run_transition(
    plan: Plan,
    request: TransitionRequest,
    *,
    clock: Clock,
    on_step: OnStep,
    answer: Answer,
) -> TransitionReport:
    """Runs, resumes or rolls back one role change. Blocking.

    A check that fails gives a report with the outcome ``refused``; nothing was changed then.

    Args:
        plan: as compiled from the file; roles are read from the clusters.
        request: what is wanted.
        clock: time as a dependency.
        on_step: hears of every step as it begins, goes on and ends.
        answer: asked once, after the loss was stated and before anything changes.

    Raises:
        InputError: no such link or cluster.
        RefusedError: another transition has the link, or what is asked for cannot be.
        ReplicatorError: a cluster that is needed does not answer; resume later.
    """
    began_ms = round(clock.now() * 1000)
    link = find_link(plan, request.link)
    if has_roles(link) and not link.standby:
        raise RefusedError(_NO_WAY_BACK, subject=link.name, remedy=_NO_WAY_BACK_REMEDY)
    read = read_roles(
        plan,
        client_id=CLIENT_ID,
        timeout_seconds=request.unreachable_after_seconds,
        links=[link],
    )
    plan = read.oriented()  # other links over the same clusters may have turned as well
    link = plan.link(link.name)
    held = open_transition(read.states.values(), link.name)
    if held is not None and (request.resume or request.roll_back):
        return _go_on(plan, link, held, request, clock=clock, on_step=on_step)
    if request.resume or request.roll_back:
        raise _nothing_open(link, read)
    return _new(
        plan, link, request, read, began_ms=began_ms, clock=clock, on_step=on_step, answer=answer
    )


def _new(
    plan: Plan,
    link: LinkPlan,
    request: TransitionRequest,
    read: RolesRead,
    *,
    began_ms: int,
    clock: Clock,
    on_step: OnStep,
    answer: Answer,
) -> TransitionReport:
    """Looks, asks, takes the lock and carries a new transition out."""
    role = read.role(link)
    held = open_transition(read.states.values(), link.name)
    if held is not None and not (request.kind == "failover" and request.take_over):
        raise Lock(held).refusal(began_ms)
    source, target = directions(link, role, request, silent=frozenset(read.silent))
    with LinkClusters(plan, link, plan.cluster(source), plan.cluster(target)) as sides:
        sides.silent = {
            alias: error for alias, error in read.silent.items() if alias in link.clusters
        }
        if not read.silent or request.kind != "failover":
            sides.look(request.unreachable_after_seconds)
        header = TransitionRecord(
            link=link.name, id=secrets.token_hex(6), kind=request.kind, state="open",
            source=source, target=target, home=source if request.kind == "failback" else target,
            token=secrets.token_hex(8), at_ms=began_ms, by=request.by, plan_hash=plan.hash,
            base_epoch=role.epoch, fencing=_fencing_word(link, request),
            options={
                "tail": request.tail, "andSwitch": request.and_switch,
                "manualFence": request.manual_fence,
                "stays": has_roles(link) and target == role.active,
            },
        )  # fmt: skip
        checked = Preflight(sides, request, role, clock)
        loss = _check(checked)
        # What was stated is kept for whoever goes on after a crash.
        options = {**header.options, "loss": loss.as_json()}
        header = header.model_copy(update={"options": options})
        draft = _draft(header, checked, loss, sides)
        if request.dry_run or not checked.ok:
            outcome = draft.outcome if checked.ok else "refused"
            steps = steps_of(
                request.kind, and_switch=request.and_switch, with_roles=has_roles(link)
            )
            shown = tuple(StepResult(step.value, 0.0, "would be done") for step in steps)
            reason = "dry run: nothing was changed" if checked.ok else _first_reason(checked)
            return replace(draft, dry_run=request.dry_run, outcome=outcome,
                           reason=reason, steps=shown if checked.ok else ())  # fmt: skip
        if not answer(_question(header, loss, old_side_answers=sides.answers(sides.old))):
            return replace(draft, outcome="refused", reason="not confirmed")
        with_lock = _journal(sides, header, clock)
        try:
            if held is not None:
                _supersede(with_lock, held)
            with_lock.begin()
            _look_again(with_lock, sides, role)
            for one in overtaken_transitions(read.states.values(), link.name):
                _supersede(with_lock, one)
            run = TransitionContext(
                sides, with_lock, request, clock, on_step,
                method_in_force(link.procedure.fencing, stated=request.manual_fence), loss,
            )  # fmt: skip
            return TransitionExecutor(run, draft).carry()
        finally:
            with_lock.close()


def _go_on(
    plan: Plan,
    link: LinkPlan,
    held: TransitionRecord,
    request: TransitionRequest,
    *,
    clock: Clock,
    on_step: OnStep,
) -> TransitionReport:
    """Resumes or takes back an open transition; whoever ran it is fenced."""
    if held.kind != request.kind:
        raise RefusedError(
            f"the open transition is a {held.kind}, begun by {held.by}", subject=link.name,
            remedy=(rollback_command(held.kind, link.name) if request.roll_back else "")
            or resume_command(held.kind, link.name),
        )  # fmt: skip
    with LinkClusters(plan, link, plan.cluster(held.source), plan.cluster(held.target)) as sides:
        sides.look(request.unreachable_after_seconds)
        options = held.options
        asked = replace(
            request,
            to=held.target,
            tail="inject" if options.get("tail") == "inject" else "keep",
            and_switch=bool(options.get("andSwitch", True)),
            manual_fence=bool(options.get("manualFence")) or request.manual_fence,
        )
        header = held.model_copy(update={"by": request.by})
        stated = Loss.from_json(options["loss"]) if "loss" in options else Loss()
        journal = _journal(sides, header, clock)
        try:
            journal.seize()
            run = TransitionContext(
                sides, journal, asked, clock, on_step,
                method_in_force(link.procedure.fencing, stated=asked.manual_fence), stated,
            )  # fmt: skip
            draft = _draft(journal.header, None, stated, sides)
            taking_back = request.roll_back or bool(why_ended(journal.header))
            return TransitionExecutor(run, draft, taking_back=taking_back).carry()
        finally:
            journal.close()


def _journal(sides: LinkClusters, header: TransitionRecord, clock: Clock) -> Journal:
    return Journal(sides, header, clock=clock)


def _supersede(journal: Journal, held: TransitionRecord) -> None:
    """A failover ends another transition: its runner finds that out at its next write."""
    journal.end_other(held.model_copy(update={"state": "superseded"}))


def _look_again(journal: Journal, sides: LinkClusters, seen: Role) -> None:
    """Under the lock: the link is as it was looked at before the question, on either side.

    Hours may lie between the look and the answer. Of two operators whose journals stand on different
    sides each writes first and looks then, so that at least one of them gives way.

    Raises:
        RefusedError: it is not; the lock was given back.
    """
    states = [journal.state]
    away = sides.old if journal.header.home == sides.new.alias else sides.new
    if sides.answers(away):
        try:
            states.append(sides.control(away))
        except ReplicatorError as error:
            sides.silent[str(away.alias)] = error
    other = others_open(states, journal.header)
    if other is not None:
        raise journal.withdraw(f"{other.by} began a {other.kind} of the link in the same moment")
    newest = newest_role(states, sides.link.name)
    if newest is not None and newest.role().rank != seen.rank:
        raise journal.withdraw(
            f"the link changed since it was looked at: {newest.active} is active in epoch "
            f"{newest.epoch}, {newest.state}"
        )


def _nothing_open(link: LinkPlan, read: RolesRead) -> RefusedError:
    """Nothing to go on with, as far as can be seen."""
    silent = ", ".join(alias for alias in read.silent if alias in link.clusters)
    hidden = f", as far as can be seen: {silent} does not answer" if silent else ""
    return RefusedError(
        f"no transition of the link is open{hidden}", subject=link.name,
        remedy=f"Bring {silent} back, or see 'replicator failover --help'." if silent else
        f"Look at 'replicator history --link {link.name}'.",
    )  # fmt: skip


def _check(checked: Preflight) -> Loss:
    kind = checked.request.kind
    if not has_roles(checked.sides.link):
        return checked.leaving()
    if kind == "failover":
        return checked.failover()
    checked.switchover() if kind == "switchover" else checked.failback()
    return Loss()


def _draft(
    header: TransitionRecord, checked: Preflight | None, loss: Loss, sides: LinkClusters
) -> TransitionReport:
    return TransitionReport(
        id=header.id, kind=header.kind, link=header.link,
        from_cluster=header.source, to_cluster=header.target, epoch=header.base_epoch,
        outcome="done", at_ms=header.at_ms, by=header.by, plan_hash=header.plan_hash,
        checks=tuple(checked.checks) if checked is not None else (),
        loss=loss, fencing=header.fencing,
        client_properties=client_properties(sides.link, sides.new),
    )  # fmt: skip


def _question(header: TransitionRecord, loss: Loss, *, old_side_answers: bool) -> Question:
    stated = "Nothing will be lost."
    if header.kind == "failover":
        by = "exactly" if loss.exact else "at most, by the last contact,"
        stated = f"Lost will be {by} {loss.records} records, {loss.seconds:.1f} s."
        if not loss.known:
            stated = "How much will be lost is not known: the old side was never in contact."
        stated += "".join(
            f"\n  {one.topic}: {one.records} records, {one.seconds:.1f} s" for one in loss.topics
        )
    return Question(
        f"{stated}\n{header.kind.capitalize()} of link '{header.link}' from {header.source} to "
        f"{header.target}?",
        loss.records, loss.seconds, loss.known, old_side_answers,
    )  # fmt: skip


def _first_reason(checked: Preflight) -> str:
    wrong = next((check for check in checked.checks if not check.ok), None)
    return "" if wrong is None else f"{wrong.check}: {wrong.detail}"


def _fencing_word(link: LinkPlan, request: TransitionRequest) -> str:
    if not has_roles(link):
        return "none"
    if request.kind == "failover":
        return "epoch"
    method = method_in_force(link.procedure.fencing, stated=request.manual_fence)
    return method.method if method is not None else "none"


_NO_WAY_BACK = "under names that carry the source the other direction would copy other topics"
_NO_WAY_BACK_REMEDY = "Use naming: identity for a link that is to turn around."
