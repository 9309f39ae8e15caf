"""Charts of the report as SVG text: what was compared hour by hour, and what was wrong. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from replicator.spark.verify.matching import ANOMALIES

COLOURS = {
    "compared": "#3b82c4",
    "lost": "#d1353f",
    "duplicated": "#e58a1f",
    "reordered": "#8a63d2",
    "changed": "#c23b9d",
    "foreign": "#7a6a55",
}
_WIDTH, _HEIGHT = 1000, 150
_TOP, _BOTTOM, _LEFT = 14, 22, 64
_MOST_BARS = 168
_LEAST_BAR = 3
"""Pixels: one wrong record among millions must still be seen."""


def hours_chart(hours: Sequence[Mapping[str, Any]]) -> str:
    """One bar per hour, or per several hours where there are too many; wrong ones on top."""
    bars = _bars(hours)
    if not bars:
        return "<p class='soft'>Nothing to compare.</p>"
    most = max(sum(counts.values()) for _, counts in bars) or 1
    room = (_WIDTH - _LEFT) / len(bars)
    wide = min(46.0, room * 0.8)
    drawn = [
        _bar(_LEFT + number * room + (room - wide) / 2, wide, label, counts, most)
        for number, (label, counts) in enumerate(bars)
    ]
    foot = _TOP + _HEIGHT
    every = max(1, len(bars) // 8)
    labels = [
        f'<text x="{_LEFT + number * room + room / 2:.1f}" y="{foot + 15}" '
        f'text-anchor="middle">{escape(label[5:16].replace("T", " "))}</text>'
        for number, (label, _) in enumerate(bars)
        if number % every == 0
    ]
    axis = (
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{foot}" y2="{foot}"/>'
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{_TOP}" y2="{_TOP}" stroke-dasharray="2 4"/>'
        f'<text x="{_LEFT - 8}" y="{_TOP + 4}" text-anchor="end">{most:,}</text>'
        f'<text x="{_LEFT - 8}" y="{foot + 4}" text-anchor="end">0</text>'
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {foot + _BOTTOM}" role="img" '
        f'aria-label="Records by hour">{axis}{"".join(drawn)}{"".join(labels)}</svg>'
    )


def _bars(hours: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, int]]]:
    """Sums over partitions, by hour; neighbours together where there are more than can be drawn."""
    sums: dict[str, dict[str, int]] = {}
    for each in hours:
        counts = sums.setdefault(str(each["hour"]), dict.fromkeys(COLOURS, 0))
        for name in COLOURS:
            counts[name] += int(each[name])
    # A record that is there and wrong counts as compared too; drawn once.
    for counts in sums.values():
        there = counts["reordered"] + counts["changed"]
        counts["compared"] = max(0, counts["compared"] - there)
    ordered = sorted(sums.items())
    step = -(-len(ordered) // _MOST_BARS) if ordered else 1
    return [
        (
            ordered[at][0],
            {name: sum(counts[name] for _, counts in ordered[at : at + step]) for name in COLOURS},
        )
        for at in range(0, len(ordered), step)
    ]


def _bar(x: float, wide: float, label: str, counts: Mapping[str, int], most: int) -> str:
    told = ", ".join(f"{counts[name]:,} {name}" for name in COLOURS if counts[name])
    parts: list[str] = []
    top = float(_TOP + _HEIGHT)
    for name in ("compared", *ANOMALIES):
        if not counts[name]:
            continue
        tall = max(counts[name] / most * _HEIGHT, _LEAST_BAR)
        top = max(top - tall, 0.0)
        parts.append(
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}" '
            f'fill="{COLOURS[name]}"/>'
        )
    return f"<g><title>{escape(label[:16].replace('T', ' '))}: {escape(told)}</title>{''.join(parts)}</g>"
