"""Does the drill pass? What was measured against its limits, and the judge's word. Pure."""

from dataclasses import dataclass
from typing import Literal

from replicator.drill.file.plan import Limits
from replicator.drill.report.measure import GroupFigures, Loss, Silence
from replicator.testing.checker.anomalies import MEANINGS, Anomaly, Report

Verdict = Literal["pass", "fail"]

LIMITED = frozenset({Anomaly.LOST, Anomaly.UNSEEN_TAIL, Anomaly.GROUP_REWIND})
"""What limits speak of: as much of it as a limit allows does not fail a drill."""


@dataclass(frozen=True, slots=True)
class DrillFigures:
    """Everything measured.

    Attributes:
        rto: the interruption that counts for this kind; None when it never ended.
        writes: of acknowledged writes.
        reads: of deliveries to the group.
        copies: of arrivals on the other side, of the partition that was worst; None where the kind
            does not look at it or it never ended.
        loss: what the surviving side lacks.
        groups: what consumer groups saw.
    """

    rto: Silence | None
    writes: Silence | None
    reads: Silence | None
    copies: Silence | None
    loss: Loss
    groups: tuple[GroupFigures, ...]

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
    """What a role change said before it began; ``exact`` when the old side could be asked."""

    records: int
    exact: bool


def checks(
    limits: Limits,
    figures: DrillFigures,
    report: Report,
    *,
    trouble: str,
    stated: StatedLoss | None = None,
) -> tuple[Check, ...]:
    """Every line of the verdict, in the order people read them.

    Args:
        limits: of the drill file.
        figures: what was measured.
        report: of the history checker.
        stated: what a role change said would be lost, before anything was changed.
        trouble: why the drill could not be played to its end; empty when it was.
    """
    rto = None if figures.rto is None else round(figures.rto.seconds, 3)
    within = rto is not None and (limits.max_rto_seconds is None or rto <= limits.max_rto_seconds)
    lines = [
        Check("played to its end", None, None, not trouble, trouble),
        Check("interruption ended", None, None, rto is not None),
        Check("maxRtoSeconds", rto, limits.max_rto_seconds, within),
        _at_most("maxLostRecords", figures.loss.records, limits.max_lost_records),
        _at_most("maxReread", figures.reread, limits.max_reread),
        Check("skippedRecords", figures.skipped, 0, figures.skipped == 0),
    ]
    if stated is not None:
        lines.append(_kept_word(stated, figures.loss.records))
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


def _kept_word(stated: StatedLoss, lost: int) -> Check:
    """More lost than was stated as exact is a broken promise; an estimate is only shown beside it."""
    detail = "" if stated.exact else "an estimate by the last contact with the lost side"
    return Check(
        "statedLoss", lost, stated.records, lost <= stated.records or not stated.exact, detail
    )


def _at_most(name: str, measured: int, limit: int | None) -> Check:
    return Check(name, measured, limit, limit is None or measured <= limit)
