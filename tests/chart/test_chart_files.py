"""Level 0: the chart's files say the same as what they follow from."""

import importlib.util
import itertools
import json
import re
import shlex

import pytest
import yaml
from chart_engine import CHART, ROOT, render
from values_file import documented_values, undocumented


@pytest.fixture(scope="module")
def generated():
    place = ROOT / "deploy" / "generate" / "__main__.py"
    spec = importlib.util.spec_from_file_location("generate_all", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generated()


def test_everything_that_is_generated_is_current(generated):
    stale = [str(path) for path, text in generated.items() if path.read_text() != text]
    assert not stale, "run: make chart-files"


def test_files_of_prometheus_and_grafana_are_those_of_the_chart():
    for path in sorted((CHART / "files" / "dashboards").iterdir()):
        assert (ROOT / "deploy/grafana/dashboards" / path.name).read_text() == path.read_text()


def test_every_value_is_described_and_in_the_readme():
    values = CHART / "values.yaml"
    assert undocumented(values) == []
    readme = (CHART / "README.md").read_text()
    for value in documented_values(values):
        assert f"| `{value.name}` |" in readme
        assert len(value.description) > 5


def test_the_topology_and_the_drills_in_the_schema_are_the_programs_own():
    from replicator.drill.file.load import drill_schema
    from replicator.topology.file.schema import topology_schema

    schema = json.loads((CHART / "values.schema.json").read_text())
    definitions = {**topology_schema()["$defs"], **drill_schema()["$defs"]}
    assert schema["$defs"].keys() == {"Topology", "Drill", *definitions}
    for name, definition in definitions.items():
        assert schema["$defs"][name]["properties"].keys() == definition["properties"].keys()


def test_the_schema_is_closed_wherever_it_names_fields():
    def open_objects(node, path):
        if isinstance(node, list):
            return [found for each in node for found in open_objects(each, path)]
        if not isinstance(node, dict):
            return []
        found = []
        named = isinstance(node.get("properties"), dict) and path.rpartition(".")[2] != "properties"
        # Alternatives by shape are closed in each branch.
        if named and "additionalProperties" not in node and "allOf" not in node:
            found.append(path)
        for key, value in node.items():
            if key not in {"if", "enum", "const", "default"}:
                found += open_objects(value, f"{path}.{key}")
        return found

    schema = json.loads((CHART / "values.schema.json").read_text())
    assert open_objects(schema, "$") == []


def test_the_readmes_install_works_as_it_is_written():
    readme = (CHART / "README.md").read_text()
    (line,) = re.findall(r"\$ (helm install (?:.*\\\n)*.*)\n", readme)
    words = shlex.split(line.replace("\\\n", " "))
    assert "--create-namespace" in words
    assert (ROOT / words[3]) == CHART
    values = {"image": {}}
    for option, given in itertools.pairwise(words):
        name, _, value = given.partition("=")
        if option == "--set-file":
            values[name] = (ROOT / value).read_text()
        elif option == "--set":
            block, field = name.split(".")
            values[block][field] = value
    assert render(values).kind("StatefulSet")


def test_chart_and_program_have_the_same_version():
    import tomllib

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert chart["appVersion"] == project["version"]
