"""``bulkSync`` on a link: a worker has history copied by itself, and goes on live."""

import pytest

from replicator.testing import wait_until

FLOW = "east->west"


@pytest.mark.slow
@pytest.mark.timeout(600)  # its child brings a Spark of its own, which a busy machine starts slowly
def test_a_worker_has_history_copied_by_spark_before_its_lanes_begin(
    east, west, scene, monkeypatch
):
    monkeypatch.setenv("REPLICATOR_SPARK_MASTER", "local[2]")
    scene.active_passive(east, west, bulkSync={"mode": "always"})
    scene.writer(east, rate=300)
    scene.written(2_000)
    worker = scene.worker()
    wait_until(
        lambda: scene.asked().status()[FLOW]["state"] == "seeding",
        timeout_seconds=60,
        describe=lambda: f"a flow that is seeding: {scene.asked().status()}",
    )
    wait_until(
        lambda: scene.asked().status()[FLOW]["state"] == "replicating",
        timeout_seconds=400,
        describe=lambda: f"a flow that is live: {scene.asked().status()} {worker.log_tail()}",
    )
    scene.copying(FLOW)
    scene.settled()
    said = [line for line in worker.log_lines() if line.get("event") == "history is copied in bulk"]
    assert len(said) == 1
