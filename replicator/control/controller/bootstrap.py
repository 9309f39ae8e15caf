"""What must exist before a pair can be controlled: supported brokers, control topics, bindings.

Safe to run at any time and by several at once: everything is looked at first and made only when it
is missing.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from replicator.clock import Clock
from replicator.control.lanes.layout import decide_layout
from replicator.control.lanes.opposite_topologies import opposite_to_record
from replicator.control.reconcile.topic_selection import selected_topics
from replicator.control.store.bindings import binding_conflicts, missing_bindings
from replicator.control.store.read import read_control
from replicator.control.store.state import ControlState
from replicator.errors import AlreadyExistsError
from replicator.identifiers import (
    checkpoints_topic,
    control_topic,
    is_canary_topic,
    quarantine_topic,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.topology.plan import ClusterPlan, PairPlan, Plan

QUARANTINE_CONFIGS = (
    ("cleanup.policy", "delete"),
    ("retention.ms", str(30 * 24 * 3600 * 1000)),
    # A record is quarantined because it was too large elsewhere; here it must fit with its story.
    ("max.message.bytes", str(64 * 1024 * 1024)),
)


def bootstrap_pair(
    *,
    plan: Plan,
    pair: PairPlan,
    source_admin: ClusterAdmin,
    target_admin: ClusterAdmin,
    clock: Clock,
    client_id: str,
) -> ControlState:
    """Makes a pair ready: brokers checked, topics there, aliases bound on both clusters.

    Returns the target's control topic as it was read.

    Raises:
        UnsupportedBrokerError: a broker lacks what is needed.
        AliasConflictError: an alias means another cluster, or two aliases are one.
        ClusterError: a cluster does not answer, or refuses a control topic.
    """
    from replicator.wire.probes.broker_versions import require_supported

    sides = ((pair.source, source_admin), (pair.target, target_admin))
    at_ms = round(clock.now() * 1000)
    # Both clusters at once: a first start is mostly waiting for brokers.
    with ThreadPoolExecutor(2, thread_name_prefix="bootstrap") as pool:
        for _ in pool.map(require_supported, (pair.source, pair.target)):
            pass
        known = pool.map(lambda side: (str(side[0].alias), side[1].cluster_id()), sides)
        ids = dict(known)
        for conflict in binding_conflicts((), ids):
            raise conflict
        bound = pool.map(
            lambda side: _bind(plan, side[0], side[1], ids, at_ms=at_ms, client_id=client_id),
            sides,
        )
        _, control = tuple(bound)
        sizes = source_admin.topic_partitions()
        layout = decide_layout(
            pair, control.layout(pair.source.alias), partitions=_partitions(plan, pair, sizes)
        ).layout
        quarantine = pool.submit(_ensure_quarantine, plan, pair, target_admin)
        # As many partitions as lanes from the start: members of a group see growth only when their
        # metadata grows old.
        ensure_compacted_topic(
            target_admin,
            checkpoints_topic(plan.topology, pair.source.alias),
            partitions=layout.total,
        )
        quarantine.result()
    # Before lanes begin, for what they do not look for goes back. Behind our own topics, by which others find us: of
    # two that begin at the same time one then sees the other.
    opposite = opposite_to_record(pair, source_admin.topic_partitions(), control, at_ms=at_ms)
    if opposite is not None:
        with LogWriter(pair.target, control_topic(plan.topology), client_id=client_id) as writer:
            writer.write([opposite.encode()])
        control = control.fold([opposite.encode()])
    return control


def _bind(
    plan: Plan,
    cluster: ClusterPlan,
    admin: ClusterAdmin,
    ids: Mapping[str, str],
    *,
    at_ms: int,
    client_id: str,
) -> ControlState:
    name = control_topic(plan.topology)
    ensure_compacted_topic(admin, name, partitions=1)
    state = read_control(plan.topology, cluster, client_id=client_id, known_to_exist=True)
    for conflict in binding_conflicts(state.bindings(), ids):
        raise conflict
    missing = missing_bindings(state.bindings(), ids, at_ms=at_ms)
    if not missing:
        return state
    records = [binding.encode() for binding in missing]
    with LogWriter(cluster, name, client_id=client_id) as writer:
        writer.write(records)
    return state.fold(records)


def _partitions(plan: Plan, pair: PairPlan, sizes: Mapping[str, int]) -> dict[str, int]:
    partitions = {str(flow.link): 0 for flow in pair.flows}
    for wanted in selected_topics(pair, sizes, [cluster.alias for cluster in plan.clusters]):
        if not is_canary_topic(wanted.topic):
            partitions[wanted.flow.link] += sizes[wanted.topic]
    return partitions


def _ensure_quarantine(plan: Plan, pair: PairPlan, target_admin: ClusterAdmin) -> None:
    name = quarantine_topic(plan.topology, pair.source.alias)
    if name in target_admin.describe_topics([name]):
        return
    brokers = len(target_admin.describe_cluster().brokers)
    spec = NewTopicSpec(
        name=name, partitions=1, replication_factor=min(3, brokers), configs=QUARANTINE_CONFIGS
    )
    error = target_admin.create_topics([spec])[name]
    if error is not None and not isinstance(error, AlreadyExistsError):
        raise error
