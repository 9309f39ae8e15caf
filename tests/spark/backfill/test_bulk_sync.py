"""History copied by Spark beside live workers, judged by the history checker."""

import json

import pytest
from seed_lab import SeedLab

from replicator.clock import SystemClock
from replicator.spark.bulk.latest_values import records_of
from replicator.spark.bulk.run import run_bulk
from replicator.spark.copy.bulk_plan import survey
from replicator.spark.copy.tasks import SparkTasks
from replicator.testing import wait_until
from replicator.topology.file.load import require_plan

FLOW = "east->west"


def bulk(spark, file, **options):
    """What the command does, with the tests' session."""
    plan = require_plan(file)
    declared = options.pop("declared", lambda: None)
    found = survey(plan, plan.pairs[0], **options)
    assert found.ranges
    return found, run_bulk(
        SparkTasks(spark),
        plan,
        found,
        topology_file=file,
        by="test",
        clock=SystemClock(),
        declared=declared,
    )


def unthrottled(file, folder):
    """The same topology as Spark's driver has it: its tasks are not held back."""
    document = json.loads(file.read_text())
    document["spec"]["links"][0].pop("throttle")
    other = folder / "unthrottled.yaml"
    other.write_text(json.dumps(document))
    return other


def test_history_is_taken_from_running_lanes_and_given_back_while_writers_write(
    spark, east, west, scene, tmp_path
):
    scene.active_passive(east, west)
    scene.writer(east, rate=None)
    scene.written(50_000)
    writer = scene._writers.pop()
    writer.stop()
    scene.writer(east, rate=400)
    # A budget keeps the lanes from finishing history before Spark takes it from them.
    scene._links[0]["throttle"] = {"recordsPerSecond": 1_000}
    scene.worker()
    wait_until(
        lambda: sum(scene.positions(FLOW).values()) > 1_000,
        timeout_seconds=60,
        describe="lanes that copy history",
    )
    file = unthrottled(scene.topology(), tmp_path)

    def look() -> None:
        # Before its tasks start: every caller within two seconds is given the same answer.
        wait_until(
            lambda: scene.asked().status()[FLOW]["state"] == "seeding",
            timeout_seconds=30,
            describe="status that tells of seeding",
        )

    found, outcome = bulk(spark, file, declared=look)
    assert found.records > 10_000
    assert not outcome.stopped
    assert all(each["checksum"] for each in outcome.manifest["ranges"])
    assert outcome.manifest["records"] >= 0.8 * found.records
    scene._links[0].pop("throttle")
    scene.topology()
    scene.copying(FLOW)
    report = scene.settled()
    assert report.counts["acknowledged"] > 50_000


def test_the_manifest_agrees_with_what_is_on_both_sides(spark, lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=3)
    lab.produce(3_000, partitions=3)
    lab.applied()
    _, outcome = bulk(spark, lab.file)
    told = json.loads(json.dumps(outcome.manifest))
    assert told["records"] == 3_000
    assert [(r["start"], r["end"], r["records"]) for r in told["ranges"]] == [(0, 1000, 1000)] * 3
    assert len({r["checksum"] for r in told["ranges"]}) == 3
    assert lab.values(lab.target) == lab.values(lab.source)


def test_only_the_last_record_of_each_key_of_a_compacted_topic_is_copied(spark, lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=2, config={"cleanup.policy": "compact"})
    lab.source.create_topic(f"plain.{lab.topic}", partitions=1)
    # An even number of keys: each stays with one of the two partitions.
    lab.produce(2_000, partitions=2, keys=10)
    lab.produce(300, topic=f"plain.{lab.topic}", keys=3)
    lab.applied()
    _, outcome = bulk(spark, lab.file, keeps_latest=True)
    source, target = lab.values(lab.source), lab.values(lab.target)
    assert target == {number: source[number][-5:] for number in (0, 1)}
    plain = f"plain.{lab.topic}"
    assert lab.values(lab.target, plain) == lab.values(lab.source, plain)
    superseded = {(r["topic"], r["partition"]): r["superseded"] for r in outcome.manifest["ranges"]}
    assert superseded == {(lab.topic, 0): 995, (lab.topic, 1): 995, (plain, 0): 0}
    lab.produce(10, partitions=2, first=2_000, keys=10)
    assert sum(one.records for one in lab.survey().ranges) == 10


def test_last_values_of_one_partition_are_looked_for_by_several_tasks(spark, lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1, config={"cleanup.policy": "compact"})
    lab.produce(1_000, keys=10)
    lab.applied()
    records = records_of(spark, lab.taken(keeps_latest=True), topology_file=lab.file)
    assert records.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism == 2
    assert records.count() == 1_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_topic_of_two_hundred_partitions_is_copied_whole(spark, lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=200)
    lab.produce(20_000, partitions=200)
    lab.applied()
    found, outcome = bulk(spark, lab.file)
    assert len(found.ranges) == 200
    assert outcome.manifest["records"] == 20_000
    assert lab.values(lab.target) == lab.values(lab.source)
    assert set(lab.states().values()) == {"done"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_task_whose_python_worker_dies_is_done_again_where_it_was(spark, lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(30_000, size=100)
    lab.applied(throttle={"recordsPerSecond": 5_000})
    wanted = lab.taken()

    def dies_once(order):
        import os
        import threading

        from pyspark import TaskContext

        from replicator.spark.copy.task import copy_order

        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            threading.Timer(3.0, os._exit, [137]).start()
        return context.attemptNumber(), copy_order(order)

    ((attempt, result),) = (
        spark.sparkContext.parallelize(list(wanted), len(wanted)).map(dies_once).collect()
    )
    assert attempt == 1
    assert (result.records, result.position) == (30_000, 30_000)
    assert lab.values(lab.target) == lab.values(lab.source)
