import pytest

from replicator.cli.roles.history import _text
from replicator.control.records.drill_records import DrillRecord
from replicator.control.records.worker_records import FlowRates, WorkerRecord
from replicator.control.status.workers import newest_canary
from replicator.control.store.state import EMPTY
from replicator.control.store.worker_record import with_canaries
from replicator.observability.snapshot import TaskMetrics

DRILL = DrillRecord(
    id="20260101-000000-weekly-a1b2", link="orders-dr", name="weekly", drill="failover",
    flow="east->west", mode="real", verdict="fail", rto_seconds=None, lost_records=1_204,
    lost_seconds=3.2, reread_records=40, skipped_records=0, number=4, checksum="8" * 64,
    previous="7" * 64, plan_hash="p", drill_hash="d", at_ms=1_767_225_600_000, by="cron@k8s",
    trouble="aborted: the lag is 61.0 s, maxLagSeconds is 60",
)  # fmt: skip
CHANGE = {
    "id": "t-1", "kind": "switchover", "link": "orders-dr", "from": "west", "to": "east",
    "epoch": 3, "outcome": "done", "reason": "", "at": 1_767_225_500_000, "by": "alice",
    "loss": {"records": 0, "seconds": 0, "topics": []}, "rtoSeconds": 2.94, "fencing": "acl",
}  # fmt: skip


def shown(entries):
    from io import StringIO

    from rich.console import Console

    sink = StringIO()
    Console(file=sink, width=80).print(_text(entries), markup=False)
    return sink.getvalue()


def test_history_shows_role_changes_and_drills_within_80_columns():
    words = shown([CHANGE, DRILL.entry()])
    for said in (
        "2026-01-01 00:00:00Z  drill  orders-dr  failover (east->west)  fail",
        "by cron@k8s, never ended, 1,204 records lost, 40 read again",
        "checksum 8888888888888888", "aborted: the lag is 61.0 s",
        "switchover  orders-dr  west -> east, epoch 3  done",
        "by alice, interrupted 2.9 s, nothing lost, fencing acl",
    ):  # fmt: skip
        assert said in words
    assert max(map(len, words.splitlines())) <= 80


def test_an_empty_history_says_so():
    assert "No role change" in shown([])


def test_the_digest_of_a_drill_survives_the_control_topic():
    held = EMPTY.fold([DRILL.encode()])
    (record,) = held.drills()
    assert record == DRILL
    assert held.same_orders(EMPTY)  # it orders nothing of a lane
    entry = record.entry()
    assert (entry["kind"], entry["drill"], entry["rtoSeconds"]) == ("drill", "failover", None)
    assert (entry["at"], entry["lostRecords"]) == (1_767_225_600_000, 1_204)


def figures(at_ms, seconds=0.118, lost=0):
    return TaskMetrics(canary_at_ms=at_ms, canary_last_seconds=seconds, canary_lost=lost)


def test_a_controller_reports_its_canaries_beside_its_rates():
    rates = (FlowRates(link="a", records_per_second=5.0),)
    told = with_canaries(
        rates, {"a": figures(1_000, lost=2), "b": figures(2_000), "c": figures(-1)}
    )
    by_link = {rate.link: rate for rate in told}
    assert by_link["a"].records_per_second == 5.0
    assert (by_link["a"].canary.round_trip_seconds, by_link["a"].canary.lost) == (0.118, 2)
    assert by_link["b"].canary.at_ms == 2_000
    assert "c" not in by_link
    assert with_canaries(rates, None) == rates


@pytest.mark.parametrize(("ages", "expected"), [((), None), ((5_000, 1_000), 1.0)])
def test_status_shows_the_newest_canary_of_any_worker(ages, expected):
    now = 100_000
    rates = [rate for age in ages for rate in with_canaries((), {"l": figures(now - age)})]
    found = newest_canary([FlowRates(link="l"), *rates], now)
    assert (found and found["ageSeconds"]) == expected


def test_workers_of_older_releases_say_nothing_of_canaries():
    record = WorkerRecord.model_validate(
        {"source": "east", "id": "w", "at": 1, "flows": [{"link": "l", "recordsPerSecond": 1.0}]}
    )
    assert record.flows[0].canary is None
