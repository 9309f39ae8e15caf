"""How long to wait before something that failed is tried again. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

JITTER = 0.25
"""The part of a pause that chance may take off, so that many that failed together do not return together."""

_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double with every failure, from ``first_seconds`` up to ``most_seconds``."""

    first_seconds: float
    most_seconds: float

    def seconds(self, failures: int, random: Callable[[], float] | None = None) -> float:
        """The pause after so many failures in a row, 1 for the first.

        ``random`` gives numbers from 0 to 1, as ``random.random`` does; without it the pause is whole.
        """
        doublings = min(max(failures, 1) - 1, _MOST_DOUBLINGS)
        chance = 0.0 if random is None else random()
        return min(self.first_seconds * 2.0**doublings, self.most_seconds) * (1 - JITTER * chance)
