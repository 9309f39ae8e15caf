"""Lanes whose thread waits inside one step: it says nothing meanwhile, so its process does.

A commit that a broker does not answer keeps the lane's thread for up to a minute, a take-over for half of one. What
its clients reported in that time is known, and is shown with the lane's last statistics.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from replicator.clock import Clock
from replicator.dataplane.lane.lane import Lane, Post
from replicator.dataplane.transport.messages import LogLine
from replicator.formats.lane_stats import LaneStats

STILL_SECONDS = 8.0
"""So long a step may take without a word; a batch or a commit takes less."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lane at work at the last look: ``since`` (monotonic seconds) it is; ``told`` that it waits."""

    since: float
    told: bool
    shown: LaneStats


class StillLanes:
    """Of one process; for the thread that sends statistics."""

    def __init__(self, *, clock: Clock, post: Post) -> None:
        self._clock = clock
        self._post = post
        self._seen: dict[Lane, _Seen] = {}

    def pictures(self, lanes: Iterable[Lane]) -> dict[Lane, LaneStats]:
        """The statistics of each lane, with what is wrong by now where its thread waits.

        They are the same object as at the last call while nothing is new.
        """
        before, self._seen = self._seen, {}
        return {lane: self._picture(lane, before.get(lane)) for lane in lanes}

    def _picture(self, lane: Lane, before: _Seen | None) -> LaneStats:
        now, stats = self._clock.monotonic(), lane.stats
        if stats.state not in {"starting", "running"}:
            return stats  # it has said why
        since = now if before is None else before.since
        waited = now - max(since, lane.active_at)
        if waited < STILL_SECONDS:
            self._seen[lane] = _Seen(since, False, stats)
            return stats
        source, target = lane.problems()
        shown = replace(
            stats,
            source_problem=source or stats.source_problem,
            target_problem=target or stats.target_problem,
        )
        if shown == stats:
            shown = stats
        elif before is not None and shown == before.shown:
            shown = before.shown
        if before is None or not before.told:
            self._tell(shown, waited)
        self._seen[lane] = _Seen(since, True, shown)
        return shown

    def _tell(self, stats: LaneStats, waited: float) -> None:
        known = [text.partition("\n")[0] for text in (stats.source_problem, stats.target_problem)]
        fields = {
            "flow": stats.pair,
            "link": stats.link,
            "lane": str(stats.lane),
            "waited": f"{waited:.0f} s",
            "detail": "; ".join(filter(None, known)) or "no error was reported to it",
            "remedy": "It waits for an answer of a broker, or for acknowledgements. Look at the brokers of both clusters.",
        }
        self._post(LogLine("warning", "lane has not finished a step for long", fields))
