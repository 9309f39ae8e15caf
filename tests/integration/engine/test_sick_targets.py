"""Partitions of the target with too few replicas in sync, or no leader, beside others that are well.

Under exactly-once the transaction of a lane cannot end while such a partition is in it: then the lane says
so and waits. It need not where it has no transactions, or where the partition was sick before it was written.
"""

import json
import time

import pytest
from confluent_kafka.admin import NewTopic
from lane_lab import LaneLab, numbers

from replicator.dataplane.lane import periodic_checks
from replicator.identifiers import checkpoints_topic, quarantine_topic
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.log_writer import LogWriter
from replicator.testing import LocalCluster, start_all

pytestmark = pytest.mark.slow

BATCHES = {"engine": "batches", "provenance": "path"}
ENGINES = pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
FLOW = "east->west"
NAMED_SECONDS = 10.0
SESSION_SECONDS = 6.0
"""After so long the kit's clusters notice that a broker is dead."""
DIES, STAYS, OTHER = 1, 0, 2
LARGE = b"x" * 4000


@pytest.fixture(scope="module")
def three():
    cluster = LocalCluster("west", brokers=3)
    start_all((cluster,))
    yield cluster
    cluster.stop()


@pytest.fixture
def sick_lab(east, three, unique):
    lab = LaneLab(east, three, name=unique)
    yield lab
    lab.close()
    three.restart(DIES)


def topics(lab: LaneLab) -> tuple[str, str, str]:
    """Of one with too few replicas once a broker is gone, one without a leader then, one that is well."""
    placed = {"few": [STAYS, DIES], "none": [DIES], "well": [STAYS, OTHER]}
    new = []
    for name, replicas in placed.items():
        lab.source.create_topic(f"{name}.{lab.name}")
        new.append(
            NewTopic(
                f"{name}.{lab.name}",
                num_partitions=1,
                replica_assignment=[replicas],
                config={"min.insync.replicas": str(len(replicas))},
            )
        )
    for created in lab.target.admin().create_topics(new).values():
        created.result(30)
    return tuple(f"{name}.{lab.name}" for name in placed)


def failure(lane, topic):
    found = lane.partition(topic)
    return None if found is None else found.failure


def named(lab, lane, sick):
    """Waits until the sick ones, and they alone, are named with what is wrong."""
    for topic, word in zip(sick, ("in sync", "no leader"), strict=True):
        found = lab.until(
            lambda topic=topic, word=word: named_with(lane, topic, word),
            f"{topic} to be named with '{word}'", lane,
        )  # fmt: skip
        assert found.side == "target"
        assert found.remedy


def named_with(lane, topic, word):
    """The failure, once it is that one: the broker that died may have been asked something as well."""
    found = failure(lane, topic)
    return found if found is not None and word in found.detail else None


def loses_a_broker(lab, lane, names):
    """The target loses a broker while the lane copies; its sick partitions are named in time."""
    *sick, _ = names
    for topic in names:
        lab.numbered(topic, range(10))
    lab.caught_up(lane)
    lab.target.kill(DIES)
    for topic in names:
        lab.numbered(topic, range(10, 20))
    lab.until(lambda: sick_by_metadata(lab, sick), "the cluster to miss the broker")
    began = time.monotonic()
    named(lab, lane, sick)
    assert time.monotonic() - began < NAMED_SECONDS


def stored_with_markers(lab, names):
    """A transaction whose markers do not stand everywhere yet could not end without the broker."""
    for topic in names:
        assert lab.values(topic) == numbers(range(10))


def in_order(values):
    return list(dict.fromkeys(values))


def all_is_well_again(lab, lane, names, count):
    lab.target.restart(DIES)
    lab.caught_up(lane)
    lab.until(lambda: not any(failure(lane, each) for each in names), "the failures to end", lane)
    for topic in names:
        assert in_order(lab.values(topic)) == numbers(range(count))


@ENGINES
def test_without_transactions_the_other_partitions_of_a_running_lane_go_on(sick_lab, engine):
    lab = sick_lab
    *sick, well = names = topics(lab)
    lane = lab.lane(*names, delivery="at-least-once", **engine)
    loses_a_broker(lab, lane, names)
    lab.numbered(well, range(20, 30))
    lab.caught_up(lane, well)
    assert failure(lane, well) is None
    for topic in sick:
        lab.numbered(topic, range(20, 30))
    all_is_well_again(lab, lane, names, 30)


@ENGINES
def test_a_lane_whose_transaction_cannot_end_says_why_and_goes_on_when_it_can(sick_lab, engine):
    lab = sick_lab
    *_, well = names = topics(lab)
    lane = lab.lane(*names, **engine)
    loses_a_broker(lab, lane, names)
    assert failure(lane, well) is None
    lane.stop()
    lane = lab.lane(*names, **engine)  # its id is held: that is why it cannot begin
    lab.until(lambda: "in sync" in lane.stats.target_problem, "what holds its id", lane)
    all_is_well_again(lab, lane, names, 20)
    for topic in names:
        assert lab.values(topic) == numbers(range(20))


@ENGINES
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_lane_that_starts_leaves_out_what_takes_no_writes(sick_lab, engine, delivery):
    lab = sick_lab
    *sick, well = names = topics(lab)
    for topic in names:
        lab.numbered(topic, range(10))
    lab.copied(*names, delivery=delivery, **engine)
    stored_with_markers(lab, names)
    lab.target.kill(DIES)
    lab.until(lambda: sick_by_metadata(lab, sick), "the cluster to miss the broker")
    for topic in names:
        lab.numbered(topic, range(10, 20))
    lane = lab.lane(*names, delivery=delivery, **engine)
    lab.caught_up(lane, well)
    began = time.monotonic()
    named(lab, lane, sick)
    assert time.monotonic() - began < NAMED_SECONDS
    assert lane.stats.aborts == 0
    lab.numbered(well, range(20, 30))
    lab.caught_up(lane, well)
    for topic in sick:
        lab.numbered(topic, range(20, 30))
    all_is_well_again(lab, lane, names, 30)
    if delivery == "exactly-once":
        assert all(lab.values(topic) == numbers(range(30)) for topic in names)


@ENGINES
def test_partitions_without_traffic_are_set_aside_before_a_record_comes(
    sick_lab, engine, monkeypatch
):
    monkeypatch.setattr(periodic_checks, "CHECK_TARGETS_SECONDS", 1.0)
    lab = sick_lab
    *sick, well = names = topics(lab)
    lane = lab.lane(*names, **engine)
    for topic in names:
        lab.numbered(topic, range(10))
    lab.caught_up(lane)
    stored_with_markers(lab, names)
    lab.target.kill(DIES)
    named(lab, lane, sick)
    for topic in names:
        lab.numbered(topic, range(10, 20))
    lab.caught_up(lane, well)
    assert lane.stats.aborts == 0, lane.log
    all_is_well_again(lab, lane, names, 20)

    lab.target.kill(DIES)
    named(lab, lane, sick)
    all_is_well_again(lab, lane, names, 20)  # also where no record came meanwhile


def test_a_log_is_read_to_its_end_as_soon_as_its_dead_leader_is_replaced(sick_lab, unique):
    cluster = sick_lab.target
    new = NewTopic(f"log.{unique}", num_partitions=1, replica_assignment=[[DIES, STAYS]],
                   config={"min.insync.replicas": "1", "cleanup.policy": "compact"})  # fmt: skip
    cluster.admin().create_topics([new])[new.topic].result(30)
    plan = sick_lab.plan(cluster, "west")
    with LogWriter(plan, new.topic, client_id="test", transactional_id=unique) as writer:
        writer.write([(b"%d" % number, b"value") for number in range(100)])
    cluster.kill(DIES)
    began = time.monotonic()
    # Whom it asks first does not know of the death yet.
    found = read_compacted(plan, new.topic, client_id="test", timeout_seconds=60)
    assert len(found[0]) == 100
    assert time.monotonic() - began < SESSION_SECONDS + NAMED_SECONDS


@pytest.mark.parametrize(
    "settings",
    [{}, {"delivery": "at-least-once"}, BATCHES, {"delivery": "at-least-once", **BATCHES}],
    ids=["records", "records at least once", "batches", "batches at least once"],
)
def test_a_lane_whose_checkpoints_cannot_be_written_says_so(sick_lab, settings):
    lab = sick_lab
    place = checkpoints_topic(lab.name, "east")
    new = NewTopic(
        place,
        num_partitions=1,
        replica_assignment=[[STAYS, DIES]],
        config={"min.insync.replicas": "2", "cleanup.policy": "compact"},
    )
    lab.target.admin().create_topics([new])[place].result(30)
    lab.prepare(checkpoints=False)
    *_, well = topics(lab)
    lane = lab.lane(well, **settings)
    lab.numbered(well, range(10))
    lab.caught_up(lane)
    lab.target.kill(DIES)
    lab.until(lambda: in_sync(lab, place) == 1, "the cluster to miss the broker")
    lab.numbered(well, range(10, 20))
    began = time.monotonic()
    found = lab.until(lambda: failure(lane, well), "the lane to be named", lane)
    assert time.monotonic() - began < NAMED_SECONDS
    assert place in found.detail
    assert "in sync" in found.detail
    all_is_well_again(lab, lane, [well], 20)


def large_and_well(lab: LaneLab) -> tuple[str, str, str]:
    """A topic that refuses large records, one that is well, and the quarantine topic, which loses a replica."""
    quarantine = quarantine_topic(lab.name, "east")
    new = [
        NewTopic(
            quarantine,
            num_partitions=1,
            replica_assignment=[[STAYS, DIES]],
            config={"min.insync.replicas": "2"},
        )
    ]
    names = (f"large.{lab.name}", f"well.{lab.name}")
    for name in names:
        lab.source.create_topic(name)
        limit = {"max.message.bytes": "3000"} if name == names[0] else {}
        placed = [[STAYS, OTHER]]
        new.append(NewTopic(name, num_partitions=1, replica_assignment=placed, config=limit))
    for created in lab.target.admin().create_topics(new).values():
        created.result(30)
    lab.prepare(quarantines=False)
    return (*names, quarantine)


@pytest.mark.parametrize(
    ("settings", "in_use"),
    [
        ({}, False),
        ({}, True),
        (BATCHES, False),
        ({"delivery": "at-least-once"}, False),
        ({"delivery": "at-least-once", **BATCHES}, True),
    ],
    ids=["records", "records in use", "batches", "at least once", "batches at least once in use"],
)
def test_a_quarantine_topic_that_takes_no_writes_is_named(sick_lab, settings, in_use):
    lab = sick_lab
    large, well, quarantine = large_and_well(lab)
    lane = lab.lane(large, well, **settings)
    for topic in (large, well):
        lab.numbered(topic, range(5))
    if in_use:
        lab.produce(large, {"value": LARGE})
    lab.caught_up(lane)
    lab.target.kill(DIES)
    lab.until(lambda: in_sync(lab, quarantine) == 1, "the cluster to miss the broker")
    lab.produce(large, {"value": LARGE})
    lab.numbered(large, range(5, 10))
    began = time.monotonic()
    found = lab.until(
        lambda: (
            (seen := failure(lane, large)) and names_it(seen.detail, quarantine, "in sync") and seen
        ),
        "the quarantine topic to be named", lane,
    )  # fmt: skip
    assert time.monotonic() - began < NAMED_SECONDS
    assert (found.side, bool(found.remedy)) == ("target", True)
    assert any(quarantine in line.fields.get("detail", "") for line in lane.log)
    lab.numbered(well, range(5, 10))
    if in_use and "delivery" not in settings:
        # Its transaction holds the lane, unless the broker's end had made it look at the target before.
        lab.until(
            lambda: (
                names_it(lane.stats.target_problem, quarantine, "in sync")
                or lane.partition(well).position == 10
            ),
            "why, or the other topic's records", lane,
        )  # fmt: skip
    else:
        lab.caught_up(lane, well)
        assert failure(lane, well) is None
    lab.target.restart(DIES)
    lab.caught_up(lane)
    lab.until(lambda: failure(lane, large) is None, "the failure to end", lane)
    for topic in (large, well):
        assert in_order(lab.values(topic)) == numbers(range(10))
    assert len({about["offset"] for _, about in lab.quarantined()}) == 1 + in_use


def told(worker):
    """State and lag of the topics' only partitions, as ``status`` has them."""
    return {
        each["source"]: (partition["state"], partition["lagRecords"])
        for each in worker.flow(FLOW)["topics"]
        for partition in each["partitions"]
    }


def trouble_is_told(worker, sick) -> bool:
    said = worker.readiness()
    return '"ok":false' in said or all(topic in said for topic in sick)


def names_it(said: str, topic: str, word: str) -> bool:
    _, found, cause = said.partition(f"cannot write to {topic}/0: ")
    return bool(found) and word in cause[:200]


def in_sync(lab, topic) -> int:
    metadata = lab.target.admin().list_topics(timeout=20).topics
    return len(metadata[topic].partitions[0].isrs)


def sick_by_metadata(lab, sick) -> bool:
    metadata = lab.target.admin().list_topics(timeout=20).topics
    few, none = (metadata[topic].partitions[0] for topic in sick)
    return len(few.isrs) == 1 and none.leader == -1


@ENGINES
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_status_readiness_and_log_of_a_worker_name_what_takes_no_writes(
    sick_lab, worker, engine, delivery
):
    lab = sick_lab
    names = topics(lab)
    sick = names[:2]
    worker.cluster(lab.source)
    worker.cluster(lab.target)
    worker.link("dr", "east", "west", list(names), naming="identity", delivery=delivery, **engine)
    for topic in names:
        lab.numbered(topic, range(10))
    worker.start()
    worker.until(
        lambda: told(worker) == dict.fromkeys(names, ("replicating", 0)), "all to be copied"
    )
    lab.target.kill(DIES)
    for topic in names:
        lab.numbered(topic, range(10, 20))
    lab.until(lambda: sick_by_metadata(lab, sick), "the cluster to miss the broker")
    began = time.monotonic()
    worker.until(lambda: trouble_is_told(worker, sick), "any word of it")
    assert time.monotonic() - began < NAMED_SECONDS
    # The broker may have been the coordinator of the workers' group and of the lanes' transactions too;
    # a lane that begins anew for that looks at its partitions then.
    for topic, word in zip(sick, ("in sync", "no leader"), strict=True):
        for where, says in (
            ("/readyz", worker.readiness),
            ("status", lambda: json.dumps(worker.flow(FLOW)["problems"])),
        ):
            worker.until(
                lambda says=says, topic=topic, word=word: names_it(says(), topic, word),
                f"why {topic} takes no writes in {where}",
            )
        worker.until(
            lambda topic=topic, word=word: any(
                names_it(json.dumps(line), topic, word) for line in worker.log_lines()
            ),
            f"why {topic} takes no writes in the log",
        )
    assert time.monotonic() - began < 3 * NAMED_SECONDS
    lab.target.restart(DIES)
    worker.until(
        lambda: told(worker) == dict.fromkeys(names, ("replicating", 0)), "all to be copied again"
    )
    for topic in names:
        assert in_order(lab.values(topic)) == numbers(range(20))
