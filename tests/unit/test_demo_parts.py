"""The pure parts of the demo, and what it says where Java is missing."""

import pytest

from replicator.cli.main import run_command
from replicator.demo.reading import Found
from replicator.demo.sample import FlowSample, Sample, moved_since, rates
from replicator.demo.scenario import SCENARIOS, topology_text
from replicator.demo.screen import flow_lines
from replicator.demo.shapes import Shape
from replicator.demo.verdict import judge
from replicator.demo.words import explain_record, numbers
from replicator.testing.checker.history import FINAL, Completed, Scanned, Seen, Sent
from replicator.topology.file.load import load_text


def sample(*, at=0.0, copied=0, positions=None, lanes=None):
    flow = FlowSample("east->west", "replicating", 3, 0.25, copied, lanes or {})
    return Sample(at, (flow,), positions or {}, {}, {}, ())


def history(*, copies=1):
    return [
        Sent("a", "east", "orders", None, "k", "v", "h", 5, None, None, 0.0),
        Completed("a", "ok", 0, 0, 0.1),
        Scanned(FINAL, "east", "orders", 0, 0, 1),
        Seen(FINAL, "east", "orders", 0, 0, "a", "k", "v", "h", 5, ""),
        Scanned(FINAL, "west", "orders", 0, 0, copies),
        *(
            Seen(FINAL, "west", "orders", 0, offset, "a", "k", "v", "h", 5, "east/orders/0/0")
            for offset in range(copies)
        ),
    ]


@pytest.mark.parametrize("shape", Shape)
def test_the_topology_of_every_shape_is_valid_and_has_the_flows_it_promises(shape):
    scenario = SCENARIOS[shape]
    servers = {alias: [f"{alias}:9092"] for alias in scenario.clusters}

    loaded = load_text(topology_text(scenario, servers))

    assert loaded.problems == ()
    assert {(flow.source, flow.target) for flow in loaded.plan.flows} == set(scenario.flows)


def test_a_partition_has_moved_only_when_its_stored_position_went_on():
    stuck, moved = ("east->west", "orders", 0), ("east->west", "orders", 1)
    before = sample(positions={stuck: 5, moved: 5})
    after = sample(positions={stuck: 5, moved: 6})

    assert moved_since(before, after, {stuck, moved}) == {moved}


def test_rates_are_records_per_second_between_two_looks():
    assert rates(sample(at=1.0, copied=100), sample(at=3.0, copied=300)) == {"east->west": 100.0}


def test_plain_lines_show_lag_and_the_owners_of_lanes_and_fit_80_columns():
    lanes = {"worker-1": (0, 1), "worker-2": (2, 3)}

    (line,) = flow_lines(sample(lanes=lanes).flows, {"east->west": 250.4}, dead="worker-2")

    assert line.strip() == (
        "east->west replicating 250/s, lag 3 (0.2 s), worker-1 0-1, worker-2 dead 2-3"
    )
    assert len(line) <= 80


def test_lane_numbers_are_written_as_runs():
    assert numbers((5, 0, 1, 2)) == "0-2,5"


def test_the_hop_header_is_explained_oldest_hop_first():
    found = Found("west", "orders", 1, 9, b"k", b"v", b"north/orders/1/4 east/orders/1/7")

    text = " ".join(explain_record(found, SCENARIOS[Shape.ACTIVE_ACTIVE]))

    assert text.index("read on north from orders, partition 1, offset 4") < text.index(
        "then read on east from orders, partition 1, offset 7"
    )


def test_one_copy_of_every_record_is_a_clean_verdict():
    verdict = judge(SCENARIOS[Shape.ACTIVE_PASSIVE], history())

    assert verdict.clean
    assert [(row.cluster, row.acknowledged, row.found) for row in verdict.rows] == [
        ("east", 1, 1),
        ("west", 1, 1),
    ]


@pytest.mark.parametrize(("copies", "word"), [(0, "tail"), (2, "duplicate")])
def test_a_missing_or_second_copy_is_no_clean_verdict(copies, word):
    verdict = judge(SCENARIOS[Shape.ACTIVE_PASSIVE], history(copies=copies))

    assert not verdict.clean
    assert word in " ".join(verdict.findings())


def test_a_verdict_over_nothing_is_not_clean():
    assert not judge(SCENARIOS[Shape.ACTIVE_PASSIVE], []).clean


def test_without_java_the_demo_says_how_to_get_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("REPLICATOR_CACHE", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert run_command(["demo", "--no-wait"]) == 2
    assert "no Java was found" in capsys.readouterr().err
