"""Dashboards: four, over metrics that there are, with units, for any data source and namespace."""

import json
import re

import promql_parser
import pytest
import yaml
from catalogue_names import unknown_metrics
from chart_engine import CHART, ci_values, render, render_file

FILES = sorted((CHART / "files" / "dashboards").glob("*.json"))


def load(path):
    return json.loads(path.read_text())


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions(dashboard):
    return [target["expr"] for panel in panels(dashboard) for target in panel["targets"]]


def test_there_are_four_with_names_of_their_own():
    names = [load(path)["uid"] for path in FILES]
    assert names == [f"replicator-{name}" for name in ("failover", "groups", "link", "overview")]
    assert [path.stem for path in FILES] == names
    assert all("replicator" in load(path)["tags"] for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_expressions_are_promql_over_metrics_of_the_catalogue(path):
    for expression in expressions(load(path)):
        plain = expression.replace("$__rate_interval", "5m")
        promql_parser.parse(plain)
        assert unknown_metrics(plain) == []
        assert plain.count("replicator_") == plain.count('namespace=~"$namespace"'), plain


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_panels_have_a_unit_an_explanation_and_room(path):
    taken = set()
    for panel in panels(load(path)):
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} lies over another panel"
        taken |= cells
    ids = [panel["id"] for panel in load(path)["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_variables_that_are_used_are_declared(path):
    dashboard = load(path)
    declared = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)\}?", " ".join(expressions(dashboard))))
    assert used <= declared
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            assert unknown_metrics(variable["query"]["query"]) == []


def test_counters_are_looked_at_as_rates():
    for path in FILES:
        for expression in expressions(load(path)):
            for name in re.findall(r"(\w+\()?replicator_\w+_(?:total|bucket)", expression):
                assert name in {"rate(", "increase("}, expression


def test_the_chart_ships_each_as_a_config_map_that_grafana_finds():
    maps = [
        each for each in render_file("ha").kind("ConfigMap")
        if each["metadata"]["labels"].get("grafana_dashboard") == "1"
    ]  # fmt: skip
    shipped = {name: json.loads(text) for each in maps for name, text in each["data"].items()}
    assert shipped.keys() == {f"streams-rel-replicator-{path.name}" for path in FILES}
    for path in FILES:
        of_release = shipped[f"streams-rel-replicator-{path.name}"]
        assert expressions(of_release) == expressions(load(path))
        assert of_release["title"] == f"{load(path)['title']} (streams/rel)"
    assert all(len(yaml.safe_dump(each)) < 900_000 for each in maps)


def test_dashboards_of_two_releases_exist_side_by_side():
    def dashboards(**release):
        return [
            (name, json.loads(text)["uid"], each["metadata"]["annotations"]["grafana_folder"])
            for each in render(ci_values("ha"), **release).kind("ConfigMap")
            for name, text in each["data"].items()
            if name.endswith(".json")
        ]

    one, two = dashboards(), dashboards(release="other")
    elsewhere = dashboards(namespace="payments")
    for which in range(3):
        seen = {entry[which] for release in (one, two, elsewhere) for entry in release}
        assert len(seen) == (3 if which == 2 else 12)
    assert all(len(uid) <= 40 for _, uid, _ in one), "as long as Grafana takes"
