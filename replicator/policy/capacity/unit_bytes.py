"""How much the records engine puts into one unit of progress over a line whose rate nobody knows. Pure.

What is produced waits in the client for its broker, and nothing says that the line is narrow before the unit is to be
stored. 12 MB over 200 KB/s are 60 s: a transaction may not be open for longer, so it would be aborted, and written again
without end. So a session begins with little, and goes on with about as much as was stored in AIM_SECONDS.
"""

from typing import Final

FIRST_BYTES: Final = 1024 * 1024
LEAST_BYTES: Final = 64 * 1024
MOST_BYTES: Final = 64 * 1024 * 1024
"""More than a client holds: nothing is bounded any more."""

AIM_SECONDS: Final = 8.0
"""How long the commit of a unit may wait for its records: far below the 30 s for which a broker may owe an answer."""

_GROWTH: Final = 4.0


class UnitBytes:
    """Of one session; for one thread.

    Attributes:
        most_bytes: how many bytes of records a unit should hold.
    """

    def __init__(self) -> None:
        self.most_bytes = FIRST_BYTES

    @property
    def bounded(self) -> bool:
        """Whether ``most_bytes`` is less than what a session would produce by itself."""
        return self.most_bytes < MOST_BYTES

    def stored(self, size: int, seconds: float) -> None:
        """A unit of so many bytes was stored, for which its commit waited so long."""
        factor = min(_GROWTH, AIM_SECONDS / max(seconds, 0.001))
        if factor < 1.0:
            self.most_bytes = max(LEAST_BYTES, int(min(size, self.most_bytes) * factor))
        elif 2 * size >= self.most_bytes:
            self.most_bytes = int(self.most_bytes * factor)
