"""A flow that Spark runs: moved from workers to a stream and back under load, judged by the checker."""

import threading

import pytest
from seed_lab import SeedLab

from replicator.clock import SystemClock
from replicator.spark.stream.driver import FlowStream
from replicator.testing import wait_until

FLOW = "east->west"


class RunningStream:
    """What the command does, with the tests' session and in a thread."""

    def __init__(self, spark, file):
        self.stopping = threading.Event()
        self.failed: list[BaseException] = []
        self.stream = FlowStream(spark, file, FLOW, by="test", clock=SystemClock())
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        try:
            self.stream.serve(interval_seconds=1.0, stopping=self.stopping)
        except BaseException as error:
            self.failed.append(error)
            raise

    def stop(self):
        self.stopping.set()
        self.thread.join(90)
        assert not self.thread.is_alive()
        assert not self.failed, self.failed


def test_a_flow_moves_from_workers_to_spark_and_back_without_loss_or_repetition(
    spark, east, west, scene
):
    scene.active_passive(east, west)
    scene.writer(east, rate=400)
    scene.worker()
    scene.copying(FLOW)
    scene._links[0]["runtime"] = "spark"
    stream = RunningStream(spark, scene.topology())
    wait_until(
        lambda: (
            scene.asked().status()[FLOW]["state"] == "replicating"
            and not stream.failed
            and scene.asked().status()[FLOW]["reason"].endswith("partitions moving")
        ),
        timeout_seconds=90,
        describe=lambda: f"a stream that runs the flow: {scene.asked().status()} {stream.failed}",
    )
    scene.copying(FLOW)
    stream.stop()
    wait_until(
        lambda: scene.asked().status()[FLOW]["state"] == "stopped",
        timeout_seconds=30,
        describe=lambda: f"a flow that nothing runs: {scene.asked().status()}",
    )
    scene._links[0]["runtime"] = "workers"
    scene.topology()
    scene.copying(FLOW)
    scene.settled()


@pytest.mark.slow
def test_a_stream_reports_what_it_copied_within_a_micro_batch(spark, lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(6_000, size=100)
    lab.applied(runtime="spark", throttle={"recordsPerSecond": 200})
    stream = RunningStream(spark, lab.file)
    wait_until(
        lambda: stream.stream.copied[0] > 0 or stream.failed,
        timeout_seconds=60,
        describe=lambda: f"records of the first micro-batch {stream.failed}",
    )
    records, size = stream.stream.copied
    assert 0 < records < 6_000
    assert size > 100 * records
    assert max(lab.positions().values()) < 6_000  # its only range has not ended
    lab.topology(runtime="workers")  # which ends it in the middle, as an operator does
    stream.thread.join(90)
    assert not stream.thread.is_alive()
    assert stream.stream.copied[0] >= records
