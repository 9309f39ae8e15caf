"""Writes ``docs/metrics.md`` from the catalogue: ``python -m replicator.observability.metrics_reference``.

Pure but for the last function. A test compares the committed file with ``markdown()``.
"""

import sys

from replicator.observability.catalogue import CATALOGUE, DETAIL_LABELS, Metric

_HEAD = """\
# Metrics

Every worker serves these at `/metrics`. This file is generated from
`replicator/observability/catalogue.py`; do not edit it
(`python -m replicator.observability.metrics_reference > docs/metrics.md`).

A worker reports the lanes it owns: add counters and `lag_records` up over workers, take the maximum
of ages. Counters never go back when a lane restarts or moves within a worker. Metrics marked
**detail** also carry `topic` and `partition` when the worker runs with `--metrics-detail`. Every sample
carries `topology`, the name in the topology file: aggregate by it, too, where one Prometheus sees several.

| metric | type | unit | labels | meaning |
|---|---|---|---|---|
"""


def markdown() -> str:
    """The whole document."""
    return _HEAD + "".join(_row(entry) for entry in CATALOGUE) + "\n" + _closed_sets()


def _row(entry: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in entry.labels)
    detail = f" **detail**: {', '.join(f'`{name}`' for name in DETAIL_LABELS)}."
    text = entry.help + (detail if entry.detail else "")
    return f"| `{entry.full_name}` | {entry.kind} | {entry.unit or '-'} | {labels} | {text} |\n"


def _closed_sets() -> str:
    lines = ["## Values of labels\n\n"]
    for entry in CATALOGUE:
        for label, values in entry.values:
            listed = ", ".join(f"`{value}`" for value in values)
            lines.append(f"- `{entry.full_name}` `{label}`: {listed}\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(markdown())
