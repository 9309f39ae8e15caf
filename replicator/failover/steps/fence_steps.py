"""Fences of one transition, recorded before they are added, so that any later run can remove them.

The record is written to the journal cluster and to the fenced cluster as well: a fenced cluster must be
able to let writers in again when the other cluster, with the journal, is lost for good.
"""

from replicator.control.store.role_records import FenceRecord
from replicator.failover.clusters.fencing import FencePlan, apply_fence, plan_fence, remove_fence
from replicator.failover.clusters.lag import link_keys
from replicator.failover.steps.journal import TakenOverError
from replicator.failover.steps.transition_context import TransitionContext
from replicator.policy.procedure import Fencing
from replicator.topology.plan import ClusterPlan


def fence_writers(run: TransitionContext, cluster: ClusterPlan, fencing: Fencing) -> str:
    """Fences writers of a cluster, recorded before and after; returns a command's output.

    Raises:
        ReplicatorError: it could not be done, or not be recorded.
    """
    clusters = run.clusters
    held = run.fence_record(cluster)
    if held is not None and held.state == "held":
        return ""  # fenced already: before a crash, or because the cluster is passive
    topics = {topic for topic, _ in link_keys(clusters, cluster)}
    plan = plan_fence(
        clusters, cluster, fencing, topics=topics, at_ms=run.journal.now_ms(),
        by=run.journal.header.by,
    )  # fmt: skip
    update: dict[str, object] = {"transition": run.journal.header.id}
    if held is not None:
        # Rules of an earlier attempt are still ours to remove.
        update["denials"] = tuple(dict.fromkeys((*held.denials, *plan.record.denials)))
    record = plan.record.model_copy(update=update)
    run.journal.write([record])
    if cluster != run.journal_cluster:
        error = run.journal.write_to(cluster, [record])
        if error is not None:
            raise error
    ran = apply_fence(clusters, cluster, FencePlan(fencing, record))
    try:
        run.journal.write([record.model_copy(update={"state": "held"})])
    except TakenOverError:
        if (
            run.fence_record(cluster) is None
        ):  # rolled back meanwhile: nobody else would remove ours
            remove_fence(clusters, cluster, fencing, record)
        raise
    return ran.output.strip() if ran is not None else ""


def unfence_writers(run: TransitionContext, cluster: ClusterPlan) -> bool:
    """Removes the fence of a cluster; returns whether there was one.

    Raises:
        ReplicatorError: it could not be done; try again.
    """
    record = run.fence_record(cluster)
    if record is None:
        return False
    declared = run.clusters.link.procedure.fencing
    remove_fence(run.clusters, cluster, declared or Fencing(record.method), record)
    run.forget_fence(record)
    return True


def remove_fences(run: TransitionContext) -> list[str]:
    """Removes the fences that this transition added, and no others; returns what was done, in words.

    Raises:
        ReplicatorError: it could not be done; try again.
    """
    done: list[str] = []
    for cluster in (run.clusters.old, run.clusters.new):
        record = run.fence_record(cluster)
        if record is not None and _ours(run, record) and unfence_writers(run, cluster):
            done.append(f"writers may write to {cluster.alias} again")
    return done


def _ours(run: TransitionContext, record: FenceRecord) -> bool:
    """Whether this transition added a fence; an older one stays because its cluster is passive."""
    header = run.journal.header
    return record.transition == header.id if record.transition else record.at_ms >= header.at_ms
