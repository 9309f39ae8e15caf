"""What a task does with a range, and how a partition goes from lanes to tasks and back; no Spark."""

import threading
from dataclasses import replace

import pytest
from acceptance_worker import WorkerProcess
from confluent_kafka import Producer
from seed_lab import SeedLab
from whole_topic import read_topic

from replicator.control.backfill.handover import delete_expired, hand_back
from replicator.control.backfill.retention import KEEP_MS
from replicator.control.records.role_records import RoleRecord
from replicator.dataplane.ranges.range_patience import Patience
from replicator.errors import RefusedError, ReplicatorError
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import checkpoints_topic, control_topic
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.log_writer import LogWriter
from replicator.policy.values import Throttle
from replicator.spark.copy.task import copy_order
from replicator.wire.records.record_batch import RawRecord
from replicator.wire.requests.produce_one import produce_record


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


def test_a_finished_seed_is_forgotten_once_its_lane_has_moved_on(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(200)
    lab.applied()
    (order,) = lab.taken()
    copy_order(order)
    assert delete_expired(lab.plan, lab.pair, clock=lab.clock) == 0
    (done,) = lab.control().seeds("east")
    old = done.model_copy(update={"at_ms": done.at_ms - 2 * KEEP_MS})
    moved = Checkpoint(lab.topic, 0, offset=201, at_ms=done.at_ms)
    with LogWriter(lab.pair.target, control_topic(lab.name), client_id="test") as writer:
        writer.write([old.encode()])
    name = checkpoints_topic(lab.name, "east")
    with LogWriter(lab.pair.target, name, client_id="test") as writer:
        writer.write([(moved.key(), moved.value())], partition=order.lane)
    assert delete_expired(lab.plan, lab.pair, clock=lab.clock) == 1
    assert lab.states() == {}


def test_nothing_is_taken_for_a_link_that_was_turned(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(10)
    lab.applied()
    turned = RoleRecord(
        link="link", epoch=1, active="west", state="mirroring", since=1, by="test"
    )  # fmt: skip
    with LogWriter(lab.pair.target, control_topic(lab.name), client_id="test") as writer:
        writer.write([turned.encode()])
    with pytest.raises(RefusedError, match="does not copy in this direction"):
        lab.taken()
    assert lab.states() == {}


def test_of_two_attempts_at_a_range_one_gives_way_and_nothing_is_copied_twice(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(20_000, size=100)
    lab.applied(throttle={"recordsPerSecond": 1_000})
    (slow,) = lab.taken()
    results: list[object] = []

    def attempt() -> None:
        try:
            results.append(copy_order(slow))
        except ReplicatorError as error:
            results.append(error.code)

    first = threading.Thread(target=attempt)
    first.start()
    lab.until(lambda: lab.positions().get((lab.topic, 0), 0) > 0, "the first attempt copies")
    second = copy_order(replace(slow, throttle=Throttle()))
    first.join(60)
    assert second.position == 20_000
    assert results == ["FENCED"]
    assert lab.values(lab.target) == lab.values(lab.source)
    # The tally went on where the first attempt's last commit had left it.
    assert second.records == 20_000
    (checkpoint,) = lab.checkpoints().values()
    assert (checkpoint.records, checkpoint.ranged) == (20_000, 20_000)
    assert not checkpoint.copied_by_lanes


def test_records_of_every_kind_are_copied_as_they_are(lab: SeedLab):
    lab.source.create_topic(
        lab.topic, partitions=1, config={"max.message.bytes": "3000000", "retention.ms": "-1"}
    )
    plain = Producer({**lab.source.client_settings(), "message.max.bytes": 2_500_000})
    for key, value, headers in (
        (None, b"keyless", None),
        (b"k", None, [("h", b"1"), ("h", None)]),
        (b"", b"", None),
        (b"large", b"x" * 1_000_000, None),
    ):
        plain.produce(lab.topic, value, key, 0, timestamp=1_600_000_000_000, headers=headers)
    assert plain.flush(30) == 0
    transactional = Producer({**lab.source.client_settings(), "transactional.id": lab.name})
    transactional.init_transactions(30)
    for commits in (True, False, True, False):
        transactional.begin_transaction()
        for number in range(50):
            transactional.produce(lab.topic, b"%s %d" % (b"ok" if commits else b"no", number))
        assert transactional.flush(30) == 0
        (transactional.commit_transaction if commits else transactional.abort_transaction)(30)
    lab.applied()
    (order,) = lab.taken()
    result = copy_order(order)
    assert result.records == 104
    assert result.position == order.end  # it ends in aborted records and their marker
    source, target = lab.records(lab.source), lab.records(lab.target)
    assert target == source
    assert len(source) == 104


@pytest.mark.parametrize("policy", ["stop", "report"])
def test_retention_that_overtakes_the_copy_is_reported_by_policy(lab: SeedLab, policy):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(1_000)
    lab.applied(onTruncation=policy)
    (order,) = lab.taken()
    lab.truncate(lab.source, {0: 400})
    result = copy_order(order)
    if policy == "stop":
        assert (result.problem, result.position, result.records) == ("TRUNCATED", 0, 0)
        assert "offsets 0 to 399 vanished" in result.detail
        assert lab.values(lab.target)[0] == []
    else:
        assert (result.problem, result.position, result.records) == ("", 1_000, 600)
        assert "offsets 0 to 399 vanished" in result.gaps[0]
    assert lab.states() == {(lab.topic, 0): "done"}


def test_what_is_committed_behind_an_open_transaction_is_not_missed(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.applied()
    name = checkpoints_topic(lab.name, "east")
    cluster = lab.pair.target
    open_one, other = (
        Producer({**lab.target.client_settings(), "transactional.id": f"{lab.name}-{n}"})
        for n in (1, 2)
    )
    for producer in (open_one, other):
        producer.init_transactions(30)
        producer.begin_transaction()
    open_one.produce(name, b"{}", b"open", 0)
    assert open_one.flush(30) == 0
    other.produce(name, b"{}", b"behind", 0)
    other.commit_transaction(30)
    assert read_compacted(cluster, name, client_id="test")[0] == {}
    timer = threading.Timer(1.0, open_one.abort_transaction, [30])
    timer.start()
    found = read_compacted(
        cluster, name, client_id="test", timeout_seconds=30, past_open_transactions=True
    )
    timer.join()
    assert found[0] == {b"behind": b"{}"}


@pytest.mark.slow
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_broker_that_is_killed_in_the_middle_is_waited_for(clusters, unique, tmp_path, side):
    lab = SeedLab(*clusters("east", "west"), unique, tmp_path)
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(20_000, size=100)
    lab.applied(throttle={"recordsPerSecond": 4_000})
    (order,) = lab.taken()
    results: list[object] = []
    copying = threading.Thread(target=lambda: results.append(copy_order(order)))
    copying.start()
    lab.until(lambda: lab.positions().get((lab.topic, 0), 0) > 0, "the copy to begin")
    broken = getattr(lab, side)
    broken.kill()
    broken.restart()
    copying.join(120)
    (result,) = results
    assert (result.records, result.position) == (20_000, 20_000)
    assert lab.values(lab.target) == lab.values(lab.source)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_cluster_that_stays_away_is_named_and_the_range_given_up(
    clusters, unique, tmp_path, side
):
    lab = SeedLab(*clusters("east", "west"), unique, tmp_path)
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(20_000, size=5_000)  # more than a reader has fetched before its turn
    lab.applied(throttle={"recordsPerSecond": 4_000})
    (order,) = lab.taken()
    failed: list[ReplicatorError] = []

    def attempt() -> None:
        try:
            copy_order(order, patience=Patience(seconds=5.0))
        except ReplicatorError as error:
            failed.append(error)

    copying = threading.Thread(target=attempt, daemon=True)
    copying.start()
    lab.until(lambda: lab.positions().get((lab.topic, 0), 0) > 0, "the copy to begin")
    broken = getattr(lab, side)
    broken.kill()
    copying.join(120)
    (error,) = failed
    assert error.code == "UNREACHABLE"
    assert f"cluster {broken.name}" in error.paragraph()
    broken.restart()
    again = copy_order(order)
    assert (again.records, again.position) == (20_000, 20_000)
    assert lab.values(lab.target) == lab.values(lab.source)


def test_a_range_of_a_flow_of_whole_batches_is_copied_in_whole_batches(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=2)
    lab.produce(4_000, partitions=2, size=100, **{"compression.type": "lz4"})
    lab.applied(engine="batches", naming="prefix")
    orders = lab.taken()
    results = [copy_order(order) for order in orders]
    assert [(r.records, r.position, r.problem) for r in results] == [(2_000, 2_000, "")] * 2
    assert all(r.checksum.startswith("batches:") for r in results)
    assert len({r.checksum for r in results}) == 2
    assert set(lab.states().values()) == {"done"}
    assert lab.positions() == {(lab.topic, 0): 2_000, (lab.topic, 1): 2_000}
    assert lab.values(lab.target, f"east.{lab.topic}") == lab.values(lab.source)
    assert not any(message.headers() for message in read_topic(lab.target, f"east.{lab.topic}"))
    again = copy_order(orders[0])
    assert (again.records, again.checksum) == (2_000, results[0].checksum)
    assert lab.values(lab.target, f"east.{lab.topic}") == lab.values(lab.source)


def test_a_lane_behind_ranges_begins_with_whole_batches(lab: SeedLab, tmp_path):
    lab.source.create_topic(lab.topic, partitions=2)
    lab.produce(2_000, partitions=2)
    lab.applied(engine="batches", naming="prefix")
    copy = f"east.{lab.topic}"
    of_batches, by_records = lab.taken()
    copy_order(of_batches)
    copy_order(replace(by_records, settings=replace(by_records.settings, engine="records")))
    copies = read_topic(lab.target, copy)
    assert {each.partition() for each in copies if each.headers()} == {by_records.work.partition}

    for partition in (0, 1):
        produce_record(
            lab.pair.source, lab.topic, partition, RawRecord(0, 0, "CreateTime", None, b"next")
        )
    worker = WorkerProcess(lab.file, log=tmp_path / "worker.log", options=("--processes", "1"))
    try:
        lab.until(
            lambda: set(lab.positions().values()) == {1_001},
            lambda: f"what one record at a time cannot carry\n{worker.log_tail()}",
        )
    finally:
        worker.end()
    assert [each.quarantined for each in lab.checkpoints().values()] == [0, 0], worker.log_tail()
    assert [each.ranged for each in lab.checkpoints().values()] == [1_000, 1_000]
    newest = [each for each in read_topic(lab.target, copy) if each.value() == b"next"]
    assert [(each.timestamp()[1], each.headers()) for each in newest] == [(0, None)] * 2


def test_of_two_attempts_at_a_range_of_whole_batches_one_gives_way(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=1)
    lab.produce(60_000, size=100)
    lab.applied(engine="batches", naming="prefix")
    (order,) = lab.taken()
    slow = replace(order, throttle=Throttle(records_per_second=20_000))
    ended: list[object] = []

    def attempt() -> None:
        try:
            ended.append(copy_order(slow))
        except ReplicatorError as error:
            ended.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(ended) == 2
    done = [each for each in ended if not isinstance(each, ReplicatorError)]
    assert done, ended
    assert {each.records for each in done} == {60_000}
    assert lab.values(lab.target, f"east.{lab.topic}") == lab.values(lab.source)
