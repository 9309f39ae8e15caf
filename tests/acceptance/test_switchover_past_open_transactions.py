"""A switchover ends what an application left open, where it is told to."""

import pytest
from confluent_kafka import KafkaException, Producer
from role_changes import Operator

pytestmark = pytest.mark.slow


def test_an_open_transaction_is_aborted_and_the_link_turns_with_nothing_lost(east, west, scene):
    scene.active_passive(east, west, fencing={"method": "manual"})
    scene.worker()
    writer = scene.writer(east, rate=200)
    scene.copying("east->west")
    app = Producer(
        {**east.client_settings(), "transactional.id": f"{scene.name}-app",
         "transaction.timeout.ms": 600_000}
    )  # fmt: skip
    app.init_transactions(20)
    app.begin_transaction()
    app.produce(scene.topic, b"never committed", partition=0)
    assert app.flush(20) == 0
    writer.wait_acked(400)
    operator = Operator(scene)
    operator.on = {("fence", "began"): writer.stop}
    report = operator.run("switchover", to="west", drain_seconds=5.0)
    assert report.outcome == "rolled-back", report
    assert f"transaction {scene.name}-app is open on {scene.topic}/0" in report.reason

    report = operator.run("switchover", to="west", open_transactions="fence")
    assert (report.outcome, report.epoch) == ("done", 1), report
    with pytest.raises(KafkaException):
        app.commit_transaction(20)
    scene.expect("west->east")
    scene.writer(west, rate=200).wait_acked(200)
    scene.copying("west->east")
    scene.settled()
