"""Reading what a bulk run's plan rests on: both clusters' offsets, sizes on disk, checkpoints."""

from collections.abc import Sequence

from replicator.control.backfill.ranges import BackfillFacts
from replicator.control.store.state import ControlState
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.topology.plan import FlowPlan, PairPlan, Plan
from replicator.wire.requests.log_dirs import sizes_on_disk

CLIENT_ID = "replicator-seed"


def read_backfill_facts(
    plan: Plan, pair: PairPlan, flows: Sequence[FlowPlan], control: ControlState
) -> BackfillFacts:
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
        log_starts = source.known_offsets(every, "earliest")
        ends = source.known_offsets(every, "latest")
        starts = dict(log_starts)
        for flow in flows:
            wanted = keys[str(flow.link)]
            since_ms = flow.policy.start_from.timestamp_ms
            if flow.policy.start_from.kind == "timestamp" and since_ms is not None and wanted:
                timed = source.known_offsets(wanted, since_ms)
                starts.update(
                    (key, timed[key] if timed.get(key, -1) >= 0 else ends[key])
                    for key in wanted
                    if key in ends
                )
    return BackfillFacts(
        starts=starts,
        log_starts=log_starts,
        ends=ends,
        sizes=sizes_on_disk(pair.source, {topic for topic, _ in every}),
        checkpoints=read_checkpoints(plan.topology, pair, client_id=CLIENT_ID),
    )
