"""Copying one range of one partition to its end, in this thread's time: what a Spark task does.

The range is copied by a lane with a bounded copy, which recovers by itself from passing faults. Here is
what waits for it, gives up when nothing moves for too long, and returns the outcome.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.dataplane.lane.lane import Lane, MayStart
from replicator.dataplane.progress.index_notes import OpenIndex
from replicator.dataplane.session.bounded_copy import BoundedCopy, RangeTotals
from replicator.dataplane.transport.messages import LaneStopped, LogLine, LostRange
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import FencedError, ReplicatorError, UnreachableError

PATIENCE_SECONDS = 180.0
"""How long a range may be recovering without moving before its task fails and says why."""

_LOOK_SECONDS = 0.2
_SILENT_SECONDS = 10.0
"""A lane that did not go round for so long waits for an answer."""
_STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """What became of a range.

    ``position`` is the next source offset; with a ``problem`` the partition stopped there by policy.
    ``ours`` is false when nothing was copied because the range is not to be copied (any more).
    ``gaps`` describe what was given up by policy.
    """

    position: int
    totals: RangeTotals | None
    problem: str = ""
    detail: str = ""
    ours: bool = True
    gaps: tuple[str, ...] = ()


def copy_range(
    spec: LaneSpec,
    bounded_copy: BoundedCopy,
    *,
    may_start: MayStart,
    open_index: OpenIndex,
    clock: Clock,
    patience_seconds: float = PATIENCE_SECONDS,
    log: Callable[[LogLine], None] = lambda _: None,
) -> RangeOutcome:
    """Copies until the range is copied.

    Args:
        spec: a lane of one partition; its number is the lane that owns the partition.
        bounded_copy: the range.
        may_start: asked once the range's last owner was fenced.
        open_index: opens the offset index.
        clock: for times in what is stored.
        patience_seconds: how long to recover without progress.
        log: gets what the lane logs.

    Raises:
        FencedError: another attempt at the same partition took over.
        ReplicatorError: nothing moved for too long; the same range may be tried again.
    """
    notes = _Notes(log)
    lane = Lane(
        spec, post=notes.take, may_start=may_start, clock=clock, open_index=open_index,
        bounded_copy=bounded_copy,
    )  # fmt: skip
    lane.start()
    try:
        _watch(lane, clock, patience_seconds)
    finally:
        lane.stop(0)
        lane.join(_STOP_SECONDS)
    stopped = notes.stopped
    if stopped is None:
        raise UnreachableError("a range did not end", subject=spec.pair)
    if stopped.fenced:
        raise FencedError("another attempt took the range over", subject=_name(spec))
    if bounded_copy.totals is None:
        return RangeOutcome(position=-1, totals=None, ours=False)
    (partition,) = lane.stats.partitions
    return RangeOutcome(
        position=partition.position,
        totals=bounded_copy.totals,
        problem=partition.problem,
        detail=partition.detail,
        gaps=tuple(gap.detail for gap in notes.gaps),
    )


def _watch(lane: Lane, clock: Clock, patience_seconds: float) -> None:
    moved_at = clock.monotonic()
    position = -1
    while lane.is_alive():
        lane.join(_LOOK_SECONDS)
        stats = lane.stats
        reached = max((each.position for each in stats.partitions), default=-1)
        now = clock.monotonic()
        # A lane stays ``running`` while a cluster is silent, and reports nothing from inside a commit.
        works = (
            stats.state == "running"
            and not any(lane.problems())
            and now - lane.active_at < _SILENT_SECONDS
        )
        if reached != position or works:
            position, moved_at = reached, now
        if now - moved_at > patience_seconds:
            raise _stuck(lane)


def _stuck(lane: Lane) -> ReplicatorError:
    """The error of the cluster that does not answer."""
    source, target = lane.problems()
    spec = lane.spec
    message, _, remedy = (source or target).partition("\n")
    message = message.partition(" ")[2] or lane.stats.reason
    blamed = spec.source if source else spec.target
    return UnreachableError(
        f"nothing could be copied for too long; cluster {blamed.alias}: {message}",
        subject=_name(spec),
        remedy=remedy or "Check that its brokers run, then run it again: it goes on where it was.",
    )


def _name(spec: LaneSpec) -> str:
    return ", ".join(f"{work.topic}/{work.partition}" for work in spec.work)


class _Notes:
    """The events of the lane; called in its thread."""

    def __init__(self, log: Callable[[LogLine], None]) -> None:
        self.stopped: LaneStopped | None = None
        self.gaps: list[LostRange] = []
        self._log = log
        self._lock = threading.Lock()

    def take(self, event: LaneStopped | LostRange | LogLine) -> None:
        """Keeps the end and the gaps, and logs log lines."""
        with self._lock:
            if isinstance(event, LaneStopped):
                self.stopped = event
            elif isinstance(event, LostRange):
                self.gaps.append(event)
            else:
                self._log(event)
