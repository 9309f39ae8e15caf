"""Pieces of Grafana dashboards: panels with a unit, a place and expressions over known metrics.

Every expression is written with ``{metric}`` names of the catalogue (without the prefix), so that a
metric that is renamed or misspelt fails here, not on a wall.
"""

from dataclasses import dataclass
from typing import Any, Literal

from replicator.observability.catalogue import CATALOGUE

WIDTH = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
NAMES = {entry.name: entry.full_name for entry in CATALOGUE}

Json = dict[str, Any]
Kind = Literal["stat", "timeseries", "table", "state-timeline", "heatmap"]


@dataclass(frozen=True, slots=True)
class Query:
    """One expression, and how its series are called."""

    expression: str
    legend: str = "{{flow}} {{link}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; ``width`` of 24, ``red`` and ``amber`` are thresholds from below."""

    title: str
    kind: Kind
    unit: str
    queries: tuple[Query, ...]
    description: str
    width: int = 12
    height: int = 8
    amber: float | None = None
    red: float | None = None
    mappings: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A heading and what stands below it."""

    title: str
    panels: tuple[Panel, ...]


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        raise KeyError(f"no metric '{name}' in the catalogue")


def expression(text: str, selector: str) -> str:
    """PromQL from a template: ``{lag_seconds}`` becomes the metric with the dashboard's selector.

    ``{name|label="value"}`` adds matchers; a histogram's series are ``{name_bucket}``.

    Raises:
        KeyError: a metric that the catalogue does not have.
    """
    out: list[str] = []
    rest = text
    while "{" in rest:
        before, _, rest = rest.partition("{")
        inside, _, rest = rest.partition("}")
        name, _, matchers = inside.partition("|")
        stem = name.removesuffix("_bucket")
        full = _Names(NAMES)[name if name in NAMES else stem] + name[len(stem) :] * (
            name not in NAMES
        )
        chosen = ",".join(part for part in (selector, matchers) if part)
        out.append(f"{before}{full}{{{chosen}}}" if chosen else f"{before}{full}")
    return "".join([*out, rest])


def layout(rows: tuple[Row, ...], selector: str) -> list[Json]:
    """All panels of a dashboard with their places, rows first."""
    panels: list[Json] = []
    top = 0
    for row in rows:
        panels.append(
            {
                "id": len(panels) + 1, "type": "row", "title": row.title, "collapsed": False,
                "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": top}, "panels": [],
            }
        )  # fmt: skip
        top += 1
        left = tallest = 0
        for panel in row.panels:
            if left + panel.width > WIDTH:
                top, left, tallest = top + tallest, 0, 0
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            panels.append({"id": len(panels) + 1, **_panel(panel, selector), "gridPos": place})
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest
    return panels


def _panel(panel: Panel, selector: str) -> Json:
    instant = panel.kind in {"stat", "table"}
    targets: list[Json] = [
        {
            "refId": chr(ord("A") + number),
            "datasource": DATASOURCE,
            "expr": expression(query.expression, selector),
            "legendFormat": query.legend,
            "instant": instant,
            "range": not instant,
            "format": {"table": "table", "heatmap": "heatmap"}.get(panel.kind, "time_series"),
        }
        for number, query in enumerate(panel.queries)
    ]
    built: Json = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel),
    }
    if panel.kind == "table":
        built["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}}},
        ]
    return built


def _defaults(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.amber is not None:
        steps.append({"color": "orange", "value": panel.amber})
    if panel.red is not None:
        steps.append({"color": "red", "value": panel.red})
    defaults: Json = {
        "unit": panel.unit,
        "min": 0,
        "color": {"mode": "thresholds" if panel.kind in {"stat", "table"} else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": steps},
        "noValue": "-",
    }
    if panel.kind == "timeseries":
        style = "line" if panel.amber is not None or panel.red is not None else "off"
        defaults["custom"] = {
            "fillOpacity": 10, "lineWidth": 1, "showPoints": "never", "spanNulls": False,
            "thresholdsStyle": {"mode": style},
        }  # fmt: skip
    if panel.mappings:
        options = {
            value: {"text": text, "color": color, "index": index}
            for index, (value, text, color) in enumerate(panel.mappings)
        }
        defaults["mappings"] = [{"type": "value", "options": options}]
    return defaults


def _options(panel: Panel) -> Json:
    if panel.kind == "stat":
        return {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "background", "graphMode": "none", "textMode": "auto",
        }  # fmt: skip
    if panel.kind == "timeseries":
        return {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }  # fmt: skip
    if panel.kind == "heatmap":
        return {"calculate": False, "yAxis": {"unit": panel.unit}, "cellGap": 1}
    return {}
