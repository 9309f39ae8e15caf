"""The report as one page that needs nothing but itself: to be looked at, mailed and printed. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, cast

from replicator.identifiers import JsonObject
from replicator.spark.verify.charts import COLOURS, hours_chart
from replicator.spark.verify.matching import ANOMALIES
from replicator.spark.verify.result import MODES

EXPLAINED = {
    "lost": "is on the source, below the cut, and has no copy",
    "duplicated": "has more than one copy; the further ones are counted",
    "reordered": "stands behind a record that comes later on the source",
    "changed": "has a copy with another key, value, header or timestamp",
    "foreign": "stands on the target and is no copy of anything",
    "loop": "came from the target itself and does not go back",
    "filtered": "meets a filter of the link",
    "transformed": "was dropped by a transform of the link",
    "quarantined": "waits in the quarantine topic",
    "givenUp": "lies in a gap that was accepted and journalled",
    "others": "written on the target, or by another flow, where that is allowed",
}
_SHOWN = 100
_PREVIEW = 60

_STYLE = """
:root{--ink:#16202a;--soft:#5b6875;--line:#dde3e9;--paper:#fff;--back:#f4f6f8;--good:#1a7f4b;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e8edf2;--soft:#9aa8b5;--line:#2c3742;--paper:#182028;
--back:#10161c;--good:#4cc38a;--bad:#ff6b60}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:26px;margin:0 0 4px}h2{font-size:18px;margin:0 0 12px;overflow-wrap:anywhere}
p{margin:0 0 8px}.soft{color:var(--soft)}
.verdict{border-left:6px solid var(--good);padding:4px 0 4px 16px;margin:20px 0 24px}
.verdict.bad{border-color:var(--bad)}.verdict b{font-size:19px;color:var(--good)}
.verdict.bad b{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin-bottom:24px}
.tile,section{background:var(--paper);border:1px solid var(--line);border-radius:10px}
.tile{padding:12px 16px}.tile b{display:block;font-size:24px;line-height:1.25}
.tile.bad b{color:var(--bad)}section{padding:20px;margin-bottom:20px;break-inside:avoid}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px}
th{color:var(--soft);font-weight:600;text-align:right;border-bottom:1px solid var(--line)}
td{text-align:right;border-bottom:1px solid var(--line)}th,td{padding:5px 10px 5px 0;white-space:nowrap}
th.text,td.text{text-align:left}td.bad{color:var(--bad);font-weight:700}
td.bytes{font-family:ui-monospace,Menlo,monospace;font-size:12px;white-space:normal;
overflow-wrap:anywhere;min-width:150px}
.key{display:inline-flex;align-items:center;gap:6px;margin-right:16px;font-size:13px;color:var(--soft)}
.key i{width:10px;height:10px;border-radius:3px;display:inline-block}svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font-size:11px}svg line{stroke:var(--line)}
@media print{body{background:#fff;color:#000}main{padding:0;max-width:none}section,.tile{border-color:#ccc}}
"""


def page(result: JsonObject, records: Sequence[Any]) -> str:
    """The page.

    Args:
        result: the object of ``verify -o json``.
        records: differing records with their content, as ``details.write_records`` gives them.
    """
    total = cast("Mapping[str, Any]", result["total"])
    topics = cast("Sequence[Mapping[str, Any]]", result["topics"])
    hours = cast("Sequence[Mapping[str, Any]]", result["hours"])
    title = f"{result['flow']} compared"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">What was copied by {escape(str(result["cut"]))}, in {result["seconds"]} s.</p>',
        _verdict(total, topics),
        _tiles(total),
        _legend(),
        *(
            _topic(name, [each for each in topics if each["topic"] == name],
                   [each for each in hours if each["topic"] == name])
            for name in dict.fromkeys(str(each["topic"]) for each in topics)
        ),
        _records(records),
        _words(total),
    ]  # fmt: skip
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _verdict(total: Mapping[str, Any], topics: Sequence[Mapping[str, Any]]) -> str:
    wrong = [f"{total[name]:,} {name}" for name in ANOMALIES if total[name]]
    if not wrong:
        return (
            '<div class="verdict"><b>Both sides are the same.</b>'
            f"<p>{total['compared']:,} records of {len(topics)} partitions agree in key, value, "
            "headers and time, in the same order.</p></div>"
        )
    return (
        f'<div class="verdict bad"><b>The sides differ: {", ".join(wrong)}.</b>'
        "<p>The first differing records stand below; all of them are in "
        "differences.parquet beside this page.</p></div>"
    )


def _tiles(total: Mapping[str, Any]) -> str:
    explained = sum(total["excused"].values())
    figures = [("compared", total["compared"], False)]
    figures += [(name, total[name], bool(total[name])) for name in ANOMALIES]
    figures += [("explained", explained, False)] if explained else []
    tiles = "".join(
        f'<div class="tile{" bad" if bad else ""}"><b>{number:,}</b>{escape(name)}</div>'
        for name, number, bad in figures
    )
    return f'<div class="tiles">{tiles}</div>'


def _legend() -> str:
    keys = "".join(
        f'<span class="key"><i style="background:{COLOURS[name]}"></i>{name}</span>'
        for name in ("compared", *ANOMALIES)
    )
    return f"<p>{keys}</p>"


def _topic(
    name: str, partitions: Sequence[Mapping[str, Any]], hours: Sequence[Mapping[str, Any]]
) -> str:
    target = str(partitions[0]["target"])
    heading = name if target == name else f"{name} → {target}"
    modes = " and ".join(dict.fromkeys(MODES[each["matched"]] for each in partitions))
    rows = "".join(_partition(each) for each in partitions)
    columns = "".join(f"<th>{name}</th>" for name in ("compared", *ANOMALIES, "explained"))
    return (
        f"<section><h2>{escape(heading)}</h2><p class='soft'>Matched {escape(modes)}.</p>"
        f"{hours_chart(hours)}<div class='wide'><table><thead><tr><th class='text'>partition</th>"
        f"<th class='text'>source offsets</th>{columns}<th>hash</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _partition(each: Mapping[str, Any]) -> str:
    cells = "".join(
        f"<td{' class=bad' if each[name] else ''}>{each[name]:,}</td>" for name in ANOMALIES
    )
    why = ", ".join(f"{number:,} {reason}" for reason, number in each["excused"].items())
    same = each["sourceHash"] == each["targetHash"]
    return (
        f"<tr><td class='text'>{each['partition']}</td>"
        f"<td class='text'>{each['sourceFrom']:,} to {each['sourceTo']:,}</td>"
        f"<td>{each['compared']:,}</td>{cells}<td>{escape(why) or '0'}</td>"
        f"<td>{each['sourceHash'][:8]}{'' if same else ' ≠ ' + each['targetHash'][:8]}</td></tr>"
    )


def _records(records: Sequence[Any]) -> str:
    if not records:
        return ""
    rows = "".join(_record(each) for each in records[:_SHOWN])
    return (
        f"<section><h2>Differing records</h2><p class='soft'>The first "
        f"{min(len(records), _SHOWN):,}; more in records.parquet.</p><div class='wide'><table>"
        "<thead><tr><th class='text'>record</th><th class='text'>what</th><th class='text'>side</th>"
        "<th>offset</th><th class='text'>key</th><th class='text'>value</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _record(record: Any) -> str:  # noqa: ANN401  a row of Spark
    rows = []
    sides = (("source", record.source), ("copy", record.copy))
    both = [content.value for _, content in sides if content is not None]
    begin = max(0, first_difference(both) - _PREVIEW // 3)
    for side, content in sides:
        cells = (
            "<td>none</td><td class='bytes text'></td><td class='bytes text'></td>"
            if content is None
            else f"<td>{content.offset:,}</td><td class='bytes text'>{_bytes(content.key)}</td>"
            f"<td class='bytes text'>{_bytes(content.value, begin)}</td>"
        )
        place = f"{record.topic}/{record.partition}" if side == "source" else ""
        kinds = record.kinds if side == "source" else ""
        rows.append(
            f"<tr><td class='text'>{escape(place)}</td><td class='text'>{escape(kinds)}</td>"
            f"<td class='text'>{side}</td>{cells}</tr>"
        )
    return "".join(rows)


def first_difference(values: Sequence[bytes | None]) -> int:
    """Where two values begin to differ; 0 where there is nothing to compare."""
    known = [value for value in values if value is not None]
    if len(known) != 2:
        return 0
    one, other = known
    return next(
        (at for at, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its),
        0 if len(one) == len(other) else min(len(one), len(other)),
    )


def _bytes(data: bytes | None, begin: int = 0) -> str:
    if data is None:
        return "<i>null</i>"
    text = bytes(data[begin : begin + _PREVIEW]).decode("utf-8", "backslashreplace")
    shown = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
    before = f"from byte {begin:,} … " if begin else ""
    more = f" … {len(data):,} bytes" if len(data) > begin + _PREVIEW else ""
    return before + escape(shown) + more


def _words(total: Mapping[str, Any]) -> str:
    names = [*ANOMALIES, *total["excused"], *(["others"] if total["others"] else [])]
    words = "".join(
        f"<tr><td class='text'><b>{escape(name)}</b></td><td class='text'>"
        f"{escape(EXPLAINED[name])}</td></tr>"
        for name in names
    )
    return f"<section><h2>Words</h2><table><tbody>{words}</tbody></table></section>"
