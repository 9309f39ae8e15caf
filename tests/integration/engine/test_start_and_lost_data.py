"""Where a partition starts, and what happens when the source no longer has what comes next.

Whatever happens to the source: nothing is skipped without a report, and nothing is copied twice.
"""

from dataclasses import replace

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from lane_lab import LaneLab, numbers, recreate
from producing import produce

from replicator.identifiers import checkpoints_topic
from replicator.policy.values import StartFrom


def truncate(lab, topic: str, before: int) -> None:
    """Has the source delete everything before an offset, as retention does."""
    place = TopicPartition(topic, 0, before)
    lab.source.admin().delete_records([place])[place].result(30)


def unclean(lab, topic: str, leader: int, follower: int) -> None:
    """A topic on two brokers of the source, either of which may lead it alone, with ten records."""
    lab.target.create_topic(topic)
    new = NewTopic(
        topic,
        num_partitions=1,
        replica_assignment=[[leader, follower]],
        config={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    )
    lab.source.admin().create_topics([new])[topic].result(30)
    lab.numbered(topic, range(10))


def test_the_start_is_stored_so_that_a_restart_does_not_jump(lab):
    earliest, latest, timed, too_new = (lab.topic() for _ in range(4))
    for topic in (earliest, latest, timed, too_new):
        lab.produce(topic, *({"value": b"%d" % n, "timestamp": 1000 + n} for n in range(10)))
    starts = {
        earliest: (StartFrom(), range(20)),
        latest: (StartFrom("latest"), range(10, 20)),
        timed: (StartFrom("timestamp", 1006), range(6, 20)),
        too_new: (StartFrom("timestamp", 5000), range(10, 20)),
    }
    lab.prepare(lanes=4)
    for lane, (topic, (start, _)) in enumerate(starts.items()):
        lab.copied(topic, start_from=start, lane=lane)
    for topic in starts:
        lab.produce(topic, *({"value": b"%d" % n, "timestamp": 1000 + n} for n in range(10, 20)))
    for lane, (topic, (start, _)) in enumerate(starts.items()):
        lab.copied(topic, start_from=start, lane=lane)

    assert {topic: lab.values(topic) for topic in starts} == {
        topic: numbers(expected) for topic, (_, expected) in starts.items()
    }


def test_a_partition_that_appeared_after_the_flow_began_is_copied_from_its_beginning(lab):
    topic = lab.topic(partitions=2)
    for partition in (0, 1):
        lab.numbered(topic, range(10), partition=partition)
    work = (*lab.work(topic, partition=0), *lab.work(topic, partition=1, late=True))
    lane = lab.lane(work=work, start_from=StartFrom("latest"))
    lab.caught_up(lane)
    lab.numbered(topic, range(10, 12))
    lab.caught_up(lane)

    seen = {(each.partition, each.value) for each in lab.on_target(topic)}
    late = {(1, value) for value in numbers(range(10))}
    assert seen == late | {(0, b"10"), (0, b"11")}


def test_records_deleted_before_they_were_copied_stop_their_partition_until_accepted(lab):
    topic, other = lab.topic(), lab.topic()
    lab.numbered(topic, range(10))
    lab.copied(topic, other)
    lab.numbered(topic, range(10, 30))
    truncate(lab, topic, 20)
    lane = lab.lane(topic, other)
    lab.until(lambda: lane.problem(topic) == "TRUNCATED", "the stop", lane)
    lab.numbered(other, range(5))
    lab.caught_up(lane, other)

    assert lab.values(topic) == numbers(range(10))
    assert "offsets 10 to 19 vanished" in lane.partition(topic).detail

    lane.stop()
    lane = lab.lane(topic, other)
    lab.until(lambda: lane.problem(topic) == "TRUNCATED", "the stop kept by a restart", lane)
    lane.update(work=(*lab.work(topic, accept_gap="token-1"), *lab.work(other)))
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(10), range(20, 30))
    assert [(gap.lost_from, gap.lost_to) for gap in lane.gaps] == [(10, 20)]
    assert lab.checkpoints()[topic, 0].accepted_gap == "token-1"


def test_a_gap_under_a_running_lane_is_recorded_and_passed_where_policy_says_report(lab):
    topic = lab.topic()
    lab.numbered(topic, range(10))
    lane = lab.lane(topic, on_truncation="report")
    lab.caught_up(lane)
    paused = lane.spec.work
    lane.update(work=())
    lab.numbered(topic, range(10, 30))
    truncate(lab, topic, 25)
    lane.update(work=paused)
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(10), range(25, 30))
    assert [(gap.lost_from, gap.lost_to) for gap in lane.gaps] == [(10, 25)]
    assert lane.problem(topic) == ""


@pytest.mark.parametrize("policy", ["stop", "report"])
@pytest.mark.parametrize("refilled", [5, 40])
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_a_topic_deleted_and_created_again_is_never_taken_for_the_old_one(
    lab, policy, refilled, state
):
    topic, other = lab.topic(), lab.topic()
    lab.numbered(topic, range(20))
    lane = lab.lane(topic, other, on_truncation=policy)
    lab.caught_up(lane)
    if state == "stopped":
        lane.stop()
    recreate(lab.source, topic)
    lab.numbered(topic, range(100, 100 + refilled))
    if state == "stopped":
        lane = lab.lane(topic, other, on_truncation=policy)

    if policy == "stop":
        lab.until(lambda: lane.problem(topic) == "RECREATED", "the stop", lane)
        assert lab.values(topic) == numbers(range(20))
        lane.update(work=(*lab.work(topic, accept_gap="yes"), *lab.work(other)))
    lab.until(lambda: lab.checkpoints()[topic, 0].offset == refilled, "the new topic", lane)
    lab.numbered(topic, range(200, 205))
    lab.numbered(other, range(3))
    lab.caught_up(lane)

    expected = numbers(range(20), range(100, 100 + refilled), range(200, 205))
    assert lab.values(topic) == expected
    assert len(lane.gaps) == 1
    assert "deleted and created again" in lane.gaps[0].detail


def test_a_topic_recreated_again_and_again_under_load_loses_nothing_of_the_last(lab):
    topic = lab.topic()
    lab.numbered(topic, range(50))
    lane = lab.lane(topic, on_truncation="report")
    lab.caught_up(lane)
    for life in range(1, 4):
        recreate(lab.source, topic)
        lab.numbered(topic, range(life * 1000, life * 1000 + 60))
    lab.until(
        lambda: lab.values(topic)[-60:] == numbers(range(3000, 3060)), "the last life, whole", lane
    )

    values = lab.values(topic)
    assert len(values) == len(set(values))
    assert values[:50] == numbers(range(50))


@pytest.mark.slow
def test_an_unclean_election_under_a_running_lane_stops_it_though_the_log_is_longer_again(
    west, clusters, unique
):
    (east,) = clusters("east", brokers=3)
    lab, topic = LaneLab(east, west, name=unique), f"t.{unique}"
    leader, follower = 0, 1
    unclean(lab, topic, leader, follower)
    lane = lab.lane(topic)
    lab.caught_up(lane)
    try:
        east.kill(follower)
        lab.numbered(topic, range(10, 20))  # known to the leader alone
        lab.caught_up(lane)
        east.kill(leader)
        east.restart(follower)
        lab.numbered(topic, range(100, 140))  # the log is longer again, and another one
        lab.until(lambda: lane.problem(topic) == "TRUNCATED", "the stop", lane)

        assert lab.values(topic) == numbers(range(20))
    finally:
        lab.close()


@pytest.mark.slow
def test_an_unclean_election_after_a_transaction_is_noticed_by_the_next_owner(
    west, clusters, unique
):
    """Behind the last record stands a marker; the log is cut before both and grows past them."""
    (east,) = clusters("east", brokers=3)
    lab, topic = LaneLab(east, west, name=unique), f"t.{unique}"
    leader, follower = 1, 2
    unclean(lab, topic, leader, follower)
    writer = Producer({**east.client_settings(), "transactional.id": unique})
    writer.init_transactions(30)
    try:
        east.kill(follower)
        writer.begin_transaction()
        for number in range(10, 20):  # known to the leader alone
            writer.produce(topic, b"%d" % number, partition=0)
        writer.commit_transaction(30)
        lab.copied(topic)
        assert lab.checkpoints()[topic, 0].offset == 21
        east.kill(leader)
        east.restart(follower)
        lab.numbered(topic, range(100, 140))  # the log is longer again, and another one
        lane = lab.lane(topic)
        lab.until(lambda: lane.problem(topic) == "TRUNCATED", "the stop", lane)

        assert lab.values(topic) == numbers(range(20))
    finally:
        lab.close()


def test_a_source_that_lost_its_tail_stops_the_partition_and_says_so(lab):
    """What an unclean election does: the log ends below what was copied already."""
    topic = lab.topic()
    lab.numbered(topic, range(10))
    lane = lab.copied(topic)
    ahead = lab.checkpoints()[topic, 0]
    # The same id, a position the source does not have: as a checkpoint of the lost tail says.
    forged = replace(ahead, offset=15)
    record = {"key": forged.key(), "value": forged.value()}
    produce(lab.target, checkpoints_topic(lab.name, "east"), [record], partition=0)

    lane = lab.lane(topic)
    lab.until(lambda: lane.problem(topic) == "TRUNCATED", "the stop", lane)
    lab.numbered(topic, range(10, 20))

    assert "ends at 10, below the position 15" in lane.partition(topic).detail
    lane.stop()
    lane = lab.lane(topic)
    lab.until(lambda: lane.problem(topic) == "TRUNCATED", "the stop, though it grew again", lane)
    assert lab.values(topic) == numbers(range(10))
