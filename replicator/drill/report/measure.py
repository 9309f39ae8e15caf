"""What a drill measured, from the history it recorded. Pure.

An interruption is a **silence**: the longest time between two neighbouring events (acknowledged
writes, deliveries to a group, arrivals of copies) that ends after the fault. That is the last one
before to the first one after, however long records in flight still arrived.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from replicator.testing.checker.anomalies import Anomaly, Report
from replicator.testing.checker.check import check
from replicator.testing.checker.history import (
    FINAL,
    Committed,
    Completed,
    Delivered,
    Event,
    GroupStarted,
    Seen,
    Sent,
)
from replicator.testing.checker.routes import Naming

_GROUP_EVENTS = (Delivered, Committed, GroupStarted)


@dataclass(frozen=True, slots=True)
class Silence:
    """Wall-clock seconds of the event before and of the event after."""

    began_at: float
    ended_at: float

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.ended_at - self.began_at


@dataclass(frozen=True, slots=True)
class Loss:
    """Acknowledged records that are not on the surviving cluster in the end.

    Attributes:
        records: how many.
        seconds: from the oldest of them to the fault; 0 without any.
        partitions: how many of each ``topic/partition``.
    """

    records: int
    seconds: float
    partitions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """One consumer group over the whole drill.

    ``reread`` are records delivered again although it had committed past them, ``skipped`` those never
    delivered although it read past them.
    """

    group: str
    delivered: int
    reread: int
    skipped: int


def longest_silence(times: Iterable[float], *, after: float) -> Silence | None:
    """The longest time between neighbours that ends after ``after``; None if nothing came then.

    Without anything before, the time begins at ``after``.
    """
    ordered = sorted(times)
    first = bisect_right(ordered, after)
    if first == len(ordered):
        return None
    window = ordered[first - 1 :] if first else [after, *ordered]
    return max((Silence(a, b) for a, b in pairwise(window)), key=lambda each: each.seconds)


def longest_of(silences: Iterable[Silence | None]) -> Silence | None:
    """The longest of several; None where any of them never ended, or there are none."""
    known = list(silences)
    ended = [each for each in known if each is not None]
    return max(ended, key=lambda each: each.seconds) if ended and len(ended) == len(known) else None


def write_times(events: Iterable[Event]) -> list[float]:
    """When each write was acknowledged, whatever cluster it went to."""
    return [each.at for each in events if isinstance(each, Completed) and each.outcome == "ok"]


def read_times(events: Iterable[Event], group: str) -> list[float]:
    """When each record was delivered to a group."""
    return [each.at for each in events if isinstance(each, Delivered) and each.group == group]


def measure_loss(events: Sequence[Event], *, survivor: str, fault_at: float) -> Loss:
    """Records acknowledged elsewhere that the surviving cluster lacks."""
    there = {
        each.id
        for each in events
        if isinstance(each, Seen) and each.view == FINAL and each.cluster == survivor
    }
    sent = {each.id: each for each in events if isinstance(each, Sent)}
    lost = [
        each
        for each in events
        if isinstance(each, Completed)
        and each.outcome == "ok"
        and each.id not in there
        and each.id in sent
        and sent[each.id].cluster != survivor
    ]
    partitions: dict[str, int] = {}
    for each in lost:
        place = f"{sent[each.id].topic}/{each.partition}"
        partitions[place] = partitions.get(place, 0) + 1
    oldest = min((each.at for each in lost), default=fault_at)
    return Loss(len(lost), max(0.0, fault_at - oldest), dict(sorted(partitions.items())))


def measure_groups(
    events: Sequence[Event], groups: Iterable[str], *, naming: Naming
) -> tuple[GroupCounts, ...]:
    """Counts of each group, by the history checker."""
    metrics = []
    for group in groups:
        own = [each for each in events if not _of_another(each, group)]
        report = check(own, naming=naming)
        metrics.append(
            GroupCounts(
                group=group,
                delivered=sum(isinstance(each, Delivered) for each in own),
                reread=found(report, Anomaly.GROUP_REWIND),
                skipped=found(report, Anomaly.GROUP_SKIP),
            )
        )
    return tuple(metrics)


def found(report: Report, anomaly: Anomaly) -> int:
    """How many of an anomaly a report has."""
    return sum(each.count for each in report.findings if each.anomaly is anomaly)


def per_bucket(
    times: Iterable[float], *, start: float, end: float, bucket_seconds: float
) -> list[int]:
    """How many events fall into each bucket between two moments."""
    counts = [0] * max(1, ceil((end - start) / bucket_seconds))
    for at in times:
        if start <= at <= end:
            counts[min(len(counts) - 1, int((at - start) / bucket_seconds))] += 1
    return counts


def _of_another(event: Event, group: str) -> bool:
    return isinstance(event, _GROUP_EVENTS) and event.group != group
