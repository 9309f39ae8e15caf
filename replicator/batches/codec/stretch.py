"""Where records stand in a log: stretches of offsets. Pure, and quick to import."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stretch:
    """``count`` records at offsets ``first ..`` without a gap."""

    first: int
    count: int


def clipped(stretches: Iterable[Stretch], start: int, end: int) -> list[Stretch]:
    """The parts of them between two offsets, half open."""
    found = []
    for one in stretches:
        first, last = max(one.first, start), min(one.first + one.count, end)
        if first < last:
            found.append(Stretch(first, last - first))
    return found
