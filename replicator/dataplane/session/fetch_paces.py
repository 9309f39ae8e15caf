"""Whether records come briskly without being a backlog: a lane asks its source in paces then. Pure.

Why: docs/decisions/a-trickle-is-fetched-in-paces.md.
"""

from replicator.dataplane.session.trickle_rest import BACKLOG_RECORDS, SLOW_RECORDS_PER_SECOND

WINDOW_SECONDS = 1.0
CALM_RECORDS_PER_SECOND = SLOW_RECORDS_PER_SECOND / 2
CALM_WINDOWS = 60
"""So many in a row end it: to change costs more than to wait."""


class Briskness:
    """Knows how records came in the last windows of time. Times are seconds of one monotonic clock."""

    def __init__(self, now: float) -> None:
        self._brisk = False
        self._began = now
        self._records = self._steps = self._calm = 0

    def stepped(self, found: int, now: float) -> bool:
        """Whether they come briskly, behind a step that found ``found`` records; 0 where it found none."""
        self._records += found
        self._steps += 1
        seconds = now - self._began
        if seconds < WINDOW_SECONDS:
            return self._brisk
        per_second, per_step = self._records / seconds, self._records / self._steps
        self._began, self._records, self._steps = now, 0, 0
        self._calm = self._calm + 1 if per_second < CALM_RECORDS_PER_SECOND else 0
        if per_second >= SLOW_RECORDS_PER_SECOND and per_step < BACKLOG_RECORDS:
            self._brisk = True
        elif self._calm >= CALM_WINDOWS:
            self._brisk = False
        return self._brisk
