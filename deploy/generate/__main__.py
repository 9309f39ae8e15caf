"""Writes everything of the chart and of deploy/ that follows from something else.

`make chart-files` writes; `python deploy/generate --check` names what is not current and exits 1.
"""

import sys
from pathlib import Path

import yaml
from chart_readme import readme_text
from chart_schema import schema_text
from dashboards import dashboards

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "replicator"
RELEASE_NAME = "replicator"


def generated() -> dict[Path, str]:
    """Every generated file with what it has to be."""
    files = {
        CHART / "values.schema.json": schema_text(CHART / "values.yaml"),
        CHART / "README.md": readme_text(CHART),
        ROOT / "deploy" / "prometheus" / "alerts.yaml": alerts_text(),
    }
    for name, text in dashboards().items():
        files[CHART / "files" / "dashboards" / name] = text
        files[ROOT / "deploy" / "grafana" / "dashboards" / name] = text
    return files


def alerts_text() -> str:
    """The chart's alerts with default thresholds, as Prometheus itself reads them."""
    text = (CHART / "files" / "alerts.yaml").read_text()
    rules = yaml.safe_load((CHART / "values.yaml").read_text())["monitoring"]["prometheusRule"]
    for name, value in rules["thresholds"].items():
        text = text.replace(f"<{name}>", str(value))
    text = text.replace("<runbookBaseUrl>", rules["runbookBaseUrl"])
    body = yaml.safe_dump(yaml.safe_load(text), sort_keys=False, width=100, allow_unicode=True)
    return (
        "# Generated from helm/replicator/files/alerts.yaml by `make chart-files`; do not edit.\n"
        + body
    )


def main() -> int:
    """Writes, or checks."""
    stale = []
    for path, text in generated().items():
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.relative_to(ROOT))
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for path in stale:
        print(f"{'not current' if '--check' in sys.argv else 'written'}: {path}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
