"""Fences of one transition, recorded before they are added, so that any later run can remove them.

The record is written to the journal cluster and to the fenced cluster as well: a fenced cluster must be
able to let writers in again when the other cluster, with the journal, is lost for good.
"""

import contextlib
from collections.abc import Collection

from replicator.control.records.role_records import Denial, FenceRecord
from replicator.errors import ReplicatorError
from replicator.failover.clusters.fencing import apply_fence, plan_fence, remove_fence
from replicator.failover.clusters.lag import link_keys
from replicator.failover.steps.journal import TakenOverError
from replicator.failover.steps.transition_context import TransitionContext
from replicator.policy.procedure import Fencing
from replicator.topology.plan import ClusterPlan
from replicator.topology.roles import Role

REMOVED_SECONDS = 30.0
"""How long it is tried to remove a fence that nobody wants any more."""


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
    ran = apply_fence(clusters, cluster, plan, clock=run.clock)
    try:
        run.journal.write([record.model_copy(update={"state": "held"})])
    except ReplicatorError as error:
        held = _remove_unwanted(run, cluster, fencing, record)
        nobodys = set() if held is None else set(plan.missing) - set(held.denials)
        if nobodys and isinstance(error, TakenOverError):
            raise _left_rules(error, cluster, nobodys) from error
        raise
    return ran.output.strip() if ran is not None else ""


def _remove_unwanted(
    run: TransitionContext, cluster: ClusterPlan, fencing: Fencing, record: FenceRecord
) -> FenceRecord | None:
    """Removes a fence that was put up while somebody rolled it back: nobody else would.

    Returns the record of the fence that stands there instead, or may stand there.
    """
    clusters = run.clusters
    both = {one.alias: one for one in (cluster, run.journal_cluster)}
    deadline = run.clock.monotonic() + REMOVED_SECONDS
    while run.clock.monotonic() < deadline:
        held: list[FenceRecord] = []
        for one in both.values():
            with contextlib.suppress(ReplicatorError):
                found = clusters.control(one).fence(record.link, record.cluster)
                if found is None:
                    remove_fence(clusters, cluster, fencing, record)
                    return None
                held.append(found)
        if len(held) == len(both):
            return held[0]
        run.clock.sleep(1.0)
    return None


def _left_rules(
    error: TakenOverError, cluster: ClusterPlan, rules: Collection[Denial]
) -> TakenOverError:
    """Somebody fenced the cluster again while these rules were added: taken for older ones, they are nobody's."""
    names = sorted({one.name for one in rules})
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    who = ", ".join(sorted({one.principal for one in rules}))
    return TakenOverError(
        f"{error.message}; meanwhile {cluster.alias} was fenced again, and that fence does not name the rules "
        f"that were added here: DENY WRITE for {who} on {shown}",
        subject=error.subject,
        remedy=f"They keep writers out until somebody removes them. Once {cluster.alias} is the active cluster: "
        "kafka-acls.sh --remove --operation Write --deny-principal <principal> --topic <topic>.",
    )


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
    record = run.fence_record(cluster)
    if record is None:
        return False
    fencing = run.clusters.link.procedure.fencing or Fencing(record.method)
    run.journal.check_ours()  # brokers fence nobody who changes rules
    remove_fence(run.clusters, cluster, fencing, record)
    try:
        run.forget_fence(record)
    except TakenOverError:
        _put_back(run, cluster, fencing)
        raise
    return True


def _put_back(run: TransitionContext, cluster: ClusterPlan, fencing: Fencing) -> None:
    """Puts a fence up again that another transition wants, and that was removed without knowing of it."""
    held = run.fence_record(cluster)
    if held is not None and held.transition != run.journal.header.id:
        topics = {topic for topic, _ in link_keys(run.clusters, cluster)}
        plan = plan_fence(
            run.clusters, cluster, fencing, topics=topics, held=held, at_ms=held.at_ms, by=held.by
        )
        apply_fence(run.clusters, cluster, plan, clock=run.clock)


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
