"""Decides whether the drill passes: its metrics against the limits, and the checker's report. Pure."""

from dataclasses import dataclass
from typing import Literal

from replicator.drill.file.plan import Limits
from replicator.drill.report.measure import GroupCounts, Loss, Silence
from replicator.testing.checker.anomalies import MEANINGS, Anomaly, Report

Verdict = Literal["pass", "fail"]

LIMITED = frozenset({Anomaly.LOST, Anomaly.UNSEEN_TAIL, Anomaly.GROUP_REWIND})
"""Anomalies that limits allow for: within the limit they do not fail a drill."""


@dataclass(frozen=True, slots=True)
class DrillMetrics:
    """Everything measured.

    Attributes:
        rto: the interruption that counts for this kind; None when it never ended.
        writes: of acknowledged writes.
        reads: of deliveries to the group.
        copies: of arrivals on the other cluster, of the worst partition; None where the kind does not
            measure it or it never ended.
        loss: what the surviving cluster lacks.
        groups: what was delivered to consumer groups.
    """

    rto: Silence | None
    writes: Silence | None
    reads: Silence | None
    copies: Silence | None
    loss: Loss
    groups: tuple[GroupCounts, ...]

    @property
    def reread(self) -> int:
        """Over all groups."""
        return sum(group.reread for group in self.groups)

    @property
    def skipped(self) -> int:
        """Over all groups."""
        return sum(group.skipped for group in self.groups)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the verdict; a limit that was not given is None and holds."""

    name: str
    measured: float | int | None
    limit: float | int | None
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StatedLoss:
    """The loss that a role change stated before it began; ``exact`` when the old cluster could be read."""

    records: int
    exact: bool


def checks(
    limits: Limits,
    metrics: DrillMetrics,
    report: Report,
    *,
    trouble: str,
    stated: StatedLoss | None = None,
) -> tuple[Check, ...]:
    """Every line of the verdict, in the order people read them.

    Args:
        limits: of the drill file.
        metrics: what was measured.
        report: of the history checker.
        stated: the loss that a role change stated, before anything was changed.
        trouble: why the drill did not run to its end; empty when it did.
    """
    rto = None if metrics.rto is None else round(metrics.rto.seconds, 3)
    within = rto is not None and (limits.max_rto_seconds is None or rto <= limits.max_rto_seconds)
    lines = [
        Check("played to its end", None, None, not trouble, trouble),
        Check("interruption ended", None, None, rto is not None),
        Check("maxRtoSeconds", rto, limits.max_rto_seconds, within),
        _at_most("maxLostRecords", metrics.loss.records, limits.max_lost_records),
        _at_most("maxReread", metrics.reread, limits.max_reread),
        Check("skippedRecords", metrics.skipped, 0, metrics.skipped == 0),
    ]
    if stated is not None:
        lines.append(_as_stated(stated, metrics.loss.records))
    others = [
        each for each in report.findings if not each.tolerated and each.anomaly not in LIMITED
    ]
    detail = "; ".join(f"{each.anomaly} {each.count}: {MEANINGS[each.anomaly]}" for each in others)
    looked = report.counts.get("acknowledged", 0)
    lines.append(
        Check(
            "history",
            None,
            None,
            not others and looked > 0,
            detail or f"{looked} acknowledged writes judged",
        )
    )
    return tuple(lines)


def verdict(lines: tuple[Check, ...]) -> Verdict:
    """Pass only if every line holds."""
    return "pass" if all(line.ok for line in lines) else "fail"


def _as_stated(stated: StatedLoss, lost: int) -> Check:
    """A loss above one that was stated as exact fails the drill; an estimate is only shown."""
    detail = "" if stated.exact else "an estimate by the last contact with the lost cluster"
    return Check(
        "statedLoss", lost, stated.records, lost <= stated.records or not stated.exact, detail
    )


def _at_most(name: str, measured: int, limit: int | None) -> Check:
    return Check(name, measured, limit, limit is None or measured <= limit)
