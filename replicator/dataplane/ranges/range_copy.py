"""Copying one range of one partition to its end, in this thread's time: what a Spark task does.

The range is copied by a lane with a bounded copy, which recovers by itself from passing faults. Here is
what waits for it, gives up when nothing moves for too long, and returns the outcome.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.dataplane.lane.lane import Lane, MayStart
from replicator.dataplane.progress.index_notes import OpenIndex
from replicator.dataplane.ranges.range_patience import Patience, RangePatience, Reason
from replicator.dataplane.session.bounded_copy import BoundedCopy, RangeTotals
from replicator.dataplane.transport.messages import LaneStopped, LogLine, LostRange
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import FencedError, ReplicatorError, UnreachableError

_LOOK_SECONDS = 0.2
_SILENT_SECONDS = 10.0
"""A lane that did not go round for so long waits for an answer."""
_STOP_SECONDS = 10.0
"""How long a lane that is given up may take to end; the next attempt fences it."""
_ASK_SECONDS = 10.0
"""How often the clusters are asked about a range that stands still and whose lane gives no reason."""


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
    patience: Patience = Patience(),  # noqa: B008  frozen, so one instance is safe
    why_still: Callable[[], Iterable[ReplicatorError]] = lambda: (),
    log: Callable[[LogLine], None] = lambda _: None,
) -> RangeOutcome:
    """Copies until the range is copied.

    Args:
        spec: a lane of one partition; its number is the lane that owns the partition.
        bounded_copy: the range.
        may_start: asked once the range's last owner was fenced.
        open_index: opens the offset index.
        clock: for times in what is stored.
        patience: how long it may stand still.
        why_still: asks the clusters why nothing moves where the lane does not say it: a client that waits for
            records of a deleted topic gets no error for minutes. Blocking.
        log: gets what the lane logs.

    Raises:
        FencedError: another attempt at the same partition took over.
        NotAuthorizedError, NotFoundError: our user lacks a right, or a topic was deleted.
        ReplicatorError: nothing moved for too long; the same range may be tried again.
    """
    notes = _Notes(log)
    lane = Lane(
        spec, post=notes.take, may_start=may_start, clock=clock, open_index=open_index,
        bounded_copy=bounded_copy,
    )  # fmt: skip
    lane.start()
    try:
        _watch(lane, clock, patience, why_still)
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


def _watch(
    lane: Lane,
    clock: Clock,
    patience: Patience,
    why_still: Callable[[], Iterable[ReplicatorError]],
) -> None:
    held = RangePatience(_name(lane.spec), patience, now=clock.monotonic())
    asked, ask_at, position = list[Reason](), clock.monotonic() + _ASK_SECONDS, -1
    while lane.is_alive():
        lane.join(_LOOK_SECONDS)
        stats = lane.stats
        now = clock.monotonic()
        reached = max((each.position for each in stats.partitions), default=-1)
        reasons = list(_reasons(lane))
        if reached != position or reasons:
            position, asked, ask_at = reached, [], now + _ASK_SECONDS
        elif now >= ask_at:
            asked = [Reason(each.code, each.message, each.remedy) for each in why_still()]
            now = clock.monotonic()
            ask_at = now + _ASK_SECONDS
        reasons += asked
        # A lane stays ``running`` while a cluster is silent, and reports nothing from inside a commit.
        works = stats.state == "running" and not reasons and now - lane.active_at < _SILENT_SECONDS
        otherwise = f"cluster {lane.spec.target.alias}: {stats.reason}"
        held.look(now, reached, reasons, works=works, otherwise=otherwise)


def _reasons(lane: Lane) -> Iterator[Reason]:
    """What is wrong at this moment with the partition itself, and with the connections."""
    spec = lane.spec
    for each in lane.stats.partitions:
        failure = each.failure
        if failure is not None:
            alias = (spec.source if failure.side == "source" else spec.target).alias
            yield Reason(failure.code, f"cluster {alias}: {failure.detail}", failure.remedy)
    for cluster, text in zip((spec.source, spec.target), lane.problems(), strict=True):
        if text:
            said, _, remedy = text.partition("\n")
            code, _, message = said.partition(" ")
            yield Reason(code, f"cluster {cluster.alias}: {message}", remedy)


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
