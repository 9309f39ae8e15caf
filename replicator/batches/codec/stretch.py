"""Where records stand in a log: stretches of offsets. Pure, and quick to import."""

from bisect import bisect_left
from collections.abc import Collection, Iterable
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


def cut_out(stretches: Iterable[Stretch], offsets: Collection[int]) -> list[Stretch]:
    """What is left of them without single offsets."""
    gone = sorted(offsets)
    if not gone:
        return list(stretches)
    found = []
    for one in stretches:
        first, end = one.first, one.first + one.count
        for offset in gone[bisect_left(gone, first) : bisect_left(gone, end)]:
            if offset > first:
                found.append(Stretch(first, offset - first))
            first = offset + 1
        if first < end:
            found.append(Stretch(first, end - first))
    return found
