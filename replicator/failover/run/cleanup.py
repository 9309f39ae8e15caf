"""Removes what a link left on its clusters, after everybody stopped working on it.

Everything is read first, from every cluster of the link: where one does not answer, or is another one than
the alias meant, nothing is removed at all. Doing it twice equals doing it once. Where a cluster is gone for
good, an operator names it as lost, and what the link left on the others goes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.control.store.read import read_control
from replicator.control.store.state import ControlState
from replicator.errors import (
    AliasConflictError,
    ClusterError,
    InputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from replicator.failover.clusters.fencing import remove_fence
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.rules.leftovers import (
    KINDS,
    ClusterFacts,
    Leftover,
    active_on_record,
    at_work,
    fences_of,
    leftovers,
    link_pairs,
    obsolete_records,
    open_change,
    topics_of,
)
from replicator.formats.checkpoint import decode_checkpoint
from replicator.identifiers import (
    RESERVED_PREFIX,
    ClusterAlias,
    JsonObject,
    checkpoints_topic,
    control_topic,
    membership_group,
    progress_group,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.checkpoint_log import read_checkpoint_records
from replicator.kafka.logs.log_writer import LogWriter
from replicator.policy.procedure import Fencing
from replicator.topology.plan import ClusterPlan, LinkPlan, Plan

CLIENT_ID = "replicator-cleanup"
ALWAYS_STAYS = (
    "topics with copies: their records are yours",
    "positions that consumer groups were given on the targets",
    "rights that were carried over with topics, and topics in MirrorMaker 2's formats",
)


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """What there is to remove, and what stays with its reason."""

    link: LinkPlan
    facts: Mapping[str, ClusterFacts]
    found: tuple[Leftover, ...]
    lost: str = ""

    @property
    def removable(self) -> tuple[Leftover, ...]:
        """What is removed, in order."""
        return tuple(each for each in self.found if not each.stays)

    def as_json(self, *, done: bool) -> JsonObject:
        """``{"link", "done", "lost", "remove": [...], "stay": [...]}``."""
        return {
            "link": self.link.name,
            "done": done,
            "lost": self.lost or None,
            "remove": [_json(each) for each in self.removable],
            "stay": [
                *({**_json(each), "reason": each.stays} for each in self.found if each.stays),
                *(
                    {"cluster": None, "kind": "kept", "subject": None, "detail": what, "reason": ""}
                    for what in ALWAYS_STAYS
                ),
            ],
        }


def plan_cleanup(plan: Plan, link_name: str, *, clock: Clock, lost: str = "") -> CleanupPlan:
    """Looks at every cluster of the link, except the one that is ``lost``; changes nothing.

    Raises:
        InputError: the topology has no such link, or the link no such cluster.
        RefusedError: workers serve the link, a change of its roles has not ended, or the lost cluster
            answers or is the active one.
        AliasConflictError: a cluster is another one than the alias meant.
        ClusterError: a cluster does not answer.
    """
    link = _link(plan, link_name)
    if lost:
        _refuse_living(plan, link, lost)
    facts = {
        str(alias): _look(plan, link, plan.cluster(alias))
        for alias in link.clusters
        if alias != lost
    }
    busy = at_work(plan, link, facts, now_ms=int(clock.now() * 1000))
    if busy:
        raise RefusedError(
            f"somebody is at work on link {link.name}: {', '.join(busy)}",
            subject=f"link:{link.name}",
            remedy="Stop the workers, or remove the link from the topology they run with and wait 15 s.",
        )
    transition = open_change(link, facts)
    if transition:
        raise RefusedError(
            f"the role change {transition} of link {link.name} has not ended",
            subject=f"link:{link.name}",
            remedy="Run it again to its end, or roll it back; 'replicator history' shows it.",
        )
    if lost and active_on_record(plan, link, facts) == lost:
        raise RefusedError(
            f"'{lost}' is the active cluster of link {link.name}",
            subject=f"link:{link.name}",
            remedy=f"Run 'replicator failover --link {link.name}' first, then this again.",
        )
    return CleanupPlan(link, facts, tuple(leftovers(plan, link, facts)), lost)


def clean_up(plan: Plan, cleanup: CleanupPlan, *, progress: Callable[[str], None]) -> None:
    """Removes what was planned; stops at the first thing that cannot be removed.

    Raises:
        ReplicatorError: something could not be removed; run it again.
    """
    for kind in KINDS:
        for alias in cleanup.facts:
            wanted = [e for e in cleanup.removable if (e.kind, e.cluster) == (kind, alias)]
            if wanted:
                _remove(plan, cleanup, plan.cluster(alias), wanted)
            for each in wanted:
                progress(f"{each.cluster}: {each.kind} {each.subject} removed")


def _remove(plan: Plan, cleanup: CleanupPlan, cluster: ClusterPlan, wanted: list[Leftover]) -> None:
    control = cleanup.facts[cluster.alias].control
    names = [each.subject for each in wanted]
    kind = wanted[0].kind
    if kind in {"group", "topic"}:
        with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
            ordered = sorted(names, key=lambda name: name == control_topic(plan.topology))
            for name in ordered:
                delete = admin.delete_groups if kind == "group" else admin.delete_topics
                refused = delete([name])[name]
                if refused is not None and not isinstance(refused, NotFoundError):
                    raise refused
    elif kind == "fence":
        _lift_fences(plan, cleanup, cluster)
    elif control is None:
        return
    elif kind == "records":
        gone = obsolete_records(plan, cleanup.link, cluster.alias, control)
        _write(plan, cluster, [record.tombstone() for record in gone])
    else:
        for name in names:
            _forget_positions(plan, cleanup, cluster, name, control)


def _lift_fences(plan: Plan, cleanup: CleanupPlan, cluster: ClusterPlan) -> None:
    link = cleanup.link
    other = next(plan.cluster(alias) for alias in link.clusters if alias != cluster.alias)
    with LinkClusters(plan, link, cluster, other) as clusters:
        for holder, fence in fences_of(link, cleanup.facts):
            if fence.cluster == cluster.alias:
                fencing = link.procedure.fencing or Fencing(fence.method)
                remove_fence(clusters, cluster, fencing, fence)
                _write(plan, plan.cluster(holder), [fence.tombstone()])


def _forget_positions(
    plan: Plan, cleanup: CleanupPlan, cluster: ClusterPlan, name: str, control: ControlState
) -> None:
    for flow in link_pairs(cleanup.link):
        if flow.target != cluster.alias or checkpoints_topic(plan.topology, flow.source) != name:
            continue
        topics = topics_of(plan, cleanup.link, flow.source, control)
        with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
            lanes = range(admin.topic_partitions().get(name, 0))
        stored = read_checkpoint_records(
            plan.topology, flow.source, cluster, lanes, client_id=CLIENT_ID
        )
        with LogWriter(cluster, name, client_id=CLIENT_ID) as writer:
            for lane, records in stored.items():
                checkpoints = (
                    (key, decode_checkpoint(key, value)) for key, value in records.items()
                )
                writer.write(
                    [(key, None) for key, each in checkpoints if each and each.topic in topics],
                    partition=lane,
                )


def _write(plan: Plan, cluster: ClusterPlan, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
    with LogWriter(cluster, control_topic(plan.topology), client_id=CLIENT_ID) as writer:
        writer.write(entries)


def _refuse_living(plan: Plan, link: LinkPlan, lost: str) -> None:
    """Only a cluster that cannot be reached is lost: one that refuses us is there."""
    if lost not in link.clusters:
        raise InputError(
            f"link {link.name} has no cluster '{lost}'",
            subject="--lost",
            remedy=f"It has: {', '.join(map(str, link.clusters))}.",
        )
    cluster = next(plan.cluster(alias) for alias in link.clusters if alias == lost)
    try:
        with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
            admin.cluster_id()
    except UnreachableError:
        return
    except ClusterError as error:
        said = f"and says: {error.message}"
    else:
        said = "and can be cleaned up"
    raise RefusedError(
        f"'{lost}' is not lost: it answers, {said}",
        subject=f"cluster:{lost}",
        remedy="Run cleanup without --lost, so that nothing is left there either.",
    )


def _look(plan: Plan, link: LinkPlan, cluster: ClusterPlan) -> ClusterFacts:
    try:
        control: ControlState | None = read_control(
            plan.topology, cluster, client_id=CLIENT_ID, past_open_transactions=True
        )
    except NotFoundError:
        control = None
    with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
        _refuse_another(control, cluster.alias, admin.cluster_id())
        prefix = f"{RESERVED_PREFIX}{plan.topology}."
        partitions = {
            name: count
            for name, count in admin.topic_partitions().items()
            if name.startswith(prefix)
        }
        places = [(name, number) for name, count in partitions.items() for number in range(count)]
        first, last = (admin.known_offsets(places, at) for at in ("earliest", "latest"))
        topics = dict.fromkeys(partitions, 0)
        for place in places:
            topics[place[0]] += last[place] - first[place]
        names = {
            *(membership_group(plan.topology, flow.source) for flow in link_pairs(link)),
            *(progress_group(plan.topology, flow.target) for flow in link_pairs(link)),
        }
        existing = names & set(admin.list_groups())
        groups = {name: each.active for name, each in admin.describe_groups(existing).items()}
    return ClusterFacts(control, topics, groups)


def _refuse_another(control: ControlState | None, alias: ClusterAlias, cluster_id: str) -> None:
    bound = control.binding(alias) if control is not None else None
    if bound is not None and bound.cluster_id != cluster_id:
        raise AliasConflictError(
            f"'{alias}' was bound to cluster {bound.cluster_id}, and {cluster_id} answers",
            subject=f"cluster:{alias}",
            remedy="Correct bootstrapServers; nothing was removed.",
        )


def _link(plan: Plan, name: str) -> LinkPlan:
    try:
        return plan.link(name)
    except KeyError:
        raise InputError(
            f"the topology has no link '{name}'",
            remedy=f"It has: {', '.join(str(link.name) for link in plan.links)}.",
        ) from None


def _json(each: Leftover) -> JsonObject:
    return {
        "cluster": each.cluster, "kind": each.kind, "subject": each.subject, "detail": each.detail,
    }  # fmt: skip
