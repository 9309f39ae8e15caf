"""What a worker's lanes do per second, of each link."""

from collections.abc import Iterable

from replicator.control.records.problem_part import ProblemPart
from replicator.control.records.worker_records import FlowRates
from replicator.control.store.worker_record import lane_problems
from replicator.control.worker.lanes_behind import LanesBehind
from replicator.formats.lane_stats import LaneStats


class RateMeter:
    """Turns growing lane counters into rates per link; lanes may restart and begin at zero."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int, int], tuple[int, int]] = {}
        self._behind = LanesBehind()
        self._at: float | None = None

    def rates(self, lanes: Iterable[LaneStats], *, now: float) -> tuple[FlowRates, ...]:
        """Records and bytes per second since the last call, with the lanes' own problems."""
        lanes = tuple(lanes)
        behind = self._behind.count(lanes, now=now)
        elapsed = None if self._at is None else max(now - self._at, 1e-6)
        self._at = now
        totals: dict[str, list[float]] = {}
        problems: dict[str, list[ProblemPart]] = {}
        reasons: dict[str, str] = {}
        seen: dict[tuple[str, int, int], tuple[int, int]] = {}
        for stats in lanes:
            key = (stats.link, stats.lane, stats.pid)
            before = self._last.get(key, (0, 0))
            if stats.records < before[0]:
                before = (0, 0)
            seen[key] = (stats.records, stats.bytes)
            total = totals.setdefault(stats.link, [0.0, 0.0])
            if elapsed is not None:
                total[0] += (stats.records - before[0]) / elapsed
                total[1] += (stats.bytes - before[1]) / elapsed
            problems.setdefault(stats.link, []).extend(lane_problems(stats))
            if stats.records_reason:
                reasons.setdefault(stats.link, stats.records_reason)
        self._last = seen
        return tuple(
            FlowRates(
                link=link,
                records_per_second=round(records, 1),
                bytes_per_second=round(size, 1),
                problems=tuple(dict.fromkeys(problems.get(link, ()))),
                lanes_behind=behind[link],
                records_reason=reasons.get(link, ""),
            )
            for link, (records, size) in totals.items()
        )
