"""The one place that knows the Helm engine: Helm's own Go code, from a wheel."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import helm_python
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "replicator"
CI_FILES = {path.stem.removesuffix("-values"): path for path in CHART.glob("ci/*-values.yaml")}
RELEASE, NAMESPACE = "rel", "streams"

Object = dict[str, Any]


class RefusedValuesError(Exception):
    """The chart refused the values; the message is what a user sees."""


@dataclass(frozen=True)
class Rendered:
    """One rendering of the chart."""

    name: str
    values: Object
    texts: dict[str, str]

    @functools.cached_property
    def objects(self) -> list[Object]:
        """All objects, hooks and tests among them."""
        return [
            document
            for path, text in sorted(self.texts.items()) if path.endswith(".yaml")
            for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document
        ]  # fmt: skip

    def kind(self, *kinds: str) -> list[Object]:
        return [each for each in self.objects if each["kind"] in kinds]

    @property
    def notes(self) -> str:
        return next(text for path, text in self.texts.items() if path.endswith("NOTES.txt"))

    def topology(self) -> str:
        """The topology file as workers find it."""
        (found,) = (
            each["data"]["topology.yaml"]
            for each in self.kind("ConfigMap")
            if each["metadata"]["name"].endswith("-topology")
        )
        return found

    def pods(self) -> list[tuple[str, Object]]:
        """Every pod template by the object it stands in: metadata and spec."""
        return [
            (f"{each['kind']}/{each['metadata']['name']}", pod)
            for each in self.objects
            for pod in _pods_of(each)
        ]

    def containers(self) -> list[tuple[str, Object]]:
        return [
            (f"{name} container {container['name']}", container)
            for name, pod in self.pods()
            for field in ("initContainers", "containers")
            for container in pod["spec"].get(field, [])
        ]


def render(
    values: Object,
    *,
    name: str = "",
    upgrade: bool = False,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
) -> Rendered:
    """Renders as `helm install` does, the schema of values included.

    Raises:
        RefusedValuesError: schema or templates refuse.
    """
    with helm_python.Chart.load(str(CHART)) as chart:
        try:
            chart.validate_schema(values)
            texts = chart.render(
                values, name=release, namespace=namespace, revision=2 if upgrade else 1,
                is_install=not upgrade, is_upgrade=upgrade,
            )  # fmt: skip
        except helm_python.HelmError as error:
            raise RefusedValuesError(str(error)) from error
    prefix = f"{CHART.name}/"
    return Rendered(name, values, {path.removeprefix(prefix): t for path, t in texts.items()})


def ci_values(name: str) -> Object:
    values: Object = yaml.safe_load(CI_FILES[name].read_text())
    return values


@functools.cache
def render_file(name: str) -> Rendered:
    return render(ci_values(name), name=name)


def lint(values: Object) -> list[str]:
    """Warnings and errors of `helm lint --strict`."""
    report = helm_python.lint(str(CHART), values, strict=True, namespace=NAMESPACE)
    return [each["error"] for each in report["messages"] if each["severity"] > 1] + report["errors"]


def _pods_of(each: Object) -> Iterator[Object]:
    spec = each.get("spec", {})
    match each["kind"]:
        case "Pod":
            yield {"metadata": each["metadata"], "spec": spec}
        case "StatefulSet" | "Job":
            yield spec["template"]
        case "CronJob":
            yield spec["jobTemplate"]["spec"]["template"]
        case "SparkApplication":
            yield from (spec["driver"]["template"], spec["executor"]["template"])
        case "ScheduledSparkApplication":
            application = spec["template"]
            yield from (application["driver"]["template"], application["executor"]["template"])
        case "ConfigMap" if "pod.yaml" in each["data"]:
            yield yaml.safe_load(each["data"]["pod.yaml"])
