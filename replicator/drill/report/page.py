"""The report as one page that needs nothing else: no script, no font, no network. Pure.

Drawn from the stored report alone, so that whoever has the report can draw the page again and compare.
Everything is escaped: names of links and topics are input.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from replicator.drill.report.timeline_svg import timeline_svg
from replicator.drill.report.verdict import LIMITED

_KINDS = {
    "worker-crash": "A worker was killed while applications wrote and read.",
    "network-cut": "The workers were cut off from a cluster while applications went on.",
    "switchover": "The active side was moved as planned while applications wrote and read.",
    "failover": "The active side was cut off and the other side promoted.",
}
_RTO = {
    "worker-crash": "longest time in which no copy arrived, of the partition that was worst",
    "network-cut": "longest time in which no copy arrived, the cut included",
    "switchover": "longest time in which no write was acknowledged or no record read",
    "failover": "longest time in which no write was acknowledged or no record read",
}
_CHECKS = {
    "maxRtoSeconds": "Interruption, in seconds",
    "maxLostRecords": "Records lost",
    "maxReread": "Records read again",
    "skippedRecords": "Records skipped by a group",
    "statedLoss": "Records lost, beside what was stated before",
    "history": "History of every record",
    "played to its end": "The drill was played to its end",
    "interruption ended": "The interruption ended",
}

_COUNTS = frozenset({"writes", "acknowledged", "unknown", "seen"})
"""What of the judge's counts a reader of the page can place."""

Json = Mapping[str, Any]


def draw_page(report: Json) -> str:
    """The whole page."""
    passed = report["verdict"] == "pass"
    title = f"{report['name']}: {_word(report)}"
    style = (
        resources.files("replicator.drill.report").joinpath("page.css").read_text(encoding="utf-8")
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title><style>{style}</style></head>",
            f'<body class="{"passed" if passed else "failed"}"><main>',
            *_head(report, passed=passed),
            *_tiles(report),
            '<section><h2>What happened</h2><div class="wide">',
            timeline_svg(report),
            "</div>",
            f'<p class="quiet">The shaded time is the interruption: {escape(_RTO[report["kind"]])}.</p></section>',
            *_verdict(report),
            *_steps(report),
            *_transition(report.get("transition")),
            *_history(report["history"], report["groups"]),
            *_evidence(report),
            "</main></body></html>",
            "",
        ]
    )


def _head(report: Json, *, passed: bool) -> list[str]:
    where = "on local clusters of its own" if report["mode"] == "sandbox" else "on the real link"
    return [
        "<header>",
        f'<p class="stamp">{"✓" if passed else "✗"} {_word(report)}</p>',
        f"<h1>{escape(report['name'])}</h1>",
        f'<p class="lead">{escape(_KINDS[report["kind"]])}</p>',
        (
            f'<p class="quiet">{escape(report["kind"])} drill of link '
            f"<b>{escape(report['link'])}</b> ({escape(report['flow'])}), {where}, "
            f"{escape(report['at'])}, by {escape(report['by'])}</p>"
        ),
        "</header>",
    ]


def _word(report: Json) -> str:
    if report["verdict"] == "pass":
        return "passed"
    return "aborted" if report.get("aborted") else "failed"


def _tiles(report: Json) -> list[str]:
    limits = report["limits"]
    tiles = [
        ("RTO", _seconds(report["rtoSeconds"]), limits["maxRtoSeconds"], " s"),
        ("records lost", _whole(report["lostRecords"]), limits["maxLostRecords"], ""),
        ("RPO", _seconds(report["lostSeconds"]), None, ""),
        ("read again", _whole(report["rereadRecords"]), limits["maxReread"], ""),
        ("skipped", _whole(report["skippedRecords"]), 0, ""),
    ]
    return [
        '<dl class="tiles">',
        *(
            f"<div><dt>{name}</dt><dd>{value}</dd>"
            f'<dd class="quiet">{"no limit" if limit is None else f"limit {limit:g}{unit}"}</dd></div>'
            for name, value, limit, unit in tiles
        ),
        "</dl>",
    ]


def _verdict(report: Json) -> list[str]:
    rows = [
        (
            _mark(each["ok"]),
            escape(_CHECKS.get(each["check"], each["check"])),
            _cell(each["measured"]),
            _cell(each["limit"]),
            escape(each["detail"]),
        )
        for each in report["checks"]
    ]
    heads = ("", "check", "measured", "limit", "")
    return ["<section><h2>Verdict</h2>", *_table(heads, rows), "</section>"]


def _steps(report: Json) -> list[str]:
    rows = [
        (
            _mark(each["ok"]),
            escape(each["step"]),
            f"{each['at']:.1f}",
            f"{each['seconds']:.1f}",
            escape(each["result"]),
        )
        for each in report["steps"]
    ]
    heads = ("", "step", "began, s", "took, s", "result")
    return ["<section><h2>Every step</h2>", *_table(heads, rows), "</section>"]


def _transition(transition: Json | None) -> list[str]:
    if transition is None:
        return []
    rows = [
        (_mark(each["ok"]), escape(each["check"]), escape(each["detail"]))
        for each in transition["checks"]
    ]
    loss = transition["loss"]
    return [
        "<section><h2>The role change itself</h2>",
        (
            f"<p>{escape(transition['kind'])} from {escape(transition['from'])} to "
            f"{escape(transition['to'])}: {escape(transition['outcome'])}, "
            f"epoch {transition['epoch']}, fencing {escape(transition['fencing'])}. "
            "Loss as it was stated before anything was changed: "
            f"{_whole(loss['records'])} records, {_seconds(loss['seconds'])}.</p>"
        ),
        *_table(("", "check", "what was found"), rows),
        "</section>",
    ]


def _history(history: Json, groups: Sequence[Json]) -> list[str]:
    counts = ", ".join(
        f"{name} {value:,}" for name, value in history["counts"].items() if name in _COUNTS
    )
    rows = [
        (
            '<span class="quiet">limit</span>'
            if each["anomaly"] in LIMITED
            else _mark(each["tolerated"]),
            escape(each["anomaly"]),
            str(each["count"]),
            escape("; ".join(each["examples"][:3])),
        )
        for each in history["findings"]
    ]
    read = [
        (
            _mark(each["skippedRecords"] == 0),
            escape(each["group"]),
            _whole(each["delivered"]),
            _whole(each["rereadRecords"]),
            _whole(each["skippedRecords"]),
        )
        for each in groups
    ]
    heads = ("", "consumer group", "given", "read again", "skipped")
    found = (
        _table(("", "found", "records", "examples"), rows)
        if rows
        else ["<p>Nothing was found.</p>"]
    )
    return [
        "<section><h2>History of every record</h2>",
        f'<p class="quiet">Every record that was written was looked for on both sides: {escape(counts)}.</p>',
        *found,
        *_table(heads, read),
        "</section>",
    ]


def _evidence(report: Json) -> list[str]:
    facts = [
        ("report", f"{report['id']}, number {report['number']}"),
        ("checksum", report["checksum"]),
        ("checksum of the report before", report["previous"] or "none: this is the first"),
        ("plan", report["planHash"]),
        ("drill", report["drillHash"]),
        ("version", report["version"]),
    ]
    return [
        '<section><h2>Evidence</h2><dl class="facts">',
        *(
            f"<div><dt>{name}</dt><dd><code>{escape(str(value))}</code></dd></div>"
            for name, value in facts
        ),
        "</dl>",
        (
            '<p class="quiet"><code>replicator drill verify</code> checks the whole chain of '
            "reports, and that each page shows what its report says.</p></section>"
        ),
    ]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        '<div class="wide"><table><thead><tr>',
        *(f'<th scope="col">{head}</th>' for head in heads),
        "</tr></thead><tbody>",
        *("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows),
        "</tbody></table></div>",
    ]


def _mark(ok: bool) -> str:
    return '<span class="ok">✓</span>' if ok else '<span class="bad">✗</span>'


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _seconds(value: float | None) -> str:
    return "never ended" if value is None else f"{value:.1f} s"


def _whole(value: int) -> str:
    return f"{value:,}"
