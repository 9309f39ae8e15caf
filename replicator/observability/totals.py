"""Counters that never go back, from lanes that do.

A lane counts from zero each time a process takes it. Prometheus wants one series per flow that only
grows. ``Totals`` adds up what each observation adds to the one before it; an observation whose
process changed, or in which any counter went back, is a new life of the lane and adds all of itself.

Feed it every statistics message, not only those seen by a scrape: what a lane did between its last
observed message and its end is otherwise lost to the sum. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from replicator.formats.lane_stats import LaneStats
from replicator.identifiers import is_canary_topic

LaneKey = tuple[str, str, int]
FlowKey = tuple[str, str]
PartitionKey = tuple[str, str, str, int]


@dataclass(slots=True)
class FlowTotals:
    """Sums over all lives of all lanes of one flow of one link. Buckets are plain counts."""

    latency_buckets: list[int]
    commit_buckets: list[int]
    records: int = 0
    bytes: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    quarantined: int = 0
    foreign_headers: int = 0
    headers_omitted: int = 0
    commits: int = 0
    aborts: int = 0
    unknown_outcomes: int = 0
    throttle_wait_seconds: float = 0.0
    latency_sum_seconds: float = 0.0
    commit_sum_seconds: float = 0.0


_SCALARS = (
    "records", "bytes", "quarantined", "foreign_headers", "headers_omitted", "commits", "aborts",
    "unknown_outcomes", "throttle_wait_seconds", "latency_sum_seconds", "commit_sum_seconds",
)  # fmt: skip


@dataclass(slots=True)
class _Life:
    """The last observation of a lane, copied: the caller may reuse its object."""

    pid: int
    scalars: tuple[float, ...]
    dropped: dict[str, int]
    latency_buckets: tuple[int, ...]
    commit_buckets: tuple[int, ...]
    partitions: dict[tuple[str, int], tuple[int, int]]


class Totals:
    """Adds up lanes. Invariant: no figure it holds ever decreases."""

    def __init__(self, *, buckets: int, detail: bool) -> None:
        """``buckets`` counts the one for everything above; ``detail`` also sums per partition."""
        self._buckets = buckets
        self._detail = detail
        self._lives: dict[LaneKey, _Life] = {}
        self.flows: dict[FlowKey, FlowTotals] = {}
        self.partitions: dict[PartitionKey, tuple[int, int]] = {}

    def flow(self, link: str, flow: str) -> FlowTotals:
        """The totals of a flow, at zero when it was never observed."""
        totals = self.flows.get((link, flow))
        if totals is None:
            totals = FlowTotals([0] * self._buckets, [0] * self._buckets)
            self.flows[link, flow] = totals
        return totals

    def observe(self, lane: LaneStats) -> None:
        """Adds what this observation has more than the last one of the same life."""
        key = (lane.pair, lane.link, lane.lane)
        seen = _Life(
            pid=lane.pid,
            scalars=tuple(getattr(lane, name) for name in _SCALARS),
            dropped=dict(lane.dropped),
            latency_buckets=tuple(lane.latency_buckets),
            commit_buckets=tuple(lane.commit_buckets),
            partitions={
                (entry.topic, entry.partition): (entry.records, entry.bytes)
                for entry in lane.partitions
                if not is_canary_topic(entry.topic)
            }
            if self._detail
            else {},
        )
        before = self._lives.get(key)
        if before is not None and _is_new_life(before, seen):
            before = None
        self._lives[key] = seen
        self._add(self.flow(lane.link, lane.pair), before, seen)
        for (topic, partition), counts in seen.partitions.items():
            earlier = before.partitions.get((topic, partition), (0, 0)) if before else (0, 0)
            self._add_partition((lane.link, lane.pair, topic, partition), earlier, counts)

    def _add(self, totals: FlowTotals, before: _Life | None, seen: _Life) -> None:
        earlier = before.scalars if before else (0,) * len(_SCALARS)
        for name, now, then in zip(_SCALARS, seen.scalars, earlier, strict=True):
            if now != then:
                setattr(totals, name, getattr(totals, name) + (now - then))
        for reason, count in seen.dropped.items():
            then = before.dropped.get(reason, 0) if before else 0
            totals.dropped[reason] = totals.dropped.get(reason, 0) + count - then
        _add_buckets(
            totals.latency_buckets, seen.latency_buckets, before.latency_buckets if before else ()
        )
        _add_buckets(
            totals.commit_buckets, seen.commit_buckets, before.commit_buckets if before else ()
        )

    def _add_partition(
        self, key: PartitionKey, before: tuple[int, int], seen: tuple[int, int]
    ) -> None:
        # A partition that left its lane and came back counts from zero within the same life.
        if seen[0] < before[0] or seen[1] < before[1]:
            before = (0, 0)
        records, size_bytes = self.partitions.get(key, (0, 0))
        self.partitions[key] = (records + seen[0] - before[0], size_bytes + seen[1] - before[1])


def _is_new_life(before: _Life, seen: _Life) -> bool:
    return (
        before.pid != seen.pid
        or any(now < then for now, then in zip(seen.scalars, before.scalars, strict=True))
        or any(seen.dropped.get(reason, 0) < then for reason, then in before.dropped.items())
        or _went_back(seen.latency_buckets, before.latency_buckets)
        or _went_back(seen.commit_buckets, before.commit_buckets)
    )


def _went_back(seen: Sequence[int], before: Sequence[int]) -> bool:
    return len(seen) < len(before) or any(
        now < then for now, then in zip(seen, before, strict=False)
    )


def _add_buckets(totals: list[int], seen: Sequence[int], before: Sequence[int]) -> None:
    for index, now in enumerate(seen):
        then = before[index] if index < len(before) else 0
        # Bounds are shared by contract; a longer list can only come from another version's lane.
        totals[min(index, len(totals) - 1)] += now - then
