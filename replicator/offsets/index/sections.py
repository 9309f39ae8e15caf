"""Where marks tell which copies are which records, and where copies have to be counted. Pure.

In a log that both engines wrote, copies made record by record name their place, and copies in whole batches do
not. A copy that names its place is a known pair, so it divides the log: between two known pairs with nothing
unnamed between them everything is told, and where whole batches stand between, they are counted apart from the
rest.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from replicator.batches.codec.stretch import Stretch
from replicator.offsets.index.runs import Pair, Window, joined


@dataclass(frozen=True, slots=True)
class UncountedSection:
    """Copies without a mark, in ``[start, end)`` of the target log, from the known copy below to the one above.

    Where there is one, the known copies are part of it; None where the section reaches the bound of what was
    read.
    """

    start: int
    end: int
    below: Pair | None
    above: Pair | None


def divided(
    pairs: Sequence[Pair], counted: Sequence[Stretch], *, start: int, end: int
) -> tuple[list[Window], list[UncountedSection]]:
    """What marks tell of ``[start, end)`` of a target log, and what is left to be counted.

    Args:
        pairs: all known copies in it, in order.
        counted: all copies in it that carry no mark, in order; known ones may be among them.
        start: the first target offset that was read.
        end: the one behind the last.
    """
    windows: list[Window] = []
    sections: list[UncountedSection] = []
    told: list[Pair] = []
    last: Pair | None = None
    began = at = start
    for pair in (*pairs, None):
        until = end if pair is None else pair.target
        if _any(counted, at, until):
            windows.append(Window(began, at, joined(told)))
            first = at if last is None else last.target
            sections.append(UncountedSection(first, until + (pair is not None), last, pair))
            began, told = until, []
        if pair is not None:
            told.append(pair)
            last, at = pair, pair.target + 1
    windows.append(Window(began, end, joined(told)))
    return [each for each in windows if each.end > each.start], sections


def first_step(
    below: Pair,
    above: Pair | None,
    marked: Sequence[Pair],
    counted: Sequence[Stretch],
    *,
    end: int,
) -> tuple[list[Window], UncountedSection | None] | None:
    """What marks tell of a gap between known copies; or the section to be counted, where they tell nothing more.

    None where the copies are not in the order of their records: other ones stand there now, or some were put
    back from quarantine.

    Args:
        below: the known copy at which the gap begins.
        above: the one at which it ends; None where it reaches the end of the log.
        marked: the copies from the one below on that name their place, in order; known ones may be among them.
        counted: those that name none, in order.
        end: the target offset behind the gap.
    """
    known = {each.target: each for each in (below, above) if each is not None}
    told = {each.target: each for each in marked if each.target < end}
    if any(known[at] != told[at] for at in known.keys() & told.keys()):
        return None
    pairs = [pair for _, pair in sorted({**told, **known}.items())]
    if any(after.source <= before.source for before, after in pairwise(pairs)):
        return None
    windows, sections = divided(pairs, counted, start=below.target, end=end)
    if sections and (sections[0].below, sections[0].above) == (below, above):
        return [], sections[0]
    return windows, None


def with_known(
    counted: Sequence[Stretch], section: UncountedSection, own: Sequence[Stretch]
) -> tuple[list[Stretch], bool]:
    """All copies of a section in order, the known ones too; and whether the known ones are among ``own``.

    ``own`` are the copies of registered producers, with a mark or without.
    """
    known = [each.target for each in (section.below, section.above) if each is not None]
    marked = [Stretch(at, 1) for at in known if not _any(counted, at, at + 1)]
    copies = sorted((*counted, *marked), key=lambda each: each.first)
    return copies, all(_any(own, at, at + 1) for at in known)


def _any(stretches: Sequence[Stretch], start: int, end: int) -> bool:
    """Whether a record stands between two offsets, half open."""
    at = bisect_left(stretches, start + 1, key=lambda each: each.first + each.count)
    return at < len(stretches) and stretches[at].first < end
