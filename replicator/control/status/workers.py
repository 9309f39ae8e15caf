"""Who copies a flow and in which lanes, with the memory of each, and how the newest canary fared. Pure."""

from collections.abc import Sequence

from replicator.control.records.pair_records import Block, Layout
from replicator.control.records.worker_records import FlowRates, MemoryPart, WorkerRecord
from replicator.control.status.facts import PairFacts
from replicator.control.status.links import moment
from replicator.identifiers import JsonObject


def newest_canary(rates: Sequence[FlowRates], now_ms: int) -> JsonObject | None:
    """The newest canary that any worker tells of; None while none has come."""
    newest = max((r.canary for r in rates if r.canary), key=lambda each: each.at_ms, default=None)
    if newest is None:
        return None
    return {
        "roundTripSeconds": newest.round_trip_seconds,
        "ageSeconds": round(max(0, now_ms - newest.at_ms) / 1000, 1),
        "lost": newest.lost,
    }


def lanes_of_flow(layout: Layout | None, block: Block | None) -> JsonObject | None:
    """How many lanes the flow has, and when and why the lanes of the pair were laid out last."""
    if layout is None or block is None:
        return None
    return {
        "count": block.count,
        "changing": layout.state == "changing",
        "since": moment(layout.at_ms) if layout.at_ms else None,
        "reason": layout.reason,
    }


def workers_of_flow(
    facts: PairFacts, workers: Sequence[WorkerRecord], block: Block | None
) -> list[JsonObject]:
    """Workers with their lanes of this flow: by the group's word, else by their own.

    A worker writes its lanes down every few seconds and a dead one not at all: the group knows now. What each may
    hold in memory is its own word, None where it has not said.
    """
    mine = frozenset() if block is None else frozenset(block.lanes)
    told = {each.id: mine.intersection(each.lanes) for each in facts.members or workers}
    memory = {worker.id: worker.memory for worker in workers}
    return [
        {"id": worker_id, "lanes": sorted(lanes), "memory": _memory(memory.get(worker_id))}
        for worker_id, lanes in sorted(told.items())
        if lanes
    ]


def _memory(part: MemoryPart | None) -> JsonObject | None:
    if part is None:
        return None
    return {
        "limitBytes": part.limit_bytes,
        "recordsBytes": part.records_bytes,
        "laneBytes": part.lane_bytes,
    }
