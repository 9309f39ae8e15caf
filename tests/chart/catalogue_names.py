"""Names that rules and dashboards may use: those of the program's own catalogue and contract."""

import re

from chart_engine import ROOT

from replicator.observability.catalogue import CATALOGUE, COMMON_LABELS

METRICS = {entry.full_name: entry for entry in CATALOGUE}
TARGET_LABELS = {"namespace", "job", "pod", "instance", "le"}
"""What Prometheus adds; `le` is a histogram's."""


def problem_codes() -> set[str]:
    """The problem codes that the program can tell."""
    sources = (ROOT / "replicator").rglob("*.py")
    return {
        code for path in sources for code in re.findall(r'"([A-Z]+(?:_[A-Z]+)*)"', path.read_text())
    }


def unknown_metrics(expression: str) -> list[str]:
    """Metrics and labels in an expression that the catalogue does not have."""
    wrong = []
    pattern = r'(replicator_\w+)(?:\{((?:[^}"]|"[^"]*")*)\})?'
    for name, matchers in re.findall(pattern, expression):
        stem = re.sub(r"_(bucket|count|sum)$", "", name)
        entry = METRICS.get(name) or METRICS.get(stem)
        if entry is None or (name != entry.full_name and entry.kind != "histogram"):
            wrong.append(name)
            continue
        known = {*COMMON_LABELS, *entry.labels, *TARGET_LABELS}
        wrong += [
            f"{name}{{{label}}}"
            for label in re.findall(r"(\w+)\s*[=!]~?", re.sub(r'"[^"]*"', "", matchers))
            if label not in known
        ]
        for label, value in re.findall(r'(\w+)=~?"([^"]*)"', matchers):
            closed = dict(entry.values).get(label)
            if closed is not None:
                wrong += [
                    f"{name}{{{label}={part}}}" for part in value.split("|") if part not in closed
                ]
    return wrong
