"""Bar charts as SVG, readable on light and dark pages. Pure text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LEFT, _RIGHT = 890, 230, 140
_BAR, _GAP, _LETTER = 15, 14, 6.6
_COLOURS = {
    "batches": "#e8710a",
    "batches, at-least-once": "#f2a65a",
    "records": "#2f7ed8",
    "records, at-least-once": "#85b4ea",
    "bare loop": "#2a9d6f",
    "MM2 tuned": "#7d8590",
    "MM2 default": "#a3968a",
    "MM2 exactly-once": "#9b7fb5",
    "MM2 tuned, exactly-once": "#8e6aa0",
    "source itself": "#5aa3a3",
    "plain connection": "#5aa3a3",
}
_OTHER_COLOUR = "#c45a8a"
_STYLE = (
    "text{font:12px -apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#24292f}"
    ".t{font-size:15px;font-weight:600}.n{fill:#57606a}.g{stroke:#8c959f;stroke-opacity:.35}"
    "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.n{fill:#9da7b3}}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure of one copier; ``text`` is what stands behind the bar."""

    series: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """Bars that belong together."""

    label: str
    bars: tuple[Bar, ...]


def short_name(name: str) -> str:
    """A contender's name as charts show it."""
    words = name.replace(", exactly-once, 1 lane", "").replace(", 1 lane", "")
    words = words.removeprefix("replicator ").replace("MirrorMaker 2", "MM2")
    known = {
        "MM2 default, exactly-once": "MM2 exactly-once",
        "bare confluent-kafka loop, transactions": "bare loop",
        "(source read directly)": "source itself",
        "one plain connection": "plain connection",
    }
    return known.get(words, words)


def bar_chart(
    title: str, groups: Sequence[Group], *, note: str = "", logarithmic: bool = False
) -> str:
    """A whole SVG document; bars lie, group under group. Values are not negative."""
    values = [bar.value for group in groups for bar in group.bars if bar.value > 0]
    scale = _Scale(values or [1.0], logarithmic=logarithmic)
    parts: list[str] = []
    legend, top = _legend(groups)
    y = top
    for group in groups:
        height = _BAR * len(group.bars)
        middle = y + height / 2 + 4
        parts.append(
            f'<text x="{_LEFT - 12}" y="{middle:.0f}" text-anchor="end">{escape(group.label)}</text>'
        )
        for bar in group.bars:
            length = scale.length(bar.value)
            colour = _COLOURS.get(bar.series, _OTHER_COLOUR)
            parts.append(
                f'<rect x="{_LEFT}" y="{y:.0f}" width="{length:.1f}" height="{_BAR - 3}" rx="2" fill="{colour}">'
                f"<title>{escape(f'{group.label}, {bar.series}: {bar.text}')}</title></rect>"
                f'<text class="n" x="{_LEFT + length + 6:.1f}" y="{y + _BAR - 5:.0f}">{escape(bar.text)}</text>'
            )
            y += _BAR
        y += _GAP
    axis = f'<line class="g" x1="{_LEFT}" y1="{top - 4:.0f}" x2="{_LEFT}" y2="{y - _GAP + 4:.0f}"/>'
    height = round(y + (14 if note else 0))
    end = f'<text class="n" x="{_LEFT}" y="{height - 6}">{escape(note)}</text>' if note else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f'<style>{_STYLE}</style><text class="t" x="10" y="22">{escape(title)}</text>'
        f"{legend}{axis}{''.join(parts)}{end}</svg>\n"
    )


class _Scale:
    """From values to lengths in pixels."""

    def __init__(self, values: Sequence[float], *, logarithmic: bool) -> None:
        self._room = _WIDTH - _LEFT - _RIGHT
        self._most = max(values)
        # A decade below the smallest value, so that its bar can be seen.
        self._least = 10 ** (math.floor(math.log10(min(values))) - 0.3) if logarithmic else 0.0

    def length(self, value: float) -> float:
        """Of a bar."""
        if value <= 0:
            return 1.0
        if not self._least:
            return max(1.0, value / self._most * self._room)
        whole = math.log10(self._most / self._least)
        return max(1.0, math.log10(value / self._least) / whole * self._room)


def _legend(groups: Sequence[Group]) -> tuple[str, float]:
    """What the colours mean, in as many lines as it takes, and where it ends."""
    parts: list[str] = []
    x, y = 10.0, 34.0
    for series in dict.fromkeys(bar.series for group in groups for bar in group.bars):
        length = 32 + _LETTER * len(series)
        if x + length > _WIDTH:
            x, y = 10.0, y + 18
        colour = _COLOURS.get(series, _OTHER_COLOUR)
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="11" height="11" rx="2" fill="{colour}"/>'
            f'<text x="{x + 16:.0f}" y="{y + 10:.0f}">{escape(series)}</text>'
        )
        x += length
    return "".join(parts), y + 28
