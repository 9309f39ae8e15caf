"""The chart of the report: what was compared hour by hour, and what was wrong. Pure.

``hours.svg.j2`` draws it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

COLOURS = {
    "compared": "#3b82c4",
    "lost": "#d1353f",
    "duplicated": "#e58a1f",
    "reordered": "#8a63d2",
    "changed": "#c23b9d",
    "foreign": "#7a6a55",
}
_WIDTH, _HEIGHT = 1000, 150
_TOP, _LEFT = 14, 64
_FOOT = _TOP + _HEIGHT
_MOST_BARS = 168
_LEAST_BAR = 3
"""Pixels: one wrong record among millions must still be seen."""


def hours_chart(hours: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One bar per hour, or per several hours where there are too many; wrong ones on top."""
    sums = _sums(hours)
    most = max((sum(counts.values()) for _, counts in sums), default=0) or 1
    room = (_WIDTH - _LEFT) / max(1, len(sums))
    wide = min(46.0, room * 0.8)
    every = max(1, len(sums) // 8)
    bars = []
    for number, (hour, counts) in enumerate(sums):
        named = ", ".join(f"{counts[name]:,} {name}" for name in COLOURS if counts[name])
        label = hour[5:16].replace("T", " ")
        bars.append(
            {
                "x": round(_LEFT + number * room + (room - wide) / 2, 1),
                "width": round(wide, 1),
                "middle": round(_LEFT + number * room + room / 2, 1),
                "title": f"{hour[:16].replace('T', ' ')}: {named}",
                "label": label if number % every == 0 else None,
                "parts": _parts(counts, most),
            }
        )
    return {
        "width": _WIDTH, "left": _LEFT, "top": _TOP, "foot": _FOOT, "most": most, "bars": bars,
    }  # fmt: skip


def _sums(hours: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, int]]]:
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


def _parts(counts: Mapping[str, int], most: int) -> list[dict[str, Any]]:
    """What one bar is made of, from its foot upward."""
    parts = []
    top = float(_FOOT)
    for name, colour in COLOURS.items():
        if counts[name]:
            tall = max(counts[name] / most * _HEIGHT, _LEAST_BAR)
            top = max(top - tall, 0.0)
            parts.append({"y": round(top, 1), "height": round(tall, 1), "colour": colour})
    return parts
