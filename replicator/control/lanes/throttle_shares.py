"""How a flow's throttle is split over its lanes, by what each still has to copy.

``decide_shares`` is the pure rule, ``ThrottleShares`` reads what it needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.control.lanes.layout import lane_in
from replicator.control.records.pair_records import LaneShare, Layout, Share
from replicator.control.store.state import ControlState
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.policy.capacity.throttling import LaneNeed, split_budget
from replicator.policy.values import PRIORITIES, Priority
from replicator.topology.plan import FlowPlan, PairPlan, Plan

SHARE_SECONDS = 2.0
"""How often needs are looked at: often enough that a lane which caught up frees its part."""

CHANGE_WORTH_WRITING = 0.10
"""A share is written again when it changed by more than this part of itself."""

_TYPICAL_RECORD_BYTES = 1024
"""Size assumed until a partition's own records have been seen."""


@dataclass(frozen=True, slots=True)
class ThrottleShares:
    """Reads positions and ends of one pair; blocking."""

    plan: Plan
    pair: PairPlan
    source_admin: ClusterAdmin
    client_id: str

    @property
    def needed(self) -> bool:
        """Whether any flow of the pair has a budget."""
        return is_throttled(self.pair)

    def shares(self, control: ControlState) -> tuple[Share, ...]:
        """The share records that should be written now.

        Raises:
            ClusterError: a cluster does not answer.
        """
        layout = control.layout(self.pair.source.alias)
        if layout is None or layout.state != "stable":
            return ()
        checkpoints = read_checkpoints(
            self.plan.topology, self.pair, client_id=self.client_id, partitions=layout.total
        )
        keys = [
            (record.topic, number)
            for record in control.topics(self.pair.source.alias)
            for number in range(record.working_partitions)
        ]
        ends = self.source_admin.known_offsets(keys, "latest")
        return decide_shares(self.pair, control, checkpoints=checkpoints, ends=ends)


def is_throttled(pair: PairPlan) -> bool:
    """Whether any flow of the pair has a budget to split."""
    return any(_budgeted(flow) for flow in pair.flows)


def decide_shares(
    pair: PairPlan,
    control: ControlState,
    *,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    ends: Mapping[TopicPartition, int],
) -> tuple[Share, ...]:
    """The share records to write: only those that are new or changed by more than a tenth.

    Args:
        pair: the flows.
        control: layout, topics and the shares on record.
        checkpoints: position of each source partition.
        ends: end offset of each source partition.
    """
    layout = control.layout(pair.source.alias)
    if layout is None or layout.state != "stable":
        return ()
    changed: list[Share] = []
    for flow in pair.flows:
        if not _budgeted(flow) or layout.block(flow.link) is None:
            continue
        needs = _needs(flow, layout, control, checkpoints, ends)
        split = split_budget(flow.policy.throttle, needs)
        lanes = {
            str(lane): LaneShare(
                bytes_per_second=part.bytes_per_second, records_per_second=part.records_per_second
            )
            for lane, part in split.items()
        }
        held = control.share(flow.source, flow.link)
        if held is None or _differs(held.lanes, lanes):
            changed.append(Share(source=flow.source, link=flow.link, lanes=lanes))
    return tuple(changed)


def _budgeted(flow: FlowPlan) -> bool:
    throttle = flow.policy.throttle
    return throttle.bytes_per_second is not None or throttle.records_per_second is not None


def _needs(
    flow: FlowPlan,
    layout: Layout,
    control: ControlState,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    ends: Mapping[TopicPartition, int],
) -> dict[int, LaneNeed]:
    block = layout.block(flow.link)
    if block is None:
        return {}
    records = dict.fromkeys(block.lanes, 0)
    sizes = dict(records)
    urgent: dict[int, Priority] = {}
    pauses = control.pauses(flow.id)
    for topic in control.topics(flow.source, flow.link):
        for partition in range(topic.working_partitions):
            if pauses and control.paused(flow.id, flow.link, topic.topic, partition):
                continue
            checkpoint = checkpoints.get((topic.topic, partition))
            end = ends.get((topic.topic, partition), 0)
            backlog = max(0, end - (checkpoint.offset if checkpoint is not None else 0))
            if backlog == 0 or (checkpoint is not None and checkpoint.problem):
                continue
            lane = lane_in(block, topic.topic, partition)
            records[lane] += backlog
            sizes[lane] += backlog * _record_bytes(checkpoint)
            held = urgent.get(lane)
            if held is None or PRIORITIES.index(topic.priority) < PRIORITIES.index(held):
                urgent[lane] = topic.priority
    return {
        lane: LaneNeed(records[lane], sizes[lane], urgent.get(lane, flow.policy.priority))
        for lane in records
    }


def _record_bytes(checkpoint: Checkpoint | None) -> int:
    if checkpoint is None or checkpoint.records == 0:
        return _TYPICAL_RECORD_BYTES
    return max(1, checkpoint.bytes // checkpoint.records)


def _differs(held: Mapping[str, LaneShare], wanted: Mapping[str, LaneShare]) -> bool:
    if held.keys() != wanted.keys():
        return True
    return any(
        _moved(held[lane].bytes_per_second, wanted[lane].bytes_per_second)
        or _moved(held[lane].records_per_second, wanted[lane].records_per_second)
        for lane in wanted
    )


def _moved(held: int | None, wanted: int | None) -> bool:
    if held is None or wanted is None:
        return held is not wanted
    return abs(wanted - held) > CHANGE_WORTH_WRITING * max(held, 1)
