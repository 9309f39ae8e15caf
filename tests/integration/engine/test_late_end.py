"""A request that ends a transaction comes a second time, while the next transaction is open."""

import itertools

import pytest
from proxied_lab import ProxiedLab

from replicator.kafka.logs import coordinator_watch
from replicator.testing import ProtocolProxy, Recorder, Writer, check, scan, wait_until
from replicator.testing.checker.anomalies import Anomaly
from replicator.testing.faults.protocol_rules import Api, Hold, Match, Rule

SECONDS = 30
LATE = Rule(Match(Api.END_TXN), Hold(until=Match(Api.PRODUCE)))
"""The first end is held and its repetition answered; it arrives once the next transaction writes."""


def judged(lab, proxy, history, rounds, **settings):
    """Copies under load while so many ends come late; returns the verdict and the lane."""
    topic = lab.topic()
    running = lab.lane(topic, commit_interval_seconds=0.1, **settings)
    with Recorder(history) as recorder:
        recorder.expect(["east->west"])
        writer = Writer(lab.source, [topic], history=recorder, rate_per_second=200, seed=7).start()
        for _ in range(rounds):
            came = proxy.delivered
            proxy.play([LATE])
            wait_until(
                lambda came=came: proxy.delivered > came or not running.lane.is_alive(),
                timeout_seconds=SECONDS,
                describe=lambda: f"a late end; {running.stats} {running.log[-3:]}",
            )
        writer.stop()
        lab.caught_up(running)
        for cluster in (lab.source, lab.target):
            scan(cluster, [topic], history=recorder)
        report = check(recorder.events())
    running.stop()
    return report, running


@pytest.fixture
def late(east, west, unique):
    with ProtocolProxy(west.bootstrap_servers) as proxy:
        names = (f"{unique}-{number}" for number in itertools.count())

        def run(history, rounds, **settings):
            lab = ProxiedLab(east, west, name=next(names)).through(proxy)
            try:
                return judged(lab, proxy, history, rounds, **settings)
            finally:
                lab.close()

        yield run


@pytest.mark.timeout(300)
def test_a_late_end_ends_nothing_but_its_own_transaction(late, tmp_path, monkeypatch):
    report, running = late(tmp_path / "watched.jsonl", 6)
    assert report.clean, report.paragraph()
    assert running.stats.unknown_outcomes >= 6

    monkeypatch.setattr(coordinator_watch, "end_in_doubt", lambda **_: False)
    # A late end does harm where it comes between two writes of a transaction, which not each of them does.
    for number in range(8):
        report, _ = late(tmp_path / f"naive-{number}.jsonl", 5)
        if not report.clean:
            break
    assert not report.clean
    assert {finding.anomaly for finding in report.findings} <= {Anomaly.DUPLICATE, Anomaly.LOST}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_late_end_of_whole_batches_ends_nothing_but_its_own_transaction(late, tmp_path):
    report, running = late(tmp_path / "batches.jsonl", 2, engine="batches", provenance="path")
    assert report.clean, report.paragraph()
    assert running.stats.unknown_outcomes >= 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_hundred_late_ends_repeat_nothing(late, tmp_path):
    report, running = late(tmp_path / "history.jsonl", 200)
    assert report.clean, report.paragraph()
    assert running.stats.unknown_outcomes >= 200
