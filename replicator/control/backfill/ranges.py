"""Which ranges of history a bulk run copies: the pure plan, before anything is declared or started.

Invariant: a range begins where the partition's checkpoint stands (or, without one, where the policy
says that a flow starts) and ends where the source's log ended when it was looked at. So whatever is
written later lies behind every range, and the live flow finds it there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replicator.control.lanes.layout import lane_in
from replicator.control.records.pair_records import BackfillRecord, TopicRecord
from replicator.control.store.state import ControlState
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition, is_canary_topic
from replicator.topology.plan import FlowPlan


@dataclass(frozen=True, slots=True)
class BackfillFacts:
    """What was read of both clusters, by source topic and partition.

    Attributes:
        starts: oldest source offsets, or where the policy's start time is.
        log_starts: oldest source offsets.
        ends: last stable offsets of the source.
        sizes: bytes on the source's disks.
        checkpoints: how far each partition was copied.
    """

    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    log_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    checkpoints: Mapping[TopicPartition, Checkpoint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BackfillRange:
    """Source offsets ``start`` to ``end`` (half open) of one partition, to be copied in order.

    ``position`` is where copying begins: above ``start`` when an earlier run was interrupted.
    ``size`` are the bytes still to copy as they lie on the source's disks.
    """

    flow: FlowPlan
    record: TopicRecord
    partition: int
    lane: int
    start: int
    end: int
    position: int
    size: int
    resumed: bool = False

    @property
    def key(self) -> TopicPartition:
        """Source topic and partition."""
        return self.record.topic, self.partition

    @property
    def records(self) -> int:
        """Offsets still to copy; gaps of compaction and transactions count."""
        return max(0, self.end - self.position)


def plan_ranges(
    flows: Iterable[FlowPlan],
    control: ControlState,
    facts: BackfillFacts,
    *,
    topics: Iterable[str] = (),
    keeps_latest: bool = False,
) -> tuple[BackfillRange, ...]:
    """The ranges to copy, the largest first: long chains must not begin last.

    Args:
        flows: flows of one pair.
        control: what the target's control topic says.
        facts: both clusters.
        topics: only these source topics; empty means all.
        keeps_latest: the run copies the last value per key only; an unfinished range of a run that
            did otherwise is left to that kind of run.
    """
    only = frozenset(topics)
    ranges: list[BackfillRange] = []
    for flow in flows:
        layout = control.layout(flow.source)
        block = layout.block(flow.link) if layout is not None else None
        if block is None:
            continue
        for record in control.topics(flow.source, flow.link):
            if is_canary_topic(record.topic) or (only and record.topic not in only):
                continue
            for number in range(record.working_partitions):
                lane = lane_in(block, record.topic, number)
                found = _range(
                    flow, record, number, lane,
                    control=control, facts=facts, keeps_latest=keeps_latest,
                )  # fmt: skip
                if found is not None:
                    ranges.append(found)
    return tuple(sorted(ranges, key=lambda one: (-one.size, -one.records, one.key)))


def _range(
    flow: FlowPlan,
    record: TopicRecord,
    partition: int,
    lane: int,
    *,
    control: ControlState,
    facts: BackfillFacts,
    keeps_latest: bool,
) -> BackfillRange | None:
    key = (record.topic, partition)
    held = control.seed(flow.source, flow.link, record.topic, partition)
    checkpoint = facts.checkpoints.get(key)
    if held is not None and held.state != "done":
        # Also where policy stopped it: its task ends the range at once, and the stop is seen again.
        return _resumed(
            flow, record, partition, lane, held=held, facts=facts, keeps_latest=keeps_latest
        )
    if checkpoint is not None and checkpoint.problem:
        return None  # stopped by policy: an operator decides, not a copy
    if control.paused(flow.id, flow.link, record.topic, partition):
        return None
    end = facts.ends.get(key)
    if end is None:
        return None
    if checkpoint is not None:
        start = checkpoint.offset
    else:
        at_end = flow.policy.start_from.kind == "latest" and not record.is_late(partition)
        start = end if at_end else facts.starts.get(key, end)
    if start >= end:
        return None
    size = _size(key, start, end, facts)
    return BackfillRange(flow, record, partition, lane, start, end, start, size)


def _resumed(
    flow: FlowPlan,
    record: TopicRecord,
    partition: int,
    lane: int,
    *,
    held: BackfillRecord,
    facts: BackfillFacts,
    keeps_latest: bool,
) -> BackfillRange | None:
    """An unfinished range keeps its plan; what was declared but not planned yet is planned now."""
    if held.purpose != "history" or (held.run and held.keeps_latest != keeps_latest):
        return None
    key = (record.topic, partition)
    checkpoint = facts.checkpoints.get(key)
    start, end = held.start, held.end
    if not held.run:
        if key not in facts.ends or key not in facts.starts:
            return None  # its leader did not answer: a guess would stand in a checkpoint
        end = facts.ends[key]
        start = checkpoint.offset if checkpoint is not None else facts.starts[key]
    position = max(start, checkpoint.offset if checkpoint is not None else start)
    size = _size(key, position, end, facts)
    return BackfillRange(flow, record, partition, lane, start, end, position, size, resumed=True)


def _size(key: TopicPartition, position: int, end: int, facts: BackfillFacts) -> int:
    """The part of the log's bytes that lies in the range, as if all records were alike."""
    low = facts.log_starts.get(key, position)
    high = max(facts.ends.get(key, end), end)
    whole = high - low
    if whole <= 0:
        return 0
    part = min(end, high) - max(position, low)
    return round(facts.sizes.get(key, 0) * max(0, part) / whole)


def backfill_record(
    one: BackfillRange, *, run: str, at_ms: int, by: str, keeps_latest: bool = False
) -> BackfillRecord:
    """The declaration that this run copies the range."""
    return BackfillRecord(
        source=one.flow.source,
        link=one.flow.link,
        topic=one.record.topic,
        partition=one.partition,
        state="seeding",
        run=run,
        start=one.start,
        end=one.end,
        at_ms=at_ms,
        by=by,
        keeps_latest=keeps_latest,
        position=one.position,
    )
