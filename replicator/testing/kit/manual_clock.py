"""A clock that moves only on request, for code that takes a ``Clock``."""

import threading


class ManualClock:
    """Implements ``replicator.clock.Clock``; ``sleep`` advances instead of blocking.

    Wall time and monotonic time move together with ``advance``; ``jump_wall`` moves only the wall
    clock, forwards or back, as an operator or a time daemon would.
    """

    def __init__(self, *, now: float = 1_700_000_000.0, monotonic: float = 0.0) -> None:
        self._now = now
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self.slept_seconds: list[float] = []

    def now(self) -> float:
        """Wall-clock seconds since the epoch."""
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        """Seconds that never go back."""
        with self._lock:
            return self._monotonic

    def sleep(self, seconds: float) -> None:
        """Advances by ``seconds`` and records the request."""
        self.slept_seconds.append(seconds)
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Moves both clocks forward.

        Raises:
            ValueError: for a negative step: monotonic time never goes back.
        """
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds}")
        with self._lock:
            self._now += seconds
            self._monotonic += seconds

    def jump_wall(self, seconds: float) -> None:
        """Moves the wall clock alone, in either direction."""
        with self._lock:
            self._now += seconds
