"""What becomes of a fence where another operator took over while its rules were changed.

Brokers fence nobody who changes rules: a process that slept may add or remove some long after everybody else
has gone on. It finds that out at its next look into the journal. Rules that it added stay: to remove them would be
one more change that may come late, beneath a fence that somebody else has put up since, and both clusters of the link
would take writers. They are put on record where that is possible, so that every worker tells that writers are shut out,
and the next role change removes them; else the error names them.
"""

import contextlib
from collections.abc import Collection, Mapping

from replicator.control.records.role_records import Denial, FenceRecord
from replicator.errors import ReplicatorError
from replicator.failover.clusters.fencing import FencePlan, apply_fence, plan_fence
from replicator.failover.clusters.lag import link_keys
from replicator.failover.rules.commands import rollback_command
from replicator.failover.steps.journal import TakenOverError
from replicator.failover.steps.journal_writer import write_once
from replicator.failover.steps.transition_context import TransitionContext
from replicator.policy.procedure import Fencing
from replicator.topology.plan import ClusterPlan

LOOKED_SECONDS = 30.0
"""How long clusters that do not answer are asked what they have on record."""

Seen = Mapping[str, FenceRecord | None]
"""What each cluster that answered has on record."""


class NobodysRulesError(TakenOverError):
    """Rules of a fence stay that are on no record."""


def settle(
    run: TransitionContext, cluster: ClusterPlan, plan: FencePlan, error: ReplicatorError
) -> None:
    """What was added of a fence that could not be recorded as held, for the reason ``error``.

    Raises:
        TakenOverError: somebody rolled the fence back while it was put up; what stays of it, and what removes it.
    """
    if plan.fencing.method == "manual" or (plan.fencing.method == "acl" and not plan.missing):
        return
    # While all records are this fence's own, a process that rolls it back may have removed rules and not yet its record.
    seen = _on_record(run, cluster, but=plan.record)
    own = [one is None or _same(one, plan.record) for one in seen.values()]
    if None in seen.values() and all(own) and _keep_on_record(run, cluster, plan):
        raise TakenOverError(
            f"{error.message}; meanwhile the fence of {cluster.alias} had been rolled back, and was put up again here"
            f"{_denied(plan.missing)}",
            subject=run.clusters.link.name,
            remedy=f"Writers are kept out of {cluster.alias}. If it is the active cluster, let them in: "
            f"{rollback_command('switchover', run.clusters.link.name)}",
        ) from error
    if isinstance(error, TakenOverError):
        _tell_what_stays(run, cluster, plan, seen, error)


def _keep_on_record(run: TransitionContext, cluster: ClusterPlan, plan: FencePlan) -> bool:
    """Records a fence that nobody has on record on its cluster; returns whether that was possible."""

    def still_nobodys() -> None:
        state = run.clusters.control(cluster, known_to_exist=True)
        held = state.fence(plan.record.link, plan.record.cluster)
        if held is not None and not _same(held, plan.record):
            raise TakenOverError("another operator has fenced the cluster again")

    try:
        run.journal.refresh()
        record = plan.record.model_copy(
            update={"state": "held", "epoch": run.role().epoch, "at_ms": run.journal.now_ms()}
        )
        write_once(run.clusters, cluster, [record], erase=False, check=still_nobodys)
    except ReplicatorError:
        return False
    return True


def put_back(
    run: TransitionContext, cluster: ClusterPlan, fencing: Fencing, error: ReplicatorError
) -> None:
    """Puts a fence up again that another transition wants, and that was removed without knowing of it.

    Raises:
        TakenOverError: it could not be put up, or rules may stay that nobody will remove.
    """
    seen = _on_record(run, cluster)
    wanted = [
        one for one in seen.values()
        if one is not None and one.transition != run.journal.header.id
    ]  # fmt: skip
    if not wanted:
        return
    held = max(wanted, key=lambda one: one.at_ms)
    topics = {topic for topic, _ in link_keys(run.clusters, cluster)}
    try:
        plan = plan_fence(
            run.clusters, cluster, fencing, topics=topics, held=held, at_ms=held.at_ms, by=held.by
        )
        apply_fence(run.clusters, cluster, plan, clock=run.clock)
    except ReplicatorError as failed:
        raise TakenOverError(
            f"{error.message}; the fence that {held.by} put up on {cluster.alias} was removed here, and could not be "
            f"put up again: {failed.message}",
            subject=run.clusters.link.name,
            remedy=f"Resume or roll back the transition of {held.by} now: writers may write to {cluster.alias}.",
        ) from failed
    settle(run, cluster, plan, error)  # it may have been rolled back since it was looked up


def _on_record(
    run: TransitionContext, cluster: ClusterPlan, *, but: FenceRecord | None = None
) -> Seen:
    """The fence of a cluster on it and on the journal cluster, as far as they answer in time.

    It is waited for another one than ``but``.
    """
    deadline = run.clock.monotonic() + LOOKED_SECONDS
    while True:
        seen: dict[str, FenceRecord | None] = {}
        for one in (cluster, run.journal_cluster):
            with contextlib.suppress(ReplicatorError):
                control = run.clusters.control(one)
                seen[one.alias] = control.fence(run.clusters.link.name, cluster.alias)
        unchanged = [
            one is not None and but is not None and _same(one, but) for one in seen.values()
        ]
        done = _complete(run, cluster, seen) and not all(unchanged)
        if done or run.clock.monotonic() >= deadline:
            return seen
        run.clock.sleep(1.0)


def _complete(run: TransitionContext, cluster: ClusterPlan, seen: Seen) -> bool:
    return {cluster.alias, run.journal_cluster.alias} <= seen.keys()


def _same(one: FenceRecord, other: FenceRecord) -> bool:
    """Whether both are of the same attempt; a transition that is resumed fences again."""
    return (one.transition, one.at_ms) == (other.transition, other.at_ms)


def _tell_what_stays(
    run: TransitionContext,
    cluster: ClusterPlan,
    plan: FencePlan,
    seen: Seen,
    error: ReplicatorError,
) -> None:
    """Raises an error that names the rules which were added here and stand in no record of somebody else.

    Another process that fenced the cluster meanwhile took them for older ones, so they are nobody's.
    """
    if not _complete(run, cluster, seen):
        unnamed: Collection[Denial] = plan.missing
        why = f"not every cluster says whether {cluster.alias} is still to be fenced by"
    else:
        fences = [one.denials if one is not None else () for one in seen.values()]
        unnamed = {rule for rule in plan.missing if not all(rule in named for named in fences)}
        why = f"no fence of {cluster.alias} on record names"
    if not unnamed:
        return
    raise NobodysRulesError(
        f"{error.message}; {why} the rules that were added here{_denied(unnamed)}",
        subject=run.clusters.link.name,
        remedy=f"They keep writers out until somebody removes them. Once {cluster.alias} is the active cluster: "
        "kafka-acls.sh --remove --operation Write --deny-principal <principal> --topic <topic>.",
    ) from error


def _denied(rules: Collection[Denial]) -> str:
    if not rules:
        return ""
    names = sorted({one.name for one in rules})
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f": DENY WRITE for {', '.join(sorted({one.principal for one in rules}))} on {shown}"
