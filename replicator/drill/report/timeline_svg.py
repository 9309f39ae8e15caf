"""The timeline of a report as SVG: what applications did, when it broke, and every step. Pure.

Three lanes of traffic share one time axis with the steps below them, so that a reader sees which step
an interruption belongs to. Nothing is told by colour alone: lanes, marks and bars carry words.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH = 960
_LEFT, _RIGHT = 116, 18
_LANE, _LANE_GAP = 74, 14
_ROW = 22
_MARK_ROW = 17
_LANES = (
    ("writes", "written", "acknowledged writes per second"),
    ("copies", "copied", "copies that arrived per second"),
    ("reads", "read", "records given to the consumer group per second"),
)


def timeline_svg(report: Mapping[str, Any]) -> str:
    """The drawing, 960 units wide and as high as its steps need."""
    timeline, steps, marks = report["timeline"], report["steps"], report["marks"]
    bucket = float(timeline["bucketSeconds"])
    # Set-up is long and says nothing about the link: the axis begins where steady state does.
    first = next((s["at"] for s in steps if s["step"] == "steady state"), 0.0)
    last = max([len(timeline["writes"]) * bucket, *(s["at"] + s["seconds"] for s in steps)])
    shown = [s for s in steps if s["at"] + s["seconds"] > first and s["step"] != "set-up"]
    scale = _Scale(first, max(last, first + 1.0))
    top = 12 + _MARK_ROW * len(marks)
    lanes_end = top + len(_LANES) * (_LANE + _LANE_GAP)
    height = lanes_end + 26 + _ROW * len(shown) + 10
    parts = [
        (
            f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'aria-label="{escape(_words(report))}">'
        ),
        *_axis(scale, lanes_end, height),
        *_window(report.get("interrupted"), scale, top, lanes_end),
    ]
    for number, (name, label, title) in enumerate(_LANES):
        values = [count / bucket for count in timeline[name]]
        y = top + number * (_LANE + _LANE_GAP)
        parts += _lane(values, bucket, scale, y, name=name, label=label, title=title)
    parts += _marks(marks, scale, lanes_end)
    parts += _bars(shown, scale, lanes_end + 26)
    return "\n".join([*parts, "</svg>"])


class _Scale:
    """Seconds since the drill began to the drawing's x."""

    def __init__(self, first: float, last: float) -> None:
        self.first, self.last = first, last

    def __call__(self, at: float) -> float:
        share = (min(max(at, self.first), self.last) - self.first) / (self.last - self.first)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)


def _axis(scale: _Scale, lanes_end: float, height: float) -> list[str]:
    span = scale.last - scale.first
    tick = next(
        t
        for t in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 7200)
        if span / t <= 12 or t == 7200
    )
    parts = []
    at = 0.0
    while at <= span:
        x = scale(scale.first + at)
        parts.append(f'<line class="grid" x1="{x}" y1="8" x2="{x}" y2="{height - 8}"/>')
        parts.append(f'<text class="tick" x="{x}" y="{lanes_end + 12}">{at:g} s</text>')
        at += tick
    return parts


def _window(window: Mapping[str, float] | None, scale: _Scale, top: float, end: float) -> list[str]:
    if window is None:
        return []
    x, right = scale(window["from"]), scale(window["to"])
    width = max(2.0, right - x)
    seconds = window["to"] - window["from"]
    return [
        f'<rect class="gap" x="{x}" y="{top - 4}" width="{width:.1f}" height="{end - top:.1f}" rx="4"/>',
        f'<text class="gap-text" x="{x + width / 2:.1f}" y="{top + 12}">{seconds:.1f} s</text>',
    ]


def _lane(
    values: Sequence[float],
    bucket: float,
    scale: _Scale,
    y: float,
    *,
    name: str,
    label: str,
    title: str,
) -> list[str]:
    highest = max(values, default=0.0) or 1.0
    base = y + _LANE
    points = []
    for number, value in enumerate(values):
        at = number * bucket
        if at + bucket < scale.first:
            continue
        top = base - value / highest * (_LANE - 8)
        points.append((scale(at), top))
        points.append((scale(at + bucket), top))
    if not points:
        points = [(scale(scale.first), base)]
    line = " L".join(f"{x} {top:.1f}" for x, top in points)
    return [
        f'<g class="lane {name}"><title>{escape(title)}, at most {highest:.0f}</title>',
        f'<line class="base" x1="{_LEFT}" y1="{base}" x2="{WIDTH - _RIGHT}" y2="{base}"/>',
        f'<path class="area" d="M{points[0][0]} {base} L{line} L{points[-1][0]} {base} Z"/>',
        f'<path class="line" d="M{line}"/>',
        f'<text class="name" x="8" y="{base - 34}">{escape(label)}</text>',
        f'<text class="most" x="8" y="{base - 17}">{highest:.0f}/s at most</text></g>',
    ]


def _marks(marks: Sequence[Mapping[str, Any]], scale: _Scale, end: float) -> list[str]:
    parts = []
    for number, mark in enumerate(marks):
        x, y = scale(mark["at"]), 14 + number * _MARK_ROW
        left = x > WIDTH * 0.72  # near the right edge the words stand before the line
        anchor, at = ("end", x - 6) if left else ("start", x + 6)
        parts.append(f'<line class="mark" x1="{x}" y1="{y - 10}" x2="{x}" y2="{end}"/>')
        parts.append(f'<circle class="mark-dot" cx="{x}" cy="{y - 4}" r="3"/>')
        parts.append(
            f'<text class="mark-text" x="{at}" y="{y}" text-anchor="{anchor}">{escape(mark["label"])}</text>'
        )
    return parts


def _bars(steps: Sequence[Mapping[str, Any]], scale: _Scale, y: float) -> list[str]:
    parts = []
    for number, step in enumerate(steps):
        top = y + number * _ROW
        x, right = scale(step["at"]), scale(step["at"] + step["seconds"])
        width = max(3.0, right - x)
        state = step["part"] if step["ok"] else "failed"
        words = f"{step['step']}, {step['seconds']:.1f} s" + ("" if step["ok"] else ", failed")
        inside = right < WIDTH * 0.6
        anchor, at = ("start", right + 7) if inside else ("end", x - 7)
        parts.append(
            f'<g class="bar {escape(state)}"><title>{escape(step["result"] or words)}</title>'
            f'<rect x="{x}" y="{top + 4}" width="{width:.1f}" height="{_ROW - 9}" rx="3"/>'
            f'<text x="{at:.1f}" y="{top + _ROW - 8}" text-anchor="{anchor}">{escape(words)}</text></g>'
        )
    return parts


def _words(report: Mapping[str, Any]) -> str:
    """The drawing for those who do not see it."""
    window = report.get("interrupted")
    if window is None:
        return "Timeline of the drill: traffic did not come back."
    seconds = window["to"] - window["from"]
    return (
        f"Timeline of the drill: interrupted for {seconds:.1f} s; every step is in the table below."
    )
