"""How long the parts of a run may take: each has its share, and what one leaves over the next ones have. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """One part's time, in seconds of the given clock."""

    ends_at: float
    now: Callable[[], float]

    @property
    def left(self) -> float:
        """Seconds until it is over; never negative."""
        return max(0.0, self.ends_at - self.now())

    def fits(self, seconds: float) -> bool:
        """Whether something of this length ends in time."""
        return seconds <= self.left


class Budget:
    """The time of a whole run, given out part by part in a fixed order."""

    def __init__(
        self, *, seconds: float, weights: Mapping[str, float], now: Callable[[], float]
    ) -> None:
        """``weights`` in the order in which the parts run."""
        self._ends_at = now() + seconds
        self._weights = dict(weights)
        self._now = now

    def share(self, part: str) -> Share:
        """The time of the next part: its weight among those that have not begun, of what is left."""
        of_all = sum(self._weights.values())
        weight = self._weights.pop(part)
        now = self._now()
        return Share(now + max(0.0, self._ends_at - now) * weight / of_all, self._now)


def most_seconds(*, left: float, runs: int, overhead: float, least: float, longest: float) -> float:
    """How long each of the ``runs`` that are still to come may measure.

    ``overhead`` is what a run takes besides. Never under ``least``: less says nothing.
    """
    return min(longest, max(least, left / max(1, runs) - overhead))
