"""The timeline of a report: where each part of the drawing lies. Pure.

Three lanes of traffic share one time axis with the steps below them, so that a reader sees which step
an interruption belongs to. ``timeline.svg.j2`` draws it; no information is in the colour alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 960
_LEFT, _RIGHT = 116, 18
_LANE, _LANE_GAP = 74, 14
_ROW = 22
_MARK_ROW = 17
_TICKS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 7200)
_LANES = (
    ("writes", "written", "acknowledged writes per second"),
    ("copies", "copied", "copies that arrived per second"),
    ("reads", "read", "records given to the consumer group per second"),
)

Json = Mapping[str, Any]
Shapes = list[dict[str, Any]]


def timeline(report: Json) -> dict[str, Any]:
    """Places and texts of the drawing, 960 units wide and as high as its steps need."""
    traffic, steps, marks = report["timeline"], report["steps"], report["marks"]
    bucket = float(traffic["bucketSeconds"])
    # Set-up is long and says nothing about the link: the axis begins where steady state does.
    first = next((s["at"] for s in steps if s["step"] == "steady state"), 0.0)
    last = max([len(traffic["writes"]) * bucket, *(s["at"] + s["seconds"] for s in steps)])
    shown = [s for s in steps if s["at"] + s["seconds"] > first and s["step"] != "set-up"]
    scale = _Scale(first, max(last, first + 1.0))
    top = 12 + _MARK_ROW * len(marks)
    lanes_end = top + len(_LANES) * (_LANE + _LANE_GAP)
    lanes = [
        _lane([count / bucket for count in traffic[name]], bucket, scale,
              top + number * (_LANE + _LANE_GAP))
        | {"name": name, "label": label, "title": title}
        for number, (name, label, title) in enumerate(_LANES)
    ]  # fmt: skip
    return {
        "width": WIDTH,
        "height": lanes_end + 26 + _ROW * len(shown) + 10,
        "left": _LEFT,
        "right": WIDTH - _RIGHT,
        "lanes_end": lanes_end,
        "words": _words(report),
        "ticks": _ticks(scale),
        "window": _window(report.get("interrupted"), scale, top, lanes_end),
        "lanes": lanes,
        "marks": _marks(marks, scale),
        "bars": _bars(shown, scale, lanes_end + 26),
    }


class _Scale:
    """Seconds since the drill began to the drawing's x."""

    def __init__(self, first: float, last: float) -> None:
        self.first, self.last = first, last

    def __call__(self, at: float) -> float:
        share = (min(max(at, self.first), self.last) - self.first) / (self.last - self.first)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)


def _ticks(scale: _Scale) -> Shapes:
    span = scale.last - scale.first
    tick = next((each for each in _TICKS if span / each <= 12), _TICKS[-1])
    ats = [number * tick for number in range(int(span // tick) + 1)]
    return [{"x": scale(scale.first + at), "text": f"{at:g} s"} for at in ats]


def _window(window: Json | None, scale: _Scale, top: float, end: float) -> dict[str, Any] | None:
    if window is None:
        return None
    x, right = scale(window["from"]), scale(window["to"])
    width = max(2.0, right - x)
    seconds = window["to"] - window["from"]
    return {
        "x": x, "y": top - 4, "width": round(width, 1), "height": round(end - top, 1),
        "middle": round(x + width / 2, 1), "text": f"{seconds:.1f} s",
    }  # fmt: skip


def _lane(values: Sequence[float], bucket: float, scale: _Scale, y: float) -> dict[str, Any]:
    highest = max(values, default=0.0) or 1.0
    base = y + _LANE
    points = []
    for number, value in enumerate(values):
        at = number * bucket
        if at + bucket < scale.first:
            continue
        top = base - value / highest * (_LANE - 8)
        points += [(scale(at), top), (scale(at + bucket), top)]
    points = points or [(scale(scale.first), base)]
    return {
        "base": base,
        "line": " L".join(f"{x} {top:.1f}" for x, top in points),
        "from": points[0][0],
        "to": points[-1][0],
        "most": f"{highest:.0f}",
    }


def _marks(marks: Sequence[Json], scale: _Scale) -> Shapes:
    shapes = []
    for number, mark in enumerate(marks):
        x = scale(mark["at"])
        left = x > WIDTH * 0.72  # near the right edge the words stand before the line
        shapes.append(
            {
                "x": x,
                "y": 14 + number * _MARK_ROW,
                "text": mark["label"],
                "anchor": "end" if left else "start",
                "text_x": x - 6 if left else x + 6,
            }
        )
    return shapes


def _bars(steps: Sequence[Json], scale: _Scale, y: float) -> Shapes:
    shapes = []
    for number, step in enumerate(steps):
        top = y + number * _ROW
        x, right = scale(step["at"]), scale(step["at"] + step["seconds"])
        words = f"{step['step']}, {step['seconds']:.1f} s" + ("" if step["ok"] else ", failed")
        inside = right < WIDTH * 0.6
        shapes.append(
            {
                "state": step["part"] if step["ok"] else "failed",
                "title": step["result"] or words,
                "words": words,
                "x": x,
                "y": top + 4,
                "width": round(max(3.0, right - x), 1),
                "height": _ROW - 9,
                "text_x": round(right + 7 if inside else x - 7, 1),
                "text_y": top + _ROW - 8,
                "anchor": "start" if inside else "end",
            }
        )
    return shapes


def _words(report: Json) -> str:
    """The drawing for those who do not see it."""
    window = report.get("interrupted")
    if window is None:
        return "Timeline of the drill: traffic did not come back."
    seconds = window["to"] - window["from"]
    return (
        f"Timeline of the drill: interrupted for {seconds:.1f} s; every step is in the table below."
    )
