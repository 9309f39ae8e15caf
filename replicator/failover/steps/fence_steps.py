"""Fences of one transition, recorded before they are added, so that any later run can remove them.

The record is written to the journal cluster and to the fenced cluster as well: a fenced cluster must be
able to let writers in again when the other cluster, with the journal, is lost for good.
"""

from dataclasses import replace

from replicator.control.records.role_records import FenceRecord
from replicator.errors import ReplicatorError
from replicator.failover.clusters.fencing import FencePlan, apply_fence, plan_fence, remove_fence
from replicator.failover.clusters.lag import link_keys
from replicator.failover.steps.journal import TakenOverError
from replicator.failover.steps.overtaken_fences import put_back, settle
from replicator.failover.steps.transition_context import TransitionContext
from replicator.policy.procedure import Fencing
from replicator.topology.plan import ClusterPlan
from replicator.topology.roles import Role


def fence_writers(run: TransitionContext, cluster: ClusterPlan, fencing: Fencing) -> str:
    """Fences writers of a cluster, recorded before and after; returns a command's output.

    Whatever is on record, the cluster is asked, and what is missing there is added. A record of another
    transition stays that one's while the cluster is passive because of it: a rollback must not open it.

    Raises:
        ReplicatorError: it could not be done, or not be recorded.
    """
    clusters, header = run.clusters, run.journal.header
    held, role = run.standing(cluster)
    topics = {topic for topic, _ in link_keys(clusters, cluster)}
    plan = plan_fence(
        clusters, cluster, fencing, topics=topics, held=held, at_ms=run.journal.now_ms(),
        by=header.by,
    )  # fmt: skip
    owner: dict[str, object] = {"transition": header.id, "epoch": role.epoch}
    passive_before = role.epoch == header.base_epoch and cluster.alias != role.active
    if (
        held is not None
        and held.transition != header.id
        and passive_before
        and in_force(held, role)
    ):
        owner = {"transition": held.transition, "epoch": held.epoch}
        owner |= {"by": held.by, "at_ms": held.at_ms}
    record = plan.record.model_copy(update=owner)
    run.journal.write([record])
    if cluster != run.journal_cluster:
        error = run.journal.write_to(cluster, [record])
        if error is not None:
            raise error
    done = replace(plan, record=record)
    try:
        ran = apply_fence(clusters, cluster, plan, clock=run.clock)
    except ReplicatorError:
        _settle_if_taken_over(run, cluster, done)
        raise
    try:
        run.journal.write([record.model_copy(update={"state": "held"})])
    except ReplicatorError as error:
        settle(run, cluster, done, error)
        raise
    return ran.output.strip() if ran is not None else ""


def _settle_if_taken_over(run: TransitionContext, cluster: ClusterPlan, plan: FencePlan) -> None:
    """A call that failed may have added rules after the process that has taken over had removed them."""
    try:
        run.journal.check_ours()
    except TakenOverError as error:
        settle(run, cluster, plan, error)
        raise
    except ReplicatorError:
        return  # the transition goes on or is rolled back by what is on record


def assert_fence(run: TransitionContext, cluster: ClusterPlan, fencing: Fencing) -> None:
    """Adds again what somebody removed of a fence of ACLs since it was put up.

    Raises:
        ReplicatorError: it could not be done.
    """
    if fencing.method == "acl":
        fence_writers(run, cluster, fencing)


def in_force(held: FenceRecord, role: Role) -> bool:
    """Whether a fence belongs to the change that made its cluster passive. Pure.

    It was put up in the epoch before that change or in the one that it began; -1 is not known.
    """
    return held.state == "held" and held.epoch in {-1, role.epoch, role.epoch - 1}


def unfence_writers(run: TransitionContext, cluster: ClusterPlan) -> bool:
    """Removes the fence of a cluster; returns whether there was one.

    Raises:
        ReplicatorError: it could not be done; try again.
    """
    if run.fence_record(cluster) is None:
        return False
    # Its rules cannot be removed without it, so it is asked again: it may name more of them than the journal.
    run.clusters.silent.pop(str(cluster.alias), None)
    record = run.fence_record(cluster)
    if record is None:
        return False
    fencing = run.clusters.link.procedure.fencing or Fencing(record.method)
    run.journal.check_ours()  # brokers fence nobody who changes rules
    remove_fence(run.clusters, cluster, fencing, record)
    try:
        run.forget_fence(record)
    except TakenOverError as error:
        put_back(run, cluster, fencing, error)
        raise
    return True


def remove_fences(run: TransitionContext) -> list[str]:
    """Removes the fences that this transition added, and any on the cluster that stays active.

    A cluster to which the link fails back is passive before and after: it stays fenced.
    Returns what was done, in words.

    Raises:
        ReplicatorError: it could not be done; try again.
    """
    done: list[str] = []
    for cluster in (run.clusters.old, run.clusters.new):
        record = run.fence_record(cluster)
        active = cluster == run.clusters.old
        if record is None or not (active or _opened_again(run, record)):
            continue
        if unfence_writers(run, cluster):
            done.append(f"writers may write to {cluster.alias} again")
    return done


def _opened_again(run: TransitionContext, record: FenceRecord) -> bool:
    """Whether this transition added the fence of the cluster that stays passive, which was open before."""
    header = run.journal.header
    if header.kind == "failback":
        return False
    return record.transition == header.id if record.transition else record.at_ms >= header.at_ms
