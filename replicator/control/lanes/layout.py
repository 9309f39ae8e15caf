"""Which lanes serve which link: the pure decision.

Invariants: blocks are contiguous and do not overlap; a link has one block; a lane serves one link;
the checkpoints topic has at least as many partitions as the layout has lanes. A block never changes
its place or size outside a fenced change, because the lane of a partition follows from both.

Only adding a link's block leaves every existing lane as it is, so it needs no fence. Everything else
(a new lane count, a topic that now belongs to another link) moves checkpoints between lanes.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Literal

from replicator.control.lanes.lane_growth import Grown
from replicator.control.records.pair_records import Block, Layout
from replicator.policy.capacity.lane_assignment import MAX_LANES, auto_lanes, lane_of
from replicator.topology.plan import PairPlan

LayoutChange = Literal["none", "write", "fenced"]


@dataclass(frozen=True, slots=True)
class LayoutDecision:
    """The layout to have. ``write``: just store it; ``fenced``: through a fenced change."""

    layout: Layout
    change: LayoutChange
    reason: str


def decide_layout(
    pair: PairPlan,
    current: Layout | None,
    *,
    partitions: Mapping[str, int],
    moved_topics: AbstractSet[str] = frozenset(),
    checkpoints_exist: bool = False,
    grown: Mapping[str, Grown] | None = None,
    now_ms: int = 0,
) -> LayoutDecision:
    """Compares the layout on record with the flows that are wanted.

    Args:
        pair: the flows; ``lanes`` of their policy is a count or None for ``auto``.
        current: the layout on record, None before the first apply.
        partitions: source partitions of each link's topics now, for ``auto``.
        moved_topics: topics whose checkpoints stand in another link's lanes.
        checkpoints_exist: whether anything was ever checkpointed for the pair; without a layout on
            record this means that the record was lost, and checkpoints must be put in their place.
        grown: links whose ``auto`` is to have more lanes now.
        now_ms: milliseconds since the epoch; another layout than ``current`` says when it was decided.
    """
    decision = _decided(
        pair, current, partitions=partitions, moved_topics=moved_topics,
        checkpoints_exist=checkpoints_exist, grown=grown or {},
    )  # fmt: skip
    if decision.change == "none":
        return decision
    told = {"at_ms": now_ms, "reason": decision.reason}
    return replace(decision, layout=decision.layout.model_copy(update=told))


def _decided(
    pair: PairPlan,
    current: Layout | None,
    *,
    partitions: Mapping[str, int],
    moved_topics: AbstractSet[str],
    checkpoints_exist: bool,
    grown: Mapping[str, Grown],
) -> LayoutDecision:
    source = pair.source.alias
    if current is None:
        layout = _laid_out(pair, None, partitions, epoch=1)
        if checkpoints_exist:
            return LayoutDecision(layout, "fenced", "checkpoints exist without a layout on record")
        return LayoutDecision(layout, "write", f"first layout: {_in_words(layout)}")
    if current.state == "changing":
        layout = _laid_out(pair, current, partitions, epoch=current.epoch)
        return LayoutDecision(layout, "fenced", "an interrupted change of lanes is finished")
    resized = [*_asked(pair, current), *_grown(current, grown)]
    if resized:
        layout = _laid_out(pair, current, partitions, epoch=current.epoch + 1, grown=grown)
        return LayoutDecision(layout, "fenced", f"lanes change: {', '.join(resized)}")
    added = [flow.link for flow in pair.flows if current.block(flow.link) is None]
    layout = current
    if added:
        blocks = list(current.blocks)
        first = current.total
        for flow in pair.flows:
            if flow.link in added:
                count = _count(flow.policy.lanes, partitions.get(flow.link, 0))
                blocks.append(Block(link=flow.link, first=first, count=count))
                first += count
        layout = Layout(
            source=source, epoch=current.epoch, state="stable", blocks=tuple(blocks), total=first
        )
    if moved_topics:
        moved = layout.model_copy(update={"epoch": current.epoch + 1})
        names = ", ".join(sorted(moved_topics)[:3])
        return LayoutDecision(moved, "fenced", f"topics change their link: {names}")
    if added:
        return LayoutDecision(layout, "write", f"lanes for new links: {', '.join(added)}")
    return LayoutDecision(current, "none", "as it is")


def lane_in(block: Block, topic: str, partition: int) -> int:
    """The lane, counted over the whole pair, that owns a source partition of the block's link."""
    return block.first + lane_of(topic, partition, block.count)


def _asked(pair: PairPlan, current: Layout) -> list[str]:
    """Where the file asks for another number of lanes, in words."""
    return [
        f"{flow.link} from {block.count} to {flow.policy.lanes}"
        for flow in pair.flows
        if (block := current.block(flow.link)) is not None
        and flow.policy.lanes is not None
        and flow.policy.lanes != block.count
    ]


def _grown(current: Layout, grown: Mapping[str, Grown]) -> list[str]:
    """Which links get more lanes by themselves, in words."""
    return [
        f"{link} from {block.count} to {more.lanes} for {more.reason}"
        for link, more in grown.items()
        if (block := current.block(link)) is not None
    ]


def _laid_out(
    pair: PairPlan,
    current: Layout | None,
    partitions: Mapping[str, int],
    *,
    epoch: int,
    grown: Mapping[str, Grown] | None = None,
) -> Layout:
    """A fresh layout in the order of the file; `auto` counts stay as they are where they do not grow."""
    more = grown or {}
    blocks: list[Block] = []
    first = 0
    for flow in (*pair.flows, *pair.standby):
        held = current.block(flow.link) if current is not None else None
        if held is None and flow not in pair.flows:
            continue  # a resting flow keeps the lanes it has, and gets its first when it runs
        if flow.policy.lanes is None and held is not None:
            count = more[flow.link].lanes if flow.link in more else held.count
        else:
            count = _count(flow.policy.lanes, partitions.get(flow.link, 0))
        blocks.append(Block(link=flow.link, first=first, count=count))
        first += count
    return Layout(
        source=pair.source.alias, epoch=epoch, state="stable", blocks=tuple(blocks), total=first
    )


def _count(wanted: int | None, source_partitions: int) -> int:
    return min(wanted if wanted is not None else auto_lanes(source_partitions), MAX_LANES)


def _in_words(layout: Layout) -> str:
    return ", ".join(f"{block.count} lanes for {block.link}" for block in layout.blocks)
