"""What is known of where one source partition's records stand in one target partition. Pure.

A **window** is complete knowledge of a stretch of the target log: every record of ours inside it is
in its runs, and what is not in them is foreign, a transaction marker, or gone. Windows come from
reading the target and from the stored index (stretches of one record). Touching windows are joined,
so two facts are neighbours exactly when they are in the same window.

Source offsets rise with target offsets, except where a lane repeated itself (at-least-once) or a
source topic was made anew. After such a step back everything from there on was copied again, so the
rule "the last record below, and what follows it" never passes over a record.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_RUNS = 8192
"""Runs kept per partition: about half a megabyte, and more than a day of probing needs."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One record on both sides."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Run:
    """Source offsets ``source ..`` stand at target offsets ``target ..``, ``count`` in a row."""

    source: int
    target: int
    count: int = 1

    @property
    def first(self) -> Pair:
        """Its first record."""
        return Pair(self.source, self.target)

    @property
    def last(self) -> Pair:
        """Its last record."""
        return Pair(self.source + self.count - 1, self.target + self.count - 1)

    def cut(self, start: int, end: int) -> "Run | None":
        """The part between two target offsets, half open; None when nothing is left."""
        begin = max(self.target, start)
        count = min(self.target + self.count, end) - begin
        return Run(self.source + begin - self.target, begin, count) if count > 0 else None


@dataclass(frozen=True, slots=True)
class Window:
    """Everything of ours in ``[start, end)`` of the target log.

    ``unmarked`` are offsets of records without any hop: copies whose header had to be left out, or
    somebody else's.
    """

    start: int
    end: int
    runs: tuple[Run, ...] = ()
    unmarked: tuple[int, ...] = ()

    def cut(self, start: int, end: int) -> "Window":
        """The part between two target offsets, half open."""
        parts = (run.cut(start, end) for run in self.runs)
        return Window(
            start=max(self.start, start),
            end=min(self.end, end),
            runs=tuple(part for part in parts if part is not None),
            unmarked=tuple(at for at in self.unmarked if start <= at < end),
        )


def joined(pairs: Iterable[Pair]) -> tuple[Run, ...]:
    """Single records, in the order of the target log, as runs."""
    runs: list[Run] = []
    for pair in pairs:
        append_run(runs, Run(pair.source, pair.target))
    return tuple(runs)


class Known:
    """Windows of one target partition, in order, never overlapping, touching ones joined."""

    __slots__ = ("_size", "_windows")

    def __init__(self, windows: Iterable[Window] = ()) -> None:
        self._windows: list[Window] = []
        self._size = 0
        for window in windows:
            self.add(window)

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> "Known":
        """Knows single records, given in the order of the target log."""
        known = cls()
        known._windows = _coalesced(
            Window(run.target, run.target + run.count, (run,)) for run in joined(pairs)
        )
        known._size = _size(known._windows)
        return known

    @property
    def windows(self) -> Sequence[Window]:
        """In the order of the target log."""
        return self._windows

    def add(self, window: Window) -> None:
        """Learns a window; where it overlaps, what was known first stays."""
        if window.end <= window.start:
            return
        begin = bisect_left(self._windows, window.start, key=lambda one: one.end)
        end = bisect_right(self._windows, window.end, key=lambda one: one.start)
        near = self._windows[begin:end]  # those that overlap or touch it
        pieces: list[Window] = []
        at = window.start
        for old in near:
            if old.start > at:
                pieces.append(window.cut(at, old.start))
            pieces.append(old)
            at = max(at, old.end)
        if at < window.end:
            pieces.append(window.cut(at, window.end))
        merged = _coalesced(pieces)
        self._size += _size(merged) - _size(near)
        self._windows[begin:end] = merged
        while self._size > MAX_RUNS and len(self._windows) > 1:
            self._size -= _size([self._windows.pop(0)])

    def pair(self, pair: Pair) -> None:
        """Learns one record."""
        self.add(Window(pair.target, pair.target + 1, (Run(pair.source, pair.target),)))

    def since(self, target_start: int) -> tuple["Known", Pair | None]:
        """What is known of the log as it is now, and the last record of ours known to be gone."""
        if not self._windows or self._windows[0].start >= target_start:
            return self, None
        place = self._place(target_start)
        before = self.last_before(target_start)
        left = Known()
        left._windows = self._windows[place:]
        if left._windows:
            left._windows[0] = left._windows[0].cut(target_start, left._windows[0].end)
        return left, before[0] if before is not None else None

    def window_at(self, target: int) -> Window | None:
        """The window that contains a target offset."""
        at = bisect_right(self._windows, target, key=lambda window: window.start) - 1
        if at < 0 or self._windows[at].end <= target:
            return None
        return self._windows[at]

    def last_below(self, source: int) -> tuple[Pair, Window] | None:
        """The last record, in target order, whose source offset is below."""
        for window in reversed(self._windows):
            for run in reversed(window.runs):
                if run.source < source:
                    count = min(run.count, source - run.source)
                    return Run(run.source, run.target, count).last, window
        return None

    def first_from(self, target: int) -> tuple[Pair, Window] | None:
        """The first record of ours at or after a target offset."""
        for window in self._windows[self._place(target) :]:
            for run in window.runs:
                part = run.cut(target, run.target + run.count)
                if part is not None:
                    return part.first, window
        return None

    def last_before(self, target: int) -> tuple[Pair, Window] | None:
        """The last record of ours before a target offset."""
        at = bisect_right(self._windows, target, key=lambda window: window.start)
        for window in reversed(self._windows[:at]):
            for run in reversed(window.runs):
                part = run.cut(0, target)
                if part is not None:
                    return part.last, window
        return None

    def _place(self, target: int) -> int:
        """Where the windows begin that end above a target offset."""
        return bisect_right(self._windows, target, key=lambda window: window.end)


def _size(windows: Iterable[Window]) -> int:
    return sum(1 + len(window.runs) + len(window.unmarked) // 8 for window in windows)


def _coalesced(windows: Iterable[Window]) -> list[Window]:
    result: list[Window] = []
    for window in windows:
        if result and result[-1].end == window.start:
            before = result.pop()
            runs = list(before.runs)
            for run in window.runs:
                append_run(runs, run)
            result.append(
                Window(
                    start=before.start,
                    end=window.end,
                    runs=tuple(runs),
                    unmarked=(*before.unmarked, *window.unmarked),
                )
            )
        else:
            result.append(window)
    return result


def append_run(runs: list[Run], run: Run) -> None:
    """Adds a run behind the others; one that goes on where the last one ends lengthens it."""
    if runs:
        last = runs[-1]
        if (last.source + last.count, last.target + last.count) == (run.source, run.target):
            runs[-1] = Run(last.source, last.target, last.count + run.count)
            return
    runs.append(run)
