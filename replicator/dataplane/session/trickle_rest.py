"""How long a lane without transactions rests behind the records that it found. Pure.

Taken as they come, records cost a produce request for every few of them, and what that costs the target and its readers; behind a
rest more are found at once. Measured: docs/decisions/a-trickle-is-fetched-in-paces.md.
"""

REST_SECONDS, LONGEST_REST_SECONDS = 0.004, 0.016
FEW_RECORDS = 8
SLOW_RECORDS_PER_SECOND = 1500.0
"""Records that come no quicker are not rested behind: so few requests cost little, and every rest is a delay."""

BACKLOG_RECORDS, BACKLOG_BYTES = 300, 1_000_000
REST_PER_WORK = 2.0
"""A step takes longer than it should where the machine is short of processors. The brokers on it are short of them too, so the
lane takes a third of the time at most."""


class TrickleRest:
    """Knows how many records came since it decided last.

    Times are seconds of one monotonic clock.
    """

    def __init__(self, now: float) -> None:
        self._found = 0
        self._since = now

    def seconds(self, found: int, size: int, *, began: float, now: float) -> float:
        """How long to rest behind a step from ``began`` to ``now``; 0: not at all.

        It found ``found`` records and copied ``size`` bytes of them. Those that it dropped count: a few at a time cost the same fetches.
        """
        self._found += found
        if self._found < FEW_RECORDS:
            return 0.0
        slow = self._found < SLOW_RECORDS_PER_SECOND * (now - self._since)
        self._found, self._since = 0, now
        if slow or found >= BACKLOG_RECORDS or size >= BACKLOG_BYTES:
            return 0.0
        return min(max(REST_SECONDS, REST_PER_WORK * (now - began)), LONGEST_REST_SECONDS)
