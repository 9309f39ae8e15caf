"""Reading what a bulk run's plan rests on: both clusters' offsets, sizes on disk, checkpoints."""

from collections.abc import Iterable, Sequence

from replicator.control.backfill.ranges import HistoryFacts, Key
from replicator.control.controller.lane_migration import read_checkpoints
from replicator.control.store.state import ControlState
from replicator.dataplane.progress.checkpoint import Checkpoint, decode_checkpoints
from replicator.errors import ReplicatorError
from replicator.identifiers import checkpoints_topic
from replicator.kafka.admin import ClusterAdmin
from replicator.topology.plan import ClusterPlan, FlowPlan, PairPlan, Plan

CLIENT_ID = "replicator-seed"


def read_history(
    plan: Plan, pair: PairPlan, flows: Sequence[FlowPlan], control: ControlState
) -> HistoryFacts:
    """Facts about every partition on record of the flows.

    Raises:
        ClusterError: a cluster does not answer.
    """
    keys = {
        str(flow.link): [
            (record.topic, number)
            for record in control.topics(flow.source, flow.link)
            for number in range(record.working_partitions)
        ]
        for flow in flows
    }
    every = [key for one in keys.values() for key in one]
    with ClusterAdmin(pair.source, client_id=CLIENT_ID) as source:
        log_starts = known_offsets(source.offsets(every, "earliest") if every else {})
        ends = known_offsets(source.offsets(every, "latest") if every else {})
        starts = dict(log_starts)
        for flow in flows:
            wanted = keys[str(flow.link)]
            since_ms = flow.policy.start_from.timestamp_ms
            if flow.policy.start_from.kind == "timestamp" and since_ms is not None and wanted:
                timed = known_offsets(source.offsets(wanted, since_ms))
                starts.update(
                    (key, timed[key] if timed.get(key, -1) >= 0 else ends[key])
                    for key in wanted
                    if key in ends
                )
    return HistoryFacts(
        starts=starts,
        log_starts=log_starts,
        ends=ends,
        sizes=sizes_on_disk(pair.source, {topic for topic, _ in every}),
        checkpoints=read_all_checkpoints(plan, pair),
    )


def read_all_checkpoints(plan: Plan, pair: PairPlan) -> dict[Key, Checkpoint]:
    """The newest checkpoint of every source partition; empty before the first.

    Raises:
        ClusterError: the target does not answer.
    """
    name = checkpoints_topic(plan.topology, pair.source.alias)
    with ClusterAdmin(pair.target, client_id=CLIENT_ID) as target:
        described = target.describe_topics([name]).get(name)
    if described is None:
        return {}
    found: dict[Key, Checkpoint] = {}
    stored = read_checkpoints(pair, name, range(described.partitions), client_id=CLIENT_ID)
    for records in stored.values():
        for key, checkpoint in decode_checkpoints(records).items():
            held = found.get(key)
            if held is None or checkpoint.at_ms >= held.at_ms:
                found[key] = checkpoint
    return found


def sizes_on_disk(cluster: ClusterPlan, topics: Iterable[str]) -> dict[Key, int]:
    """Bytes of each partition's log; empty where brokers do not tell, because it is a forecast only."""
    from replicator.wire.log_dirs import partition_bytes

    wanted = frozenset(topics)
    if not wanted:
        return {}
    try:
        return partition_bytes(cluster, wanted)
    except ReplicatorError:
        return {}


def known_offsets(answers: "dict[Key, int | ReplicatorError]") -> dict[Key, int]:
    """Those that were answered."""
    return {key: answer for key, answer in answers.items() if isinstance(answer, int)}
