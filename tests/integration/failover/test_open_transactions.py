"""What lies behind an open transaction is neither copied nor lost: it is waited for, ended or named."""

import pytest
from confluent_kafka import KafkaException, Producer
from exported_tail import read_export
from link_lab import evidence, failed

from replicator.errors import RefusedError
from replicator.wire.requests.open_transactions import open_transactions


def left_open(lab, cluster, *, partition=0, records=3):
    """An application's transaction that nobody ends."""
    producer = Producer(
        {**cluster.client_settings(), "transactional.id": f"{lab.name}-app",
         "transaction.timeout.ms": 600_000}
    )  # fmt: skip
    producer.init_transactions(20)
    producer.begin_transaction()
    for number in range(records):
        producer.produce(lab.topic, f"open-{number}".encode(), partition=partition)
    assert producer.flush(20) == 0
    return producer


def test_a_tail_is_not_read_past_an_open_transaction_until_it_ended(link):
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    lab.role("west", "promoted", 1)
    app = left_open(lab, lab.east)
    lab.write(lab.east, 2)  # acknowledged, behind it
    options = {"export": lab.directory, "and_switch": False}
    with pytest.raises(RefusedError, match=f"transaction {lab.name}-app is open on") as refused:
        lab.run("failback", open_transactions="refuse", **options)
    assert "--open-transactions fence" in refused.value.remedy

    report = lab.run("failback", resume=True, open_transactions="fence", **options)
    assert (report.outcome, report.loss.records, report.loss.exact) == ("done", 2, True), report
    assert evidence(report, "salvage")["aborted"] == [f"{lab.name}-app"]
    (exported,) = lab.directory.glob("*.jsonl")
    assert [one.value for one in read_export(exported)] == [b"v-0", b"v-1"]
    with pytest.raises(KafkaException):
        app.commit_transaction(20)


def test_a_switchover_names_them_first_and_refuses_if_asked_to(link):
    lab = link(fencing={"method": "manual"})
    lab.apply({0: 5, 1: 5}, records=5)
    app = left_open(lab, lab.east, partition=1)
    check = failed(lab.run("switchover", dry_run=True, open_transactions="refuse"))
    assert f"{lab.name}-app is open on {lab.topic}/1 from 5" in check["open transactions"].detail
    waiting = lab.run("switchover", dry_run=True)
    (seen,) = (one for one in waiting.checks if one.check == "open transactions")
    assert seen.ok
    assert "waits for them" in seen.detail
    loss = lab.run("failover", dry_run=True).loss
    assert (loss.records, loss.exact) == (3, False)  # at most: they may still be aborted
    app.abort_transaction(20)
    assert open_transactions(lab.plan.cluster("east"), [(lab.topic, 1)], client_id="test") == ()
