"""The chart's README: what the prose says, then every value from its comment in values.yaml."""

import json
from pathlib import Path

from values_file import Value, documented_values

_MARK = "<!-- values -->"


def readme_text(chart: Path) -> str:
    """README.md from README.md.in and values.yaml."""
    rows = "".join(_row(value) for value in documented_values(chart / "values.yaml"))
    table = f"| value | default | meaning |\n|---|---|---|\n{rows}"
    return (chart / "README.md.in").read_text().replace(_MARK, table.rstrip("\n"))


def _row(value: Value) -> str:
    default = json.dumps(value.default)
    default = "see values.yaml" if len(default) > 60 else f"`{default}`".replace("|", "\\|")
    return f"| `{value.name}` | {default} | {value.description} |\n"
