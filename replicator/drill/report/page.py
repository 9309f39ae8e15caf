"""The report as one page that needs nothing else: no script, no font, no network. Pure.

Drawn from the stored report alone, so that anybody who has the report can draw the page again and compare.
"""

from collections.abc import Mapping
from typing import Any

from replicator.drill.report.timeline import timeline
from replicator.drill.report.verdict import LIMITED
from replicator.html_template import render_html

_KINDS = {
    "worker-crash": "A worker was killed while applications wrote and read.",
    "network-cut": "The workers were cut off from a cluster while applications went on.",
    "switchover": "The active cluster was changed as planned while applications wrote and read.",
    "failover": "The active cluster was cut off and the other one promoted.",
}
_COPIES_STOPPED = "longest time in which no copy arrived"
_USE_STOPPED = "longest time in which no write was acknowledged or no record read"
_RTO = {
    "worker-crash": f"{_COPIES_STOPPED}, of the partition that was worst",
    "network-cut": f"{_COPIES_STOPPED}, the cut included",
    "switchover": _USE_STOPPED,
    "failover": _USE_STOPPED,
}
_CHECKS = {
    "maxRtoSeconds": "Interruption, in seconds",
    "maxLostRecords": "Records lost",
    "maxReread": "Records read again",
    "skippedRecords": "Records skipped by a group",
    "statedLoss": "Records lost beyond what was stated before",
    "history": "History of every record",
    "played to its end": "The drill ran to its end",
    "interruption ended": "The interruption ended",
}
_COUNTS = frozenset({"writes", "acknowledged", "unknown", "seen"})
"""The checker's counts that a reader of the page can place."""

Json = Mapping[str, Any]


def draw_page(report: Json) -> str:
    """The whole page."""
    counts = report["history"]["counts"].items()
    return render_html(
        "replicator.drill.report", "page.html.j2",
        report=report,
        word=_word(report),
        kind_in_words=_KINDS[report["kind"]],
        interruption_in_words=_RTO[report["kind"]],
        check_names=_CHECKS,
        tiles=_tiles(report),
        timeline=timeline(report),
        counts=", ".join(f"{name} {value:,}" for name, value in counts if name in _COUNTS),
        limited=LIMITED,
        evidence=_evidence(report),
        seconds=_seconds,
        number=_number,
    )  # fmt: skip


def _word(report: Json) -> str:
    if report["verdict"] == "pass":
        return "passed"
    return "aborted" if report.get("aborted") else "failed"


def _tiles(report: Json) -> list[tuple[str, str, str]]:
    """Name, measured value and limit of the metrics on top."""
    limits = report["limits"]
    rto_limit = limits["maxRtoSeconds"]
    return [
        ("RTO", _seconds(report["rtoSeconds"]), _limit(rto_limit, " s")),
        ("records lost", f"{report['lostRecords']:,}", _limit(limits["maxLostRecords"])),
        ("RPO", _seconds(report["lostSeconds"]), _limit(None)),
        ("read again", f"{report['rereadRecords']:,}", _limit(limits["maxReread"])),
        ("skipped", f"{report['skippedRecords']:,}", _limit(0)),
    ]


def _evidence(report: Json) -> list[tuple[str, str]]:
    return [
        ("report", f"{report['id']}, number {report['number']}"),
        ("checksum", report["checksum"]),
        ("checksum of the report before", report["previous"] or "none: this is the first"),
        ("plan", report["planHash"]),
        ("drill", report["drillHash"]),
        ("version", report["version"]),
    ]


def _limit(limit: float | None, unit: str = "") -> str:
    return "no limit" if limit is None else f"limit {limit:g}{unit}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _seconds(value: float | None) -> str:
    return "never ended" if value is None else f"{value:.1f} s"
