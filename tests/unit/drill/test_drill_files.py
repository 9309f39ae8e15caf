import json
import textwrap
from pathlib import Path
from typing import get_args

import pytest

from replicator.drill.environment.sandbox_topology import TOPIC, sandbox_clusters, sandbox_topology
from replicator.drill.file.document import Kind
from replicator.drill.file.load import load_drill, load_drill_text
from replicator.topology.file.load import load_plan, load_text

ROOT = Path(__file__).parents[3]
GOOD = """\
    apiVersion: replicator/v1
    kind: Drill
    metadata: {name: weekly}
    spec:
      link: orders-dr
      kind: worker-crash
      limits: {maxRtoSeconds: 20, maxLostRecords: 0, maxReread: 0}
    """

TOPOLOGY = """\
    apiVersion: replicator/v1
    kind: Topology
    metadata: {name: shop}
    spec:
      clusters:
        paris: {bootstrapServers: [paris:9092]}
        rome: {bootstrapServers: [rome:9092]}
        oslo: {bootstrapServers: [oslo:9092]}
      defaults: {commitInterval: 400ms}
      links:
        - {name: orders-dr, shape: active-passive, active: paris, passive: rome,
           topics: {include: [orders]}, sync: {topics: {replicationFactor: 3}}, lanes: 2}
        - {name: mesh, shape: active-active, clusters: [paris, rome, oslo], topics: {include: [p]}}
        - {name: star, shape: hub-and-spoke, hub: oslo, spokes: [paris, rome], direction: to-hub,
           topics: {include: [t]}}
    """


def problems(text, *, plan=None):
    loaded = load_drill_text(textwrap.dedent(text), file="d.yaml", plan=plan)
    assert (loaded.drill is None) == bool(loaded.problems)
    return [str(problem) for problem in loaded.problems]


def drill(**spec):
    fields = {"link": "orders-dr", "kind": "worker-crash", "limits": {"maxLostRecords": 0}} | spec
    lines = [f"  {name}: {value!r}" for name, value in fields.items()]
    text = "\n".join(
        ["apiVersion: replicator/v1", "kind: Drill", "metadata: {name: d}", "spec:", *lines]
    )
    return load_drill_text(text, file="d.yaml").drill


def plan():
    loaded = load_text(textwrap.dedent(TOPOLOGY))
    assert loaded.plan is not None, loaded.problems
    return loaded.plan


def original():
    from replicator.topology.file.source import read_source

    return read_source(textwrap.dedent(TOPOLOGY)).data


def test_a_good_file_becomes_a_drill_with_the_defaults_of_the_format():
    found = load_drill_text(textwrap.dedent(GOOD), file="d.yaml").drill
    assert found.name == "weekly"
    assert found.load.records_per_second == 200
    assert found.load.before_seconds == 5.0
    assert found.fault.workers == 2
    assert found.limits.max_rto_seconds == 20
    assert found.flow == ""


def test_the_hash_of_a_drill_shows_every_change_and_nothing_else():
    same = load_drill_text(textwrap.dedent(GOOD).replace("20", "20.0"), file="other").drill
    other = load_drill_text(textwrap.dedent(GOOD).replace("20", "21"), file="d.yaml").drill
    first = load_drill_text(textwrap.dedent(GOOD), file="d.yaml").drill
    assert first.hash == same.hash
    assert first.hash != other.hash


def test_every_problem_of_a_file_is_found_at_once_and_with_its_place():
    found = problems(
        """\
        apiVersion: replicator/v1
        kind: Drill
        metadata: {name: Weekly}
        spec:
          link: orders-dr
          kind: worker-crsh
          load: {recordsPerSecond: 5, befor: 3s}
          fault: {duration: 10}
          limits: {}
          flow: eastwest
        """
    )
    assert [line.split("  ")[0] for line in found] == [
        "d.yaml:3:18", "d.yaml:6:9", "d.yaml:7:28", "d.yaml:7:31", "d.yaml:8:21", "d.yaml:9:11",
        "d.yaml:10:9",
    ]  # fmt: skip
    assert "did you mean 'worker-crash'?" in found[1]
    assert "did you mean 'before'?" in found[3]
    assert "no limit is given" in found[5]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("kind: switchover, fault: {how: kill}", "'how' does not apply to a switchover"),
        (
            "kind: worker-crash, fault: {duration: 5s}",
            "'duration' does not apply to a worker-crash",
        ),
        ("kind: network-cut, fault: {how: kill}", "a network cut kills no broker"),
        ("kind: failover, fault: {end: [a]}", "'end' without 'begin'"),
        ("kind: failover, fault: {begin: []}", "too few entries"),
        ("kind: failover, load: {before: 2h}", "out of bounds"),
        ("kind: failover, surprise: 1", "unknown field 'surprise'"),
    ],
)
def test_what_a_kind_cannot_use_is_refused(spec, words):
    found = problems(
        "apiVersion: replicator/v1\nkind: Drill\nmetadata: {name: d}\n"
        f"spec: {{link: l, limits: {{maxReread: 0}}, {spec}}}\n"
    )
    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize("text", ["", "- a", "spec: [", "a: b", "spec: {link: [x]}", "\tx"])
def test_files_that_are_no_drill_get_a_sentence(text):
    assert problems(text)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("link: order-dr", "did you mean 'orders-dr'?"),
        ("link: orders-dr, flow: rome->paris", "has no flow 'rome->paris'"),
        ("link: mesh", "link 'mesh' has 6 flows"),
        ("link: star, flow: paris->oslo, kind: switchover", "its clusters have no roles to change"),
    ],
)
def test_link_and_flow_are_looked_up_in_the_topology(spec, words):
    kind = "" if "kind" in spec else ", kind: worker-crash"
    found = problems(
        "apiVersion: replicator/v1\nkind: Drill\nmetadata: {name: d}\n"
        f"spec: {{limits: {{maxReread: 0}}, {spec.replace('->', '->')}{kind}}}\n",
        plan=plan(),
    )
    assert any(words in line for line in found), found


def test_a_sandbox_without_a_topology_gets_a_plain_link():
    document = sandbox_topology(drill(), None, entries={"east": {}, "west": {}})
    assert sandbox_clusters(drill(), None) == ("east", "west")
    (link,) = document["spec"]["links"]
    assert (link["active"], link["passive"], link["topics"]) == (
        "east",
        "west",
        {"include": [TOPIC]},
    )


@pytest.mark.parametrize(
    ("wanted", "clusters"),
    [
        ({}, ("paris", "rome")),
        ({"link": "mesh", "flow": "oslo->rome"}, ("oslo", "rome")),
        ({"link": "star", "flow": "paris->oslo"}, ("paris", "oslo")),
        ({"kind": "switchover"}, ("paris", "rome")),
    ],
)
def test_a_sandbox_rehearses_the_link_as_the_operators_file_has_it(wanted, clusters):
    entries = {
        alias: {"bootstrapServers": [f"127.0.0.1:{at}"]} for at, alias in enumerate(clusters, 9000)
    }
    document = sandbox_topology(drill(**wanted), original(), entries=entries)
    assert sandbox_clusters(drill(**wanted), original()) == clusters
    (link,) = document["spec"]["links"]
    assert link["name"] == wanted.get("link", "orders-dr")
    assert document["spec"]["defaults"] == {"commitInterval": "400ms"}
    assert link["topics"] == {"include": [TOPIC]}
    assert "replicationFactor" not in link.get("sync", {}).get("topics", {})
    assert list(document["spec"]["clusters"]) == list(clusters)
    if "kind" not in wanted:  # fencing is the other room's to allow
        loaded = load_text(json.dumps(document))
        assert loaded.plan is not None, loaded.problems


@pytest.mark.parametrize("file", sorted((ROOT / "topologies" / "drills").glob("*.yaml")), ids=str)
def test_the_examples_fit_the_example_topology(file):
    example = load_plan(ROOT / "topologies" / "active-passive.yaml").plan
    loaded = load_drill(file, plan=example)
    assert loaded.drill is not None, loaded.problems


def test_there_is_an_example_of_every_kind():
    files = (ROOT / "topologies" / "drills").glob("*.yaml")
    assert {load_drill(file).drill.kind for file in files} == set(get_args(Kind))
