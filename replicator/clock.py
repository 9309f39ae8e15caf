"""Time as a dependency: nothing below the composition root reads the machine's clock by itself."""

import time
from typing import Protocol


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
