"""The benchmark's own rules: its time, its charts, its page."""

import asyncio
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from replicator.backoff import Backoff
from replicator.errors import InputError, UnreachableError

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(scope="module", autouse=True)
def _bench_on_path():
    sys.path.insert(0, str(BENCH))
    yield
    sys.path.remove(str(BENCH))


def test_a_part_has_its_share_and_what_others_left_over():
    from budget import Budget

    now = [0.0]
    budget = Budget(seconds=100, weights={"a": 1, "b": 1, "c": 2}, now=lambda: now[0])
    first = budget.share("a")
    assert first.left == 25
    now[0] = 5.0
    assert budget.share("b").left == pytest.approx(95 / 3)
    now[0] = 90.0
    last = budget.share("c")
    assert last.left == 10
    now[0] = 200.0
    assert last.left == 0
    assert not last.fits(1)


def test_runs_measure_shorter_before_one_is_dropped():
    from budget import most_seconds

    assert most_seconds(left=100, runs=5, overhead=10, least=5, longest=30) == 10
    assert most_seconds(left=1000, runs=5, overhead=10, least=5, longest=30) == 30
    assert most_seconds(left=0, runs=5, overhead=10, least=5, longest=30) == 5


def test_a_chart_is_a_whole_document_with_every_bar_within_it():
    from charts import Bar, Group, bar_chart

    groups = [
        Group("100 B & more", (Bar("MM2 tuned", 1.0, "1 x"), Bar("batches", 0.03, "0.03 x"))),
        Group("nothing", (Bar("records", 0.0, "none"),)),
    ]
    for logarithmic in (False, True):
        drawn = bar_chart("CPU <per record>", groups, logarithmic=logarithmic)
        root = ET.fromstring(drawn)  # noqa: S314 # our own text
        width, height = float(root.get("width")), float(root.get("height"))
        bars = [each for each in root.iter() if each.tag.endswith("rect")]
        assert len(bars) == 3 + 3  # and those of the legend
        for each in bars:
            assert 0 < float(each.get("width")) <= width - float(each.get("x"))
            assert float(each.get("y")) + float(each.get("height")) <= height
    assert "prefers-color-scheme:dark" in drawn


def test_every_contender_names_its_engine():
    import cases
    from replicator_run import Replicator

    planned = [each for _, those in cases.throughput_cases(quick=False) for each in those]
    named = {each.engine for each in planned if isinstance(each, Replicator)}
    assert named == {"batches", "records"}
    quick = [payload.label for payload, _ in cases.throughput_cases(quick=True)]
    assert len(quick) == len(set(quick)) == 10
    one = cases.throughput_cases(quick=True, only="64 partitions")
    assert [payload.partitions for payload, _ in one] == [64]


def test_every_payload_and_pace_is_judged_by_names_that_are_measured():
    import cases
    import judging
    import latency
    import throughput
    from progress import Copy

    copy = Copy(1e6, 1.0, 1.0, 2.0, 100, 10)
    results = [
        throughput.Result(contender.name, payload.label, (copy,), counted=1)
        for payload, those in cases.throughput_cases(quick=False)
        for contender in those
    ]
    verdicts = judging.of_throughput(results)
    assert len({each.what for each in verdicts}) == len(verdicts) == 2 + 1 + 12 + 2 + 2 + 2
    delays = [
        latency.Result(each.name, pace.label, p50_seconds=0.1, p99_seconds=0.2, p999_seconds=0.3)
        for pace in (cases.SLOW, cases.FAST)
        for each in cases.latency_contenders(quick=True)
    ]
    assert [each.reached for each in judging.of_latency(delays)] == [False, True, True, True] * 2
    three = [
        latency.Result(each.name, cases.SLOW.label, p50_seconds=0.1, p99_seconds=0.2)
        for each in cases.contenders_of_three_brokers()
    ]
    verdicts = judging.of_latency(three, where=", three brokers")
    assert [each.reached for each in verdicts] == [False, True]
    assert all("three brokers: p99" in each.what for each in verdicts)


def test_a_contender_that_failed_reached_nothing():
    import judging
    import startup
    import wan

    results = [
        wan.Result(0.01, wan.PLAIN, of_cap=0.02, to_plain=1.0),
        wan.Result(0.01, "replicator records, exactly-once, 1 lane", failure="nothing came"),
        wan.Result(0.01, "replicator batches, exactly-once, 1 lane", of_cap=0.2, to_plain=10.0),
    ]
    found = judging.of_wan(results)
    assert [(each.measured, each.reached) for each in found] == [
        ("failed", False),
        ("10.0 x", True),
    ]
    assert found[0].bound == "one plain connection has 0.02 of the line's rate"
    (start,) = judging.of_starts([startup.Result("replicator records", "cold start")])
    assert (start.measured, start.reached) == ("failed", False)


def test_a_section_is_replaced_and_the_notes_around_it_stay():
    from report import put_section

    page = put_section(
        "before\n\n<!-- bench:a -->\nold\n<!-- /bench:a -->\n\nafter\n", name="a", body="new"
    )
    assert page == "before\n\n<!-- bench:a -->\nnew\n<!-- /bench:a -->\n\nafter\n"
    assert put_section(page, name="b", body="more").endswith(
        "<!-- bench:b -->\nmore\n<!-- /bench:b -->\n"
    )


class Passing:
    """A step that fails so often before it succeeds."""

    def __init__(self, *errors):
        self.errors = list(errors)

    async def __call__(self):
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def test_many_topics_are_tried_again_as_a_worker_would_and_it_is_counted(capsys):
    from scale_brokers import Retries

    retries = Retries(Backoff(0.0, 0.0))
    late = [UnreachableError("no answer yet", subject="cluster:west") for _ in range(3)]
    assert asyncio.run(retries.until_done(Passing(*late))) == "done"
    assert retries.count == 3
    assert capsys.readouterr().err.count("tried again: cluster:west: no answer yet.") == 3


def test_what_does_not_pass_ends_the_benchmark():
    from scale_brokers import MOST_FAILURES, Retries

    for errors in ([InputError("wrong")], [UnreachableError("never")] * (MOST_FAILURES + 1)):
        retries = Retries(Backoff(0.0, 0.0))
        with pytest.raises(type(errors[0])):
            asyncio.run(retries.until_done(Passing(*errors)))
        assert retries.count == len(errors) - 1
