"""The committed examples, schema and reference."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from ruamel.yaml import YAML

from replicator.policy.values import PRIORITIES
from replicator.topology.file.load import load_plan
from replicator.topology.file.reference import reference_text
from replicator.topology.file.schema import fields_at, topology_schema
from replicator.topology.spec.units import format_duration, parse_duration, parse_size

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "topologies").glob("*.yaml"))


def plain(path):
    """The file as data, as any other program would read it."""
    text = path.read_text().replace("T00:00:00Z", "T00:00:00Z")
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_valid_without_a_warning(path):
    result = load_plan(path)
    assert result.problems == ()
    assert result.plan is not None


def test_there_is_an_example_for_every_shape():
    shapes = {link.shape for path in EXAMPLES for link in load_plan(path).plan.links}
    assert shapes == {"active-passive", "active-active", "hub-and-spoke"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_fits_the_schema(path):
    assert jsonschema_rs.is_valid(topology_schema(), plain(path))


def test_the_schema_refuses_what_the_program_refuses():
    good = plain(EXAMPLES[0])
    for change in (
        {"spec": {**good["spec"], "clusters": {"A.b": {"bootstrapServers": ["a:1"]}}}},
        {"spec": {**good["spec"], "defaults": {"commitInterval": 5}}},
        {"spec": {**good["spec"], "defaults": {"lanes": 300}}},
        {"spec": {**good["spec"], "links": [{"name": "l", "shape": "circle"}]}},
        {"kind": "Pod"},
        {"more": 1},
    ):
        assert not jsonschema_rs.is_valid(topology_schema(), {**good, **change})


def test_the_committed_schema_is_current():
    committed = json.loads((ROOT / "topologies" / "schema.json").read_text())
    assert committed == topology_schema(), "run: replicator schema > topologies/schema.json"


def test_the_committed_reference_is_current():
    committed = (ROOT / "docs" / "topology.md").read_text()
    assert committed == reference_text(), (
        "run: python -m replicator.topology.file.reference > docs/topology.md"
    )


def test_every_field_of_the_schema_is_described():
    definitions = topology_schema()["$defs"].items()
    bare = [
        f"{name}.{field}"
        for name, schema in definitions
        for field, content in schema.get("properties", {}).items()
        if not content.get("description")
    ]
    assert bare == []


def test_the_fields_at_a_place_depend_on_the_shape_there():
    data = {"spec": {"links": [{"shape": "hub-and-spoke"}]}}
    assert "hub" in fields_at(("spec", "links", 0), data)
    assert "passive" not in fields_at(("spec", "links", 0), data)
    assert set(fields_at(("spec", "clusters", "east"), {})) == {
        "bootstrapServers",
        "security",
        "kafka",
    }
    assert PRIORITIES == ("critical", "normal", "bulk")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("200ms", 0.2), ("5s", 5.0), ("10m", 600.0), ("2h", 7200.0), ("1.5s", 1.5)],
)
def test_durations_read_as_they_are_written(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "count"),
    [("64KiB", 65536), ("50MB", 50_000_000), ("10GB", 10**10), ("7B", 7), ("1.5KiB", 1536)],
)
def test_sizes_read_as_they_are_written(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "5", "5 s", "-5s", "s", "5S", "1e3s", "\uff15s"])
def test_anything_else_is_no_duration(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)
