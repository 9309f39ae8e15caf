"""Prepares the reverse flow of a link, fences lanes, and sets where the reverse flow begins."""

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
    clusters: LinkClusters, source: ClusterPlan, *, clock: Clock
) -> tuple[str, ...]:
    """Applies the flow out of a cluster without letting it run: topics, lanes, records.

    Whatever would keep the reverse flow from working (rights, names, brokers) is found here, before
    anything changes for writers and readers.

    Returns:
        The problems found, in words.

    Raises:
        ReplicatorError: a cluster does not answer or refuses.
    """
    plan, pair = (
        clusters.facing(source),
        _leaving_settings(clusters.whole_pair(source), clusters.link.name),
    )
    source_admin, target_admin = clusters.admin(pair.source), clusters.admin(pair.target)
    bootstrap_pair(
        plan=plan, pair=pair, source_admin=source_admin, target_admin=target_admin,
        clock=clock, client_id=CLIENT_ID,
    )  # fmt: skip
    controller = PairController(
        pair,
        plan,
        source_admin=source_admin,
        target_admin=target_admin,
        clock=clock,
        client_id=CLIENT_ID,
    )
    try:
        done = asyncio.run(controller.run_once(all_settings=True))
    finally:
        controller.close()
    found = done.decision.problems.get(clusters.link.name, ())
    return tuple(f"{one.subject}: {one.detail}" for one in found if one.code == "TARGET_REFUSES")


def _leaving_settings(pair: PairPlan, link: str) -> PairPlan:
    """The pair as it may be applied while the other direction still runs.

    The cluster still in use keeps its topic settings, and no existing records are copied to it: the
    new cluster has its own from there.
    """

    def left(flow: FlowPlan) -> FlowPlan:
        sync = replace(flow.policy.sync_topics, configs=False)
        policy = replace(flow.policy, sync_topics=sync, bulk_sync=BulkSync())
        return replace(flow, policy=policy)

    flows = tuple(left(flow) if flow.link == link else flow for flow in pair.flows)
    return replace(pair, flows=flows)


def fence_lanes(clusters: LinkClusters, source: ClusterPlan, *, clock: Clock) -> int:
    """Fences every lane of the flow out of a cluster: none that started before can commit any more.

    Partitions that Spark copies are fenced too. Call it once the role that forbids the flow is stored on
    the target: a lane that starts after the fence reads that role and stops. Returns how many lanes
    there were.

    Raises:
        ReplicatorError: the target does not answer.
    """
    pair = clusters.pair(source)
    control = clusters.control(pair.target)
    layout = control.layout(source.alias)
    block = layout.block(clusters.link.name) if layout is not None else None
    if block is None:
        return 0
    hand_back(clusters.plan, pair, control.seeds(source.alias, clusters.link.name), clock=clock)
    writer = ControllerWriter(pair, clusters.topology, client_id=CLIENT_ID)
    try:
        writer.fence_lanes(block.lanes)
    finally:
        writer.close()
    return block.count


def place_starts(
    clusters: LinkClusters,
    source: ClusterPlan,
    starts: Mapping[TopicPartition, int],
    *,
    clock: Clock,
    check: Callable[[], None],
) -> int:
    """Sets where the flow out of a cluster begins; earlier records came from the other cluster.

    Its lanes are fenced first; its role must not allow it to run yet. ``check`` is called after that
    fence and raises where this transition was overtaken: an operator whose process slept must not reset
    a flow that runs already. Returns how many partitions were set.

    Raises:
        ReplicatorError: the target does not answer; do it again.
    """
    pair = clusters.pair(source)
    control = clusters.control(pair.target)
    layout = control.layout(source.alias)
    block = layout.block(clusters.link.name) if layout is not None else None
    if block is None or not starts:
        return 0
    held = stored_checkpoints(clusters, source)
    ids = {record.topic: record.topic_id for record in control.topics(source.alias)}
    at_ms = round(clock.now() * 1000)
    topic = checkpoints_topic(clusters.topology, source.alias)
    placed: list[Placed] = []
    for (name, number), offset in sorted(starts.items()):
        before = held.get((name, number)) or Checkpoint(name, number, 0)
        start = replace(
            before, offset=offset, topic_id=ids.get(name, ""), at_ms=at_ms,
            problem="", detail="", position_epoch=-1, leader_epoch=-1,
        )  # fmt: skip
        lane = lane_in(block, name, number)
        placed.append(Placed(topic, lane, start.key(), start.value()))
    writer = ControllerWriter(pair, clusters.topology, client_id=CLIENT_ID)
    try:
        writer.fence_lanes(block.lanes)
        check()
        writer.write(placed)
    finally:
        writer.close()
    return len(placed)
