"""The answer to "where is this position on the other side", and the facts it rests on. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from replicator.formats.left_out import LeftOut

Grade = Literal["exact", "bounded", "unavailable"]


@dataclass(frozen=True, slots=True)
class Translation:
    """A position on the other cluster.

    A consumer that goes on at ``offset`` skips nothing. ``exact``: and reads nothing again.
    ``bounded``: and reads at most ``records_reread`` records again. ``unavailable``: no offset can
    be named without skipping records, for the ``reason``.

    ``low`` is the least position that reads the same records: between it and ``offset`` stands
    nothing that matters here (markers, other clusters' records).
    """

    grade: Grade
    offset: int | None
    records_reread: int = 0
    reason: str = ""
    low: int | None = None
    probes: int = 0

    def after(self, probes: int) -> "Translation":
        """The same answer, with what it cost."""
        return replace(self, probes=probes)


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What is known of both logs of one source partition and its copy before anything is read.

    Attributes:
        target_start: oldest offset that still exists on the target.
        target_end: next offset to be read there (read_committed).
        source_start: oldest offset that still exists on the source; None when it cannot be asked.
        source_end: next offset to be read there; None when it cannot be asked.
        copied_to: the checkpoint: every source record below is on the target or was dropped. None
            when nothing was ever copied. It must have been read before the target is probed.
        from_earliest: whether the copy began at the oldest record the source had.
        marked: whether copies carry their place on the source, so that probing can tell them.
        cyclic: whether records without a hop may be the target's own.
        adopted: whether another program copied up to where our copies begin (``from_earliest`` is
            False then): what stands on the target below our first copy is part of the copy.
        left_out: source records that were passed without a copy, for those who count copies.
    """

    target_start: int
    target_end: int
    source_start: int | None = None
    source_end: int | None = None
    copied_to: int | None = None
    from_earliest: bool = True
    marked: bool = True
    cyclic: bool = False
    adopted: bool = False
    left_out: LeftOut = LeftOut()  # noqa: RUF009  frozen, so one instance is safe


def exact(offset: int, *, low: int | None = None, reason: str = "") -> Translation:
    """Nothing skipped, nothing read again."""
    return Translation(
        "exact", offset, reason=reason, low=offset if low is None else min(low, offset)
    )


def bounded(offset: int, records_reread: int, reason: str) -> Translation:
    """Nothing skipped; exact when nothing is read again either."""
    if records_reread <= 0:
        return exact(offset, reason=reason)
    return Translation("bounded", offset, records_reread, reason, low=offset)


def unavailable(reason: str) -> Translation:
    """No position can be named."""
    return Translation("unavailable", None, reason=reason)


def combine(parts: Sequence[tuple[str, Translation]]) -> Translation:
    """One position for records of several origins that stand in one log, each translated alone.

    The clusters hold the same records in different orders, so the only position that skips nothing
    is the least of them; what the others would not have read again is then read again.

    Args:
        parts: the origin's name and where its first unread record stands.
    """
    probes = sum(part.probes for _, part in parts)
    for origin, part in parts:
        if part.offset is None:
            reason = part.reason if len(parts) == 1 else f"records of {origin}: {part.reason}"
            return unavailable(reason).after(probes)
    if len(parts) == 1:
        return parts[0][1]
    offset = min(part.offset for _, part in parts if part.offset is not None)
    again = 0
    lows: list[int] = []
    reasons: list[str] = []
    for origin, part in parts:
        low = part.offset if part.low is None else part.low
        if low is None:
            continue
        lows.append(low)
        again += part.records_reread
        if low > offset:
            again += low - offset
            reasons.append(f"records of {origin} stand in another order there")
        elif part.reason:
            reasons.append(part.reason)
    answer = bounded(offset, again, "; ".join(reasons))
    return replace(answer, low=min(offset, max(lows)), probes=probes)
