"""Runs a transition: the entry point of ``failover``.

It reads roles, runs the checks, states the loss, asks, takes the lock, and then runs one step after the
other. The journal records each step before and after it; the pure machine decides when a step may run.
An interrupted run can be resumed (``--resume``) or rolled back (``--rollback``) by anybody; where none is open,
``--rollback`` removes a fence that was left on the active cluster.
"""

import secrets
from dataclasses import replace

from replicator.clock import Clock
from replicator.control.records.role_records import TransitionRecord
from replicator.control.roles.link_facts import active_fence
from replicator.control.roles.open_transitions import (
    open_transition,
    overtaken_transitions,
)
from replicator.control.roles.read import RolesRead, read_roles
from replicator.errors import NotAuthorizedError, RefusedError
from replicator.failover.clusters.fencing import method_in_force
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters, find_link
from replicator.failover.report.report import Loss, StepResult, TransitionReport
from replicator.failover.rules.client_properties import client_properties
from replicator.failover.rules.commands import resume_command, rollback_command
from replicator.failover.rules.directions import directions
from replicator.failover.rules.locks import Lock
from replicator.failover.rules.machine import steps_of
from replicator.failover.rules.request import (
    Answer,
    Kind,
    OnStep,
    OpenTransactions,
    Question,
    TransitionRequest,
)
from replicator.failover.run.executor import TransitionExecutor
from replicator.failover.run.refusals import cannot_reverse, nothing_open
from replicator.failover.run.taking import begin, take_over, what_was_before
from replicator.failover.steps.journal import ROLLBACK_REASON, Journal, why_ended
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
        request: the operator's request.
        clock: time as a dependency.
        on_step: called as each step begins, reports and ends.
        answer: called after the loss was stated and before anything changes, and once more before a
            failback goes on to its switchover.

    Raises:
        InputError: no such link or cluster.
        RefusedError: another transition has the link, or the request makes no sense.
        NotAuthorizedError: a control topic may not be read, so that the role is not known.
        ReplicatorError: a cluster that is needed does not answer; resume later.
    """
    began_ms = round(clock.now() * 1000)
    link = find_link(plan, request.link)
    if has_roles(link) and not link.standby:
        raise cannot_reverse(link)
    read = read_roles(
        plan,
        client_id=CLIENT_ID,
        timeout_seconds=request.unreachable_after_seconds,
        links=[link],
    )
    denied = [error for error in read.silent.values() if isinstance(error, NotAuthorizedError)]
    if denied:  # it is not down: what it says of the role only may not be read
        raise denied[0]
    plan = read.oriented()  # other links over the same clusters may have been reversed as well
    link = plan.link(link.name)
    held = open_transition(read.states.values(), link.name)
    if held is not None and (request.resume or request.roll_back):
        return _go_on(plan, link, held, request, clock=clock, on_step=on_step, answer=answer)
    if request.roll_back and _left_fence(link, read):
        return _remove_left_fence(
            plan, link, request, read, began_ms=began_ms, clock=clock, on_step=on_step, answer=answer
        )  # fmt: skip
    if request.resume or request.roll_back:
        raise nothing_open(link, read)
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
    """Checks, asks, takes the lock and runs a new transition."""
    role = read.role(link)
    held = open_transition(read.states.values(), link.name)
    if held is not None and not (request.kind == "failover" and request.take_over):
        raise Lock(held).refusal(began_ms)
    source, target = directions(
        link, role, request, silent=frozenset(read.silent),
        fenced=active_fence(read.states.values(), link, role) is not None,
    )  # fmt: skip
    with LinkClusters(plan, link, plan.cluster(source), plan.cluster(target)) as clusters:
        clusters.silent = {
            alias: error for alias, error in read.silent.items() if alias in link.clusters
        }
        if not read.silent or request.kind != "failover":
            clusters.look(request.unreachable_after_seconds)
        header = _header(
            plan, link, request, role, kind=request.kind, source=source, target=target,
            home=source if request.kind == "failback" else target, began_ms=began_ms,
            options={
                "tail": request.tail, "tailTopics": dict(request.tail_topics), "openTransactions": request.open_transactions, "andSwitch": request.and_switch,
                "manualFence": request.manual_fence,
                "stays": has_roles(link) and target == role.active,
                **what_was_before(read.states.values(), role, replaced=held),
            },
        )  # fmt: skip
        checked = Preflight(clusters, request, role, clock)
        loss = _check(checked)
        # The stated loss is kept, so that a resumed run reports it too.
        options = {**header.options, "loss": loss.as_json()}
        header = header.model_copy(update={"options": options})
        draft = _draft(header, checked, loss, clusters)
        if request.dry_run or not checked.ok:
            outcome = draft.outcome if checked.ok else "refused"
            steps = steps_of(
                request.kind, and_switch=request.and_switch, with_roles=has_roles(link)
            )
            shown = tuple(StepResult(step.value, 0.0, "would be done") for step in steps)
            reason = "dry run: nothing was changed" if checked.ok else _first_reason(checked)
            return replace(draft, dry_run=request.dry_run, outcome=outcome,
                           reason=reason, steps=shown if checked.ok else ())  # fmt: skip
        if not answer(_question(header, loss, old_side_answers=clusters.answers(clusters.old))):
            return replace(draft, outcome="refused", reason="not confirmed")
        journal = _journal(clusters, header, clock)
        try:
            begin(
                journal, clusters, replaced=held,
                overtaken=overtaken_transitions(read.states.values(), link.name),
            )  # fmt: skip
            run = TransitionContext(
                clusters, journal, request, clock, on_step,
                method_in_force(link.procedure.fencing, stated=request.manual_fence), loss, answer,
            )  # fmt: skip
            return TransitionExecutor(run, draft).run()
        finally:
            journal.close()


def _header(
    plan: Plan,
    link: LinkPlan,
    request: TransitionRequest,
    role: Role,
    *,
    kind: Kind,
    source: str,
    target: str,
    home: str,
    began_ms: int,
    options: dict[str, object],
) -> TransitionRecord:
    """The record of a transition that begins now; nothing is written."""
    return TransitionRecord(
        link=link.name, id=secrets.token_hex(6), kind=kind, state="open", source=source, target=target, home=home,
        token=secrets.token_hex(8), at_ms=began_ms, by=request.by, plan_hash=plan.hash,
        base_epoch=role.epoch, fencing=_fencing_word(link, request), options=options,
    )  # fmt: skip


def _left_fence(link: LinkPlan, read: RolesRead) -> bool:
    """Whether a fence of the active cluster belongs to no open transition, by what both clusters say.

    Where one does not answer, the transition may be open there, and may have promoted it.
    """
    role = read.role(link)
    known = role.state != "conflict" and not set(link.clusters) & read.silent.keys()
    return known and active_fence(read.states.values(), link, role) is not None


def _remove_left_fence(
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
    """Removes a fence of the active cluster that belongs to no open transition, under the lock of the link.

    It runs as a switchover that did nothing and is rolled back, so that another process can follow one that is interrupted.
    """
    role = read.role(link)
    active = role.active
    other = next(str(alias) for alias in link.clusters if alias != active)
    with LinkClusters(plan, link, plan.cluster(active), plan.cluster(other)) as clusters:
        clusters.look(request.unreachable_after_seconds)
        before = what_was_before(read.states.values(), role, replaced=None)
        header = _header(
            plan, link, request, role, kind="switchover", source=active, target=other, home=active,
            began_ms=began_ms, options={**before, ROLLBACK_REASON: f"a fence of {active} had stayed"},
        )  # fmt: skip
        journal = _journal(clusters, header, clock)
        try:
            begin(journal, clusters, replaced=None, overtaken=())
            run = TransitionContext(
                clusters, journal, request, clock, on_step, link.procedure.fencing, answer=answer
            )
            draft = _draft(header, None, Loss(), clusters)
            return TransitionExecutor(run, draft, rolling_back=True).run()
        finally:
            journal.close()


def _go_on(
    plan: Plan,
    link: LinkPlan,
    held: TransitionRecord,
    request: TransitionRequest,
    *,
    clock: Clock,
    on_step: OnStep,
    answer: Answer,
) -> TransitionReport:
    """Resumes or rolls back an open transition; the process that runs it now is fenced."""
    if held.kind != request.kind:
        raise RefusedError(
            f"the open transition is a {held.kind}, begun by {held.by}", subject=link.name,
            remedy=(rollback_command(held.kind, link.name) if request.roll_back else "")
            or resume_command(held.kind, link.name),
        )  # fmt: skip
    with LinkClusters(plan, link, plan.cluster(held.source), plan.cluster(held.target)) as clusters:
        clusters.look(request.unreachable_after_seconds)
        options = held.options
        request = replace(
            request,
            to=held.target,
            tail="inject" if options.get("tail") == "inject" else "keep",
            open_transactions=_open_transactions(request, options.get("openTransactions")),
            and_switch=bool(options.get("andSwitch", True)),
            manual_fence=bool(options.get("manualFence")) or request.manual_fence,
        )
        header = held.model_copy(update={"by": request.by})
        stated = Loss.from_json(options["loss"]) if "loss" in options else Loss()
        journal = _journal(clusters, header, clock)
        try:
            take_over(journal, clusters)
            run = TransitionContext(
                clusters, journal, request, clock, on_step,
                method_in_force(link.procedure.fencing, stated=request.manual_fence), stated, answer,
            )  # fmt: skip
            draft = _draft(journal.header, None, stated, clusters)
            rolling_back = request.roll_back or bool(why_ended(journal.header))
            return TransitionExecutor(run, draft, rolling_back=rolling_back).run()
        finally:
            journal.close()


def _open_transactions(request: TransitionRequest, stored: object) -> OpenTransactions:
    """What the one who resumes asks for, else what the journal has; one of a release before waits."""
    if request.open_transactions != "wait":
        return request.open_transactions
    return "fence" if stored == "fence" else "refuse" if stored == "refuse" else "wait"


def _journal(clusters: LinkClusters, header: TransitionRecord, clock: Clock) -> Journal:
    return Journal(clusters, header, clock=clock)


def _check(checked: Preflight) -> Loss:
    kind = checked.request.kind
    if not has_roles(checked.clusters.link):
        return checked.leaving()
    if kind == "failover":
        return checked.failover()
    if kind == "switchover":
        checked.switchover()
        return Loss()
    tail = checked.failback()
    return tail if checked.request.dry_run else Loss()  # a real run counts it


def _draft(
    header: TransitionRecord, checked: Preflight | None, loss: Loss, clusters: LinkClusters
) -> TransitionReport:
    return TransitionReport(
        id=header.id, kind=header.kind, link=header.link,
        from_cluster=header.source, to_cluster=header.target, epoch=header.base_epoch,
        outcome="done", at_ms=header.at_ms, by=header.by, plan_hash=header.plan_hash,
        checks=tuple(checked.checks) if checked is not None else (),
        loss=loss, fencing=header.fencing,
        client_properties=client_properties(clusters.link, clusters.new),
    )  # fmt: skip


def _question(header: TransitionRecord, loss: Loss, *, old_side_answers: bool) -> Question:
    stated = "Nothing will be lost."
    if header.kind == "failover":
        stated = f"The loss will be {loss.words()}."
        if not loss.known:
            stated = f"How much will be lost is {loss.words()}."
        stated += "".join(
            f"\n  {one.topic}: {one.records} records, {one.seconds:.1f} s" for one in loss.topics
        )
    return Question(
        f"{stated}\n{header.kind.capitalize()} of link '{header.link}' from {header.source} to "
        f"{header.target}?",
        loss.records, loss.known, old_side_answers,
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
