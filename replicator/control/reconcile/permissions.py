"""Rights that replication needs and our user lacks, reported before the first record is copied.

Brokers say what our user may do with each topic. Where nothing is said (old brokers, no right to
describe) nothing is concluded.
"""

from collections.abc import Iterable, Mapping

from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import SelectedTopic, selected_topics
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.problem import Problem
from replicator.topology.plan import PairPlan, Plan


def missing_rights(
    plan: Plan,
    pair: PairPlan,
    source: ClusterAdmin,
    target: ClusterAdmin,
    snapshot: PairSnapshot,
) -> tuple[Problem, ...]:
    """Asks both clusters and names each missing right with its resource."""
    aliases = [cluster.alias for cluster in plan.clusters]
    wanted = [
        one for one in selected_topics(pair, snapshot.source.sizes, aliases) if one.problem is None
    ]
    readable = _operations(source, {one.topic for one in wanted})
    writable = _operations(target, {one.target for one in wanted} & snapshot.target.sizes.keys())
    created = [one.target for one in wanted if one.target not in snapshot.target.sizes]
    asked = any(flow.policy.sync_acls for flow in pair.flows)
    cluster = target.describe_cluster().authorized_operations if asked else frozenset[str]()
    return rights_problems(
        pair, wanted, readable=readable, writable=writable, cluster=cluster,
        refused=sorted(target.refused_creations(created)) if created else (),
    )  # fmt: skip


def rights_problems(
    pair: PairPlan,
    wanted: Iterable[SelectedTopic],
    *,
    readable: Mapping[str, frozenset[str]],
    writable: Mapping[str, frozenset[str]],
    cluster: frozenset[str],
    refused: Iterable[str],
) -> tuple[Problem, ...]:
    """The pure half: what is needed against what brokers grant.

    ``refused`` are the topics on the target that our user may not create: CREATE may be granted on the cluster
    or on single names, so brokers are asked about each.
    """
    problems: list[Problem] = []
    for one in wanted:
        problems.extend(
            _lacking(pair.source.alias, one.topic, readable.get(one.topic), {"READ", "DESCRIBE"})
        )
        needed = {"WRITE", "DESCRIBE"}
        sync = one.flow.policy.sync_topics
        if sync.partitions:
            needed.add("ALTER")
        if sync.configs or sync.overrides:
            needed.add("ALTER_CONFIGS")
        if sync.deletions == "propagate":
            needed.add("DELETE")
        problems.extend(_lacking(pair.target.alias, one.target, writable.get(one.target), needed))
    missing = tuple(refused)
    if missing:
        problems.append(
            Problem(
                "NOT_AUTHORIZED", f"cluster:{pair.target.alias}",
                f"our user may not create topics on {pair.target.alias} "
                f"({', '.join(missing[:3])} is missing)",
                "Allow CREATE on the cluster, or on these topics, for the user of this cluster.",
            )
        )  # fmt: skip
    sync_acls = any(flow.policy.sync_acls for flow in pair.flows)
    if sync_acls and cluster and "ALTER" not in cluster:
        problems.append(
            Problem(
                "NOT_AUTHORIZED", f"cluster:{pair.target.alias}",
                f"our user may not add ACLs on {pair.target.alias}",
                "Allow ALTER on the cluster resource for the user of this cluster, "
                "or set sync.acls to false.",
            )
        )  # fmt: skip
    return tuple(problems)


def _lacking(
    alias: str, topic: str, granted: frozenset[str] | None, needed: set[str]
) -> list[Problem]:
    if not granted:
        return []
    lacking = sorted(needed - granted)
    if not lacking:
        return []
    names = ", ".join(lacking)
    return [
        Problem(
            "NOT_AUTHORIZED", topic, f"our user lacks {names} on topic '{topic}' of {alias}",
            f"Allow {names} on topic '{topic}' for the user of {alias}.",
        )
    ]  # fmt: skip


def _operations(admin: ClusterAdmin, names: Iterable[str]) -> dict[str, frozenset[str]]:
    wanted = sorted(names)
    if not wanted:
        return {}
    return {
        name: topic.authorized_operations for name, topic in admin.describe_topics(wanted).items()
    }
