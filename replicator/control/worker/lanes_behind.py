"""Finds lanes that never catch up although they copy without a break: they have more work than one lane can do."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from replicator.formats.lane_stats import LaneStats, PartitionStats

BEHIND_SECONDS = 60.0
"""A lane counts once it has been behind for this long without a break."""

_WAITING_SECONDS = 5.0
"""A lane is behind when more records wait for it than it copies in this time."""

_Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float
    position: int
    throttled: float
    since: float | None


class LanesBehind:
    """Watches the lanes of one worker; ``count`` is called every few seconds."""

    def __init__(self) -> None:
        self._seen: dict[_Key, _Seen] = {}

    def count(self, lanes: Iterable[LaneStats], *, now: float) -> Counter[str]:
        """How many lanes of each link have been behind for BEHIND_SECONDS; ``now`` in monotonic seconds."""
        seen: dict[_Key, _Seen] = {}
        found: Counter[str] = Counter()
        for stats in lanes:
            key = (stats.link, stats.lane, stats.pid)
            since = self._behind_since(stats, self._seen.get(key), now)
            position = sum(each.position for each in stats.partitions)
            seen[key] = _Seen(now, position, stats.throttle_wait_seconds, since)
            if since is not None and now - since >= BEHIND_SECONDS:
                found[stats.link] += 1
        self._seen = seen
        return found

    @staticmethod
    def _behind_since(stats: LaneStats, before: _Seen | None, now: float) -> float | None:
        if before is None or now <= before.at or stats.state != "running":
            return None
        waiting = [rest for each in stats.partitions if (rest := _waiting(each)) > 0]
        done = sum(each.position for each in stats.partitions) - before.position
        per_second = done / (now - before.at)
        # One partition cannot be divided, a throttle is intended, and a lane that copies nothing is not slow but stuck.
        if (
            len(waiting) < 2
            or done <= 0
            or stats.throttle_wait_seconds > before.throttled
            or sum(waiting) < _WAITING_SECONDS * per_second
        ):
            return None
        return before.at if before.since is None else before.since


def _waiting(partition: PartitionStats) -> int:
    """Records that could be copied now."""
    if partition.state != "replicating" or partition.failure is not None:
        return 0
    return max(0, partition.source_end - partition.position)
