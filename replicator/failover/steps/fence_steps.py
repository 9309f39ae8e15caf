"""Fences of one transition: put up and taken down on record, whoever was at work before.

The record stands with the journal and on the fenced side as well: a side whose writers are kept off must
be able to let them on again when the other side, with the journal, is lost for good.
"""

from replicator.control.store.role_records import FenceRecord
from replicator.failover.clusters.fencing import FencePlan, lower_fence, plan_fence, raise_fence
from replicator.failover.clusters.lag import link_keys
from replicator.failover.steps.journal import TakenOverError
from replicator.failover.steps.transition_context import TransitionContext
from replicator.policy.procedure import Fencing
from replicator.topology.plan import ClusterPlan


def fence_writers(run: TransitionContext, cluster: ClusterPlan, fencing: Fencing) -> str:
    """Keeps writers off a side, on record before and after; returns what a command said.

    Raises:
        ReplicatorError: it could not be done, or not be put on record.
    """
    sides = run.sides
    held = run.fence_record(cluster)
    if held is not None and held.state == "held":
        return ""  # it stands already: from before a crash, or because the side is passive
    topics = {topic for topic, _ in link_keys(sides, cluster)}
    plan = plan_fence(
        sides, cluster, fencing, topics=topics, at_ms=run.journal.now_ms(),
        by=run.journal.header.by,
    )  # fmt: skip
    update: dict[str, object] = {"transition": run.journal.header.id}
    if held is not None:
        # What an earlier attempt added is still ours to take away.
        update["denials"] = tuple(dict.fromkeys((*held.denials, *plan.record.denials)))
    record = plan.record.model_copy(update=update)
    run.journal.write([record])
    if cluster != run.home:
        error = run.journal.tell(cluster, [record])
        if error is not None:
            raise error
    ran = raise_fence(sides, cluster, FencePlan(fencing, record))
    try:
        run.journal.write([record.model_copy(update={"state": "held"})])
    except TakenOverError:
        if run.fence_record(cluster) is None:  # taken back meanwhile: nobody would take ours down
            lower_fence(sides, cluster, fencing, record)
        raise
    return ran.output.strip() if ran is not None else ""


def unfence_writers(run: TransitionContext, cluster: ClusterPlan) -> bool:
    """Takes down the fence of a side, if there is one; returns whether there was.

    Raises:
        ReplicatorError: it could not be done; ask again.
    """
    record = run.fence_record(cluster)
    if record is None:
        return False
    declared = run.sides.link.procedure.fencing
    lower_fence(run.sides, cluster, declared or Fencing(record.method), record)
    run.forget_fence(record)
    return True


def lower_fences(run: TransitionContext) -> list[str]:
    """Takes down what this transition put up, and nothing else; returns what was done, for people.

    Raises:
        ReplicatorError: it could not be done; ask again.
    """
    done: list[str] = []
    for cluster in (run.sides.old, run.sides.new):
        record = run.fence_record(cluster)
        if record is not None and _ours(run, record) and unfence_writers(run, cluster):
            done.append(f"writers are let on {cluster.alias} again")
    return done


def _ours(run: TransitionContext, record: FenceRecord) -> bool:
    """Whether this transition put a fence up; one from before stands because its side is passive."""
    header = run.journal.header
    return record.transition == header.id if record.transition else record.at_ms >= header.at_ms
