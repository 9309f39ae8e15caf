"""Time as a dependency: nothing below the composition root reads the machine's clock by itself.

Beside it, points in time as JSON and people have them.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999."""


class Clock(Protocol):
    """What the code may ask about time."""

    def now(self) -> float:
        """Wall-clock seconds since the epoch, for timestamps that others read."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for deadlines and rates."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits; a manual clock advances instead."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Wall-clock seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Blocks the calling thread."""
        time.sleep(seconds)  # the one place where a wait by the clock is made; callers say why


def instant(at_ms: int) -> datetime:
    """A time in milliseconds; producers may write any, so it is clipped to the years a calendar has."""
    return _EPOCH + timedelta(milliseconds=min(max(at_ms, _FIRST_MS), _LAST_MS))


def json_time(at_ms: int) -> str:
    """A time in milliseconds as JSON and people have it: ISO 8601 in UTC, to the millisecond."""
    return instant(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
