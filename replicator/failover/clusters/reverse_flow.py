"""Making the way back ready, promoting a side, and where the way back begins."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from replicator.clock import Clock
from replicator.control.backfill.handover import hand_back
from replicator.control.controller.bootstrap import bootstrap_pair
from replicator.control.controller.controller import PairController
from replicator.control.lanes.layout import lane_in
from replicator.control.store.controller_writer import ControllerWriter, Placed
from replicator.failover.clusters.lag import stored_checkpoints
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition, checkpoints_topic
from replicator.policy.values import BulkSync
from replicator.topology.plan import ClusterPlan, FlowPlan, PairPlan


def prepare_reverse_flow(
    sides: LinkClusters, source: ClusterPlan, *, clock: Clock
) -> tuple[str, ...]:
    """Applies the flow out of a side without letting it run: topics, lanes, records.

    Whatever would keep the way back from working (rights, names, brokers) comes up here, before
    anything was changed for anybody.

    Returns:
        What stands in the way, in words; empty when nothing does.

    Raises:
        ReplicatorError: a side does not answer or refuses.
    """
    plan, pair = sides.facing(source), _leaving_settings(sides.whole_pair(source), sides.link.name)
    here, there = sides.admin(pair.source), sides.admin(pair.target)
    bootstrap_pair(
        plan=plan, pair=pair, source_admin=here, target_admin=there,
        clock=clock, client_id=CLIENT_ID,
    )  # fmt: skip
    controller = PairController(
        pair, plan, source_admin=here, target_admin=there, clock=clock, client_id=CLIENT_ID
    )
    try:
        done = asyncio.run(controller.run_once(all_settings=True))
    finally:
        controller.close()
    found = done.decision.problems.get(sides.link.name, ())
    return tuple(f"{one.subject}: {one.detail}" for one in found if one.code == "TARGET_REFUSES")


def _leaving_settings(pair: PairPlan, link: str) -> PairPlan:
    """The pair as it may be applied while the other direction still runs.

    The side still in use keeps its topic settings, and there is no history to copy to it: what its
    topics hold is where the new side has its own from.
    """

    def left(flow: FlowPlan) -> FlowPlan:
        sync = replace(flow.policy.sync_topics, configs=False)
        policy = replace(flow.policy, sync_topics=sync, bulk_sync=BulkSync())
        return replace(flow, policy=policy)

    flows = tuple(left(flow) if flow.link == link else flow for flow in pair.flows)
    return replace(pair, flows=flows)


def fence_lanes(sides: LinkClusters, source: ClusterPlan, *, clock: Clock) -> int:
    """Fences every lane of the flow out of a side: none that started before can commit any more.

    So it does with partitions that Spark copies. To be called when the role that forbids the flow stands
    on the target: whoever starts after the fence reads it and ends. Returns how many lanes there were.

    Raises:
        ReplicatorError: the target does not answer.
    """
    pair = sides.pair(source)
    control = sides.control(pair.target)
    layout = control.layout(source.alias)
    block = layout.block(sides.link.name) if layout is not None else None
    if block is None:
        return 0
    hand_back(sides.plan, pair, control.seeds(source.alias, sides.link.name), clock=clock)
    writer = ControllerWriter(pair, sides.topology, client_id=CLIENT_ID)
    try:
        writer.fence_lanes(range(block.first, block.first + block.count))
    finally:
        writer.close()
    return block.count


def place_starts(
    sides: LinkClusters,
    source: ClusterPlan,
    starts: Mapping[TopicPartition, int],
    *,
    clock: Clock,
    check: Callable[[], None],
) -> int:
    """Lets the flow out of a side begin at these offsets; what lies before came from the other side.

    Its lanes are fenced first; it must not be allowed to run yet. ``check`` is asked behind that fence
    and raises where this operator has no word any more: one that slept while another went on must not
    put a running flow back to its start. Returns how many were placed.

    Raises:
        ReplicatorError: the target does not answer; do it again.
    """
    pair = sides.pair(source)
    control = sides.control(pair.target)
    layout = control.layout(source.alias)
    block = layout.block(sides.link.name) if layout is not None else None
    if block is None or not starts:
        return 0
    held = stored_checkpoints(sides, source)
    ids = {record.topic: record.topic_id for record in control.topics(source.alias)}
    at_ms = round(clock.now() * 1000)
    topic = checkpoints_topic(sides.topology, source.alias)
    placed: list[Placed] = []
    for (name, number), offset in sorted(starts.items()):
        before = held.get((name, number)) or Checkpoint(name, number, 0)
        start = replace(
            before, offset=offset, topic_id=ids.get(name, ""), at_ms=at_ms,
            problem="", detail="", position_epoch=-1, leader_epoch=-1,
        )  # fmt: skip
        lane = lane_in(block, name, number)
        placed.append(Placed(topic, lane, start.key(), start.value()))
    writer = ControllerWriter(pair, sides.topology, client_id=CLIENT_ID)
    try:
        writer.fence_lanes(range(block.first, block.first + block.count))
        check()
        writer.write(placed)
    finally:
        writer.close()
    return len(placed)
