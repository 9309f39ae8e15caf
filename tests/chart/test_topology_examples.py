"""topologies/: each example passes the chart both ways it can be given and means the same there."""

import pytest
import yaml
from chart_engine import ROOT, render

from replicator.topology.file.load import load_plan

EXAMPLES = sorted((ROOT / "topologies").glob("*.yaml"))
SHAPES = {"active-passive", "active-active", "hub-and-spoke"}


def test_there_is_one_for_each_shape_and_a_realistic_one():
    assert {path.stem for path in EXAMPLES} >= SHAPES | {"three-regions"}
    links = {
        path.stem: {link["shape"] for link in yaml.safe_load(path.read_text())["spec"]["links"]}
        for path in EXAMPLES
    }
    assert all(links[shape] == {shape} for shape in SHAPES)
    assert links["three-regions"] == SHAPES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_commented_and_means_the_same_in_the_chart(path, tmp_path):
    text = path.read_text()
    assert text.startswith("#")
    mounted = tmp_path / "topology.yaml"
    mounted.write_text(render({"topologyText": text}).topology())
    assert load_plan(mounted).plan.hash == load_plan(path).plan.hash


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_as_an_object_it_passes_the_schema_and_means_what_it_means_in_order_of_names(
    path, tmp_path
):
    given = yaml.safe_load(path.read_text())
    rendered = render({"topology": given})
    mounted, in_order = tmp_path / "topology.yaml", tmp_path / "sorted.yaml"
    mounted.write_text(rendered.topology())
    in_order.write_text(yaml.safe_dump(given, sort_keys=True))
    assert load_plan(mounted).plan.hash == load_plan(in_order).plan.hash
    # Where the order means something the user is told.
    if any(link.get("naming") == "identity" for link in given["spec"]["links"]):
        assert "--set-file topologyText" in rendered.notes
