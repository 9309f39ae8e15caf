"""The report as one page that needs nothing but itself: to be looked at, mailed and printed. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from replicator.html_template import render_html
from replicator.identifiers import JsonObject
from replicator.spark.compare.matching import ANOMALIES
from replicator.spark.verify.charts import COLOURS, hours_chart
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
    "targetRetention": "is older than the target's retention, which may have deleted its copy",
    "others": "written on the target, or by another flow, where that is allowed",
}
_SHOWN = 100
_PREVIEW = 60


def page(result: JsonObject, records: Sequence[Any]) -> str:
    """The page.

    Args:
        result: the object of ``verify -o json``.
        records: differing records with their content, as ``details.write_records`` gives them.
    """
    total = cast("Mapping[str, Any]", result["total"])
    topics = cast("Sequence[Mapping[str, Any]]", result["topics"])
    words = [*ANOMALIES, *total["excused"], *(["others"] if total["others"] else [])]
    return render_html(
        "replicator.spark.verify", "page.html.j2",
        result=result,
        anomalies=ANOMALIES,
        colours=COLOURS,
        wrong=", ".join(f"{total[name]:,} {name}" for name in ANOMALIES if total[name]),
        explained=sum(total["excused"].values()),
        topics=list(_topics(topics, result["hours"])),
        rows=[row for record in records[:_SHOWN] for row in _rows(record)],
        shown=min(len(records), _SHOWN),
        words=[(name, EXPLAINED[name]) for name in words],
        excuses=lambda each: ", ".join(f"{n:,} {reason}" for reason, n in each["excused"].items()),
    )  # fmt: skip


def _topics(topics: Sequence[Mapping[str, Any]], hours: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Each topic's heading, way of matching, chart and partitions."""
    for name in dict.fromkeys(str(each["topic"]) for each in topics):
        partitions = [each for each in topics if each["topic"] == name]
        target = str(partitions[0]["target"])
        yield {
            "heading": name if target == name else f"{name} → {target}",
            "modes": " and ".join(dict.fromkeys(MODES[each["matched"]] for each in partitions)),
            "chart": hours_chart([each for each in hours if each["topic"] == name]),
            "partitions": partitions,
        }


def _rows(record: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401  a row of Spark
    """Two lines of the table: the record on the source and its copy."""
    both = (("source", record.source), ("copy", record.copy))
    values = [content.value for _, content in both if content is not None]
    begin = max(0, first_difference(values) - _PREVIEW // 3)
    for place, content in both:
        source = place == "source"
        yield {
            "record": f"{record.topic}/{record.partition}" if source else "",
            "kinds": record.kinds if source else "",
            "place": place,
            "offset": None if content is None else content.offset,
            "key": None if content is None else preview(content.key),
            "value": None if content is None else preview(content.value, begin),
        }


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


def preview(data: bytes | None, begin: int = 0) -> str | None:
    """Some bytes as printable text, with how many there are; None for null."""
    if data is None:
        return None
    text = bytes(data[begin : begin + _PREVIEW]).decode("utf-8", "backslashreplace")
    shown = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
    before = f"from byte {begin:,} … " if begin else ""
    more = f" … {len(data):,} bytes" if len(data) > begin + _PREVIEW else ""
    return before + shown + more
