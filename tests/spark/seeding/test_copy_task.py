"""What a task does with a range, and how a partition goes from lanes to tasks and back; no Spark."""

import pytest
from seed_lab import SeedLab

from replicator.control.seeding import hand_back
from replicator.errors import RefusedError
from replicator.spark.copy_task import copy_order


def test_a_range_is_copied_and_ends_with_its_last_checkpoint(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=2)
    lab.produce(1000, partitions=2)
    lab.applied()
    orders = lab.taken()
    assert {(o.work.partition, o.start, o.end) for o in orders} == {(0, 0, 500), (1, 0, 500)}
    assert set(lab.states().values()) == {"seeding"}
    results = [copy_order(order) for order in orders]
    assert [(r.records, r.position, r.problem) for r in results] == [(500, 500, "")] * 2
    assert set(lab.states().values()) == {"done"}
    assert lab.positions() == {(lab.topic, 0): 500, (lab.topic, 1): 500}
    assert len(lab.values(lab.target)[0]) == 500
    assert lab.values(lab.target) == lab.values(lab.source)
    assert lab.survey().ranges == ()


def test_a_task_that_runs_again_finds_the_range_done(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(200)
    lab.applied()
    (order,) = lab.taken()
    first = copy_order(order)
    again = copy_order(order)
    assert (again.records, again.checksum, again.position) == (200, first.checksum, 200)
    assert lab.values(lab.target) == lab.values(lab.source)


def test_a_task_of_an_older_run_may_not_copy(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(200)
    lab.applied()
    (old,) = lab.taken(run="job.1")
    (new,) = lab.taken(run="job.2")
    with pytest.raises(RefusedError):
        copy_order(old)
    assert copy_order(new).records == 200


def test_what_is_handed_back_stays_where_it_is_and_tasks_may_not_go_on(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(200)
    lab.applied()
    (order,) = lab.taken()
    seeds = lab.control().seeds("east")
    hand_back(lab.plan, lab.pair, seeds, clock=lab.clock)
    assert set(lab.states().values()) == {"done"}
    with_run = lab.control().seeds("east")[0]
    assert (with_run.position, with_run.records) == (0, 0)
    assert copy_order(order).records == 0
    assert lab.positions() == {}
