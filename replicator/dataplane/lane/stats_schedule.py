"""How often a lane publishes its statistics: less often while nothing is copied. Pure."""

STATS_SECONDS = 1.0

IDLE_STATS_SECONDS = 5.0
"""While nothing is copied: a hundred idle partitions then cost next to nothing."""

UNCHANGED_STATS_SECONDS = 15.0
"""Once statistics without a change were published."""


class StatsSchedule:
    """For one lane; times are monotonic seconds."""

    def __init__(self) -> None:
        self._records = 0
        self._unchanged = False
        self._published_at = 0.0

    def is_due(self, now: float, *, records: int, problem: bool) -> bool:
        """Whether to publish now; the next answer reckons from here if so.

        ``records`` counts what the lane has copied or dropped; ``problem`` says that a cluster does not
        answer.
        """
        pause = STATS_SECONDS
        moved = records != self._records
        if not moved and not problem:
            pause = UNCHANGED_STATS_SECONDS if self._unchanged else IDLE_STATS_SECONDS
        if now - self._published_at < pause:
            return False
        self._published_at = now
        self._unchanged = not moved
        self._records = records
        return True
