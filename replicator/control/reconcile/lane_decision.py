"""Which lanes a pair needs now, and when a change of lanes has to wait. Pure."""

from collections.abc import Mapping

from replicator.control.lanes.lane_growth import grown_lanes
from replicator.control.lanes.layout import LayoutDecision, decide_layout
from replicator.control.reconcile.actions import Action, ArrangeLanes, WriteRecord
from replicator.control.reconcile.cluster_view import ClusterView
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import TopicSelection
from replicator.control.records.pair_records import TopicRecord
from replicator.control.store.worker_record import fresh_workers
from replicator.identifiers import is_canary_topic
from replicator.topology.plan import PairPlan


def partitions_by_link(
    pair: PairPlan, selection: TopicSelection, source: ClusterView
) -> dict[str, int]:
    """Source partitions of each link's topics; a canary lives in the lanes that these need."""
    partitions = {str(flow.link): 0 for flow in pair.flows}
    for one in selection.topics:
        facts = source.topics.get(one.topic)
        if facts is not None and not is_canary_topic(one.topic):
            partitions[one.flow.link] += facts.partitions
    return partitions


def decide_lanes(
    pair: PairPlan,
    snapshot: PairSnapshot,
    selection: TopicSelection,
    moved: tuple[TopicRecord, ...],
    *,
    partitions: Mapping[str, int],
) -> tuple[list[Action], LayoutDecision]:
    """The layout to have, and the action that stores it where it is another one.

    ``moved`` are records of topics that another link takes now.
    """
    current = snapshot.control.layout(pair.source.alias)
    workers = fresh_workers(snapshot.control, pair.source.alias, now_ms=snapshot.at_ms)
    decision = decide_layout(
        pair, current,
        partitions=partitions,
        moved_topics=snapshot.misplaced | {record.topic for record in moved},
        checkpoints_exist=snapshot.checkpoints_exist,
        grown=grown_lanes(
            pair, current, partitions=partitions, workers=workers, now_ms=snapshot.at_ms
        ),
        now_ms=snapshot.at_ms,
    )  # fmt: skip
    if decision.change == "none":
        return [], decision
    action = ArrangeLanes(
        cluster=pair.target.alias,
        source=pair.source.alias,
        decision=decision,
        links=tuple((one.topic, one.flow.link) for one in selection.topics),
        erased=moved,
        from_lanes=current.total if current is not None else None,
        reason=decision.reason,
    )
    return [action], decision


def spark_is_copying(pair: PairPlan, snapshot: PairSnapshot) -> bool:
    """Its tasks write checkpoints into the lanes' partitions, so those must stay where they are.

    A change that has begun is finished: nothing was taken from lanes while they were changing.
    """
    current = snapshot.control.layout(pair.source.alias)
    seeds = snapshot.control.seeds(pair.source.alias)
    begun = current is not None and current.state == "changing"
    return not begun and any(seed.state != "done" for seed in seeds)


def wait_for_spark(
    layout: LayoutDecision,
    snapshot: PairSnapshot,
    writes: list[Action],
    moved: tuple[TopicRecord, ...],
) -> tuple[list[Action], LayoutDecision, list[Action]]:
    """No change of lanes, and so no topic under a link whose lanes cannot find its checkpoints."""
    current = snapshot.control.layout(layout.layout.source) or layout.layout
    stay = snapshot.misplaced | {record.topic for record in moved}
    kept = [
        write
        for write in writes
        if not (
            isinstance(write, WriteRecord)
            and isinstance(write.record, TopicRecord)
            and write.record.topic in stay
        )
    ]
    reason = f"waits for Spark: {layout.reason}"
    return [], LayoutDecision(current, "none", reason), kept
