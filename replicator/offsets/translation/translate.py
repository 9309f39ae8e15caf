"""Translating a position, looking into the target log where what is known does not decide. Pure.

Looking is left to a function, so the same rules run against brokers and against models. A guess
assumes that the copy is evenly spread between two known records; between two entries of the index it
nearly always is, and then the first look decides. The last look that is allowed reads the whole
stretch that is left, if that is not too long.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from replicator.offsets.index.runs import Known, Window
from replicator.offsets.translation import backward, forward
from replicator.offsets.translation.forward import UnmarkedSpan
from replicator.offsets.translation.translation import PartitionFacts, Translation

Direction = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Read:
    """A look into the target log.

    Reads from ``start`` on and stops before ``until``, at the log's end, at the first record of ours
    whose source offset is at least ``stop_at``, or after ``records`` records if one of ours was
    among them (after ``LONGEST`` in any case).
    """

    start: int
    until: int
    records: int
    stop_at: int


@dataclass(frozen=True, slots=True)
class Limits:
    """How far to go for an exact answer."""

    probes: int = 3
    scan_records: int = 100_000


Look = Callable[[Read], Window]
Align = Callable[[UnmarkedSpan], "Sequence[Window] | None"]

LONGEST = 100_000
"""Most records one look reads where other clusters' records crowd ours out."""

_DEFAULT = Limits()
_NOT_COUNTED = "copies made in whole batches stand there, and counting does not tell which they are"
_SIZES = ((250, 1_000), (500, 4_000))
_LAST_SIZE = (2_500, 20_000)
_BEHIND = 500


def translate(
    direction: Direction,
    position: int,
    *,
    known: Known,
    facts: PartitionFacts,
    look: Look,
    align: Align | None = None,
    limits: Limits = _DEFAULT,
    tight: bool = False,
    in_time: Callable[[], bool] = lambda: True,
) -> Translation:
    """Answers where a position of one side is on the other.

    Args:
        direction: ``forward`` from source to target.
        position: everything below was processed.
        known: what earlier looks and the index say; learns from each look.
        facts: bounds of both logs and the checkpoint, read before the first look.
        look: reads the target log.
        align: where copies do not say what they are, tells by counting. None where nothing can tell, no window
            where only a look can. A look that meets such a copy at once tells nothing.
        limits: how many looks, and how long the last may be.
        tight: whether ``low`` of the answer matters, for ``combine``.
        in_time: asked before each look.
    """
    rules = forward if direction == "forward" else backward
    in_vain: UnmarkedSpan | None = None
    for probes in range(limits.probes + 1):
        found: Translation | UnmarkedSpan = rules.locate(known, position, facts, tight=tight)
        if isinstance(found, Translation):
            return found.after(probes)
        windows: Sequence[Window] | None = ()
        if align is not None and probes < limits.probes:
            windows = align(found)
        if windows:
            for window in windows:
                known.add(window)
            continue
        why = _why_not(probes, limits, facts, in_time)
        if windows is None or found == in_vain:
            why = why or _NOT_COUNTED
        if why:
            settled: Translation = rules.settle(found, position, facts, why)
            return settled.after(probes)
        read = (
            _forward_read(found, position, facts, probes, limits)
            if direction == "forward"
            else _backward_read(found, position)
        )
        seen = look(read)
        known.add(seen)
        in_vain = found if seen.end <= seen.start else None
    raise AssertionError("the last round always answers")


def _why_not(
    probes: int, limits: Limits, facts: PartitionFacts, in_time: Callable[[], bool]
) -> str:
    if not facts.marked:
        return "copies carry no place on the source (provenance: path)"
    if probes >= limits.probes:
        return f"not decided within {limits.probes} looks into the target"
    return "" if in_time() else "not decided in time"


def _forward_read(
    gap: UnmarkedSpan, wanted: int, facts: PartitionFacts, probes: int, limits: Limits
) -> Read:
    last = probes == limits.probes - 1
    size = gap.end - gap.start
    if last and size <= limits.scan_records:
        return Read(gap.start, gap.end, size, wanted)
    before, records = _LAST_SIZE if last else _SIZES[min(probes, len(_SIZES) - 1)]
    if size <= records:
        return Read(gap.start, gap.end, records, wanted)
    start = forward.guess(gap, wanted, facts) - before
    return Read(min(max(start, gap.start), gap.end - before), gap.end, records, wanted)


def _backward_read(gap: UnmarkedSpan, position: int) -> Read:
    if gap.end <= position:  # what stands before the position
        return Read(max(gap.start, gap.end - _BEHIND), gap.end, _BEHIND, gap.end)
    return Read(gap.start, gap.end, LONGEST, 0)
