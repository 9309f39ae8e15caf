"""How many lanes a flow with ``lanes: auto`` should have now: it follows partitions, workers and load. Pure.

Lanes are only ever added. Each change fences all lanes of the pair, which then stand still for a moment, so
there is at most one a minute, and none for a small difference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicator.control.records.pair_records import Layout
from replicator.control.records.worker_records import WorkerRecord
from replicator.policy.capacity.lane_assignment import FEW_LANES, MAX_LANES, auto_lanes
from replicator.topology.plan import FlowPlan, PairPlan

PAUSE_SECONDS = 60.0
"""The least time between two changes of a pair's lanes: the effect of the first must show before the next."""

LANE_BYTES = 16 * 1024 * 1024
"""Memory for records that every lane above FEW_LANES must have; without it there are fewer lanes."""

LANES_PER_PROCESS = 4
"""For load, lanes are added up to this many per worker process; more would only share the same cores."""


@dataclass(frozen=True, slots=True)
class Grown:
    """The lanes that a flow should have, and why."""

    lanes: int
    reason: str


def grown_lanes(
    pair: PairPlan,
    layout: Layout | None,
    *,
    partitions: Mapping[str, int],
    workers: Iterable[WorkerRecord],
    now_ms: int,
) -> dict[str, Grown]:
    """By link: the flows that should have more lanes than the layout gives them.

    Args:
        pair: the flows.
        layout: the layout on record; nothing grows without a stable one, or without a worker.
        partitions: source partitions of each link's topics now.
        workers: those of the pair that are at work now.
        now_ms: milliseconds since the epoch.
    """
    if layout is None or layout.state != "stable" or now_ms - layout.at_ms < PAUSE_SECONDS * 1000:
        return {}
    at_work = tuple(workers)
    if not at_work:
        return {}
    found: dict[str, Grown] = {}
    for flow in pair.flows:
        block = layout.block(flow.link)
        if block is None or flow.policy.lanes is not None or flow.policy.runtime != "workers":
            continue
        grown = _grown(flow, block.count, partitions.get(flow.link, 0), at_work)
        if grown is not None:
            found[flow.link] = grown
    return found


def _grown(
    flow: FlowPlan, held: int, partitions: int, workers: tuple[WorkerRecord, ...]
) -> Grown | None:
    most = _most(partitions, workers)
    wanted = min(auto_lanes(partitions, len(workers)), most)
    if _is_worth_it(wanted, held):
        shared = "1 worker" if len(workers) == 1 else f"{len(workers)} workers"
        return Grown(wanted, f"{partitions} partitions and {shared}")
    behind = sum(
        rate.lanes_behind for worker in workers for rate in worker.flows if rate.link == flow.link
    )
    useful = LANES_PER_PROCESS * sum(worker.processes for worker in workers)
    more = min(2 * held, useful, most)
    if behind and _is_worth_it(more, held):
        return Grown(more, f"{behind} of {held} lanes were behind for a minute")
    return None


def _most(partitions: int, workers: tuple[WorkerRecord, ...]) -> int:
    """No more lanes than partitions, and no more than there is memory for."""
    held = [worker.memory.records_bytes if worker.memory else 0 for worker in workers]
    fits = sum(held) // LANE_BYTES if all(held) else MAX_LANES  # 0: not known
    return min(partitions, MAX_LANES, max(FEW_LANES, fits))


def _is_worth_it(wanted: int, held: int) -> bool:
    return 2 * wanted >= 3 * held
