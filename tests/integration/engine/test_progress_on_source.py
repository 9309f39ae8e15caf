"""Lag tools see flows of whole batches: the group on the source has the positions that the target has stored."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from lane_lab import LaneLab
from running_lane import PATIENCE_SECONDS

from replicator.dataplane.progress import shown_positions
from replicator.dataplane.session import progress_beside
from replicator.identifiers import progress_group
from replicator.testing import ProtocolProxy, wait_until
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import FindCoordinatorRequest

RECORDS = {"engine": "records", "provenance": "full"}
BATCHES = {"engine": "batches", "provenance": "path"}
ENGINES = pytest.mark.parametrize("engine", [RECORDS, BATCHES], ids=["records", "batches"])
DELIVERIES = pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
MOVING = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(shown_positions, "PROGRESS_SECONDS", 0.3)


def partitions_of(lab: LaneLab, topic: str) -> range:
    return range(len(lab.source.admin().list_topics(topic, timeout=20).topics[topic].partitions))


def shown(lab: LaneLab, topic: str) -> list[int]:
    """The group's offsets of a topic's partitions, negative where there is none; empty while no coordinator tells.

    A plain consumer asks: the admin client's call ends the process where a broker dies meanwhile (librdkafka 2.16).
    """
    group = progress_group(lab.name, "west")
    reader = Consumer({**lab.source.client_settings(), "group.id": group})
    try:
        places = [TopicPartition(topic, number) for number in partitions_of(lab, topic)]
        return [place.offset for place in reader.committed(places, timeout=PATIENCE_SECONDS)]
    except KafkaException as error:
        if error.args[0].code() not in MOVING:
            raise
        return []
    finally:
        reader.close()


def ends(lab: LaneLab, topic: str) -> list[int]:
    return [lab.end(topic, number) for number in partitions_of(lab, topic)]


def lag_is_gone(lab: LaneLab, topic: str, lane) -> None:
    there = ends(lab, topic)
    lab.until(lambda: shown(lab, topic) == there, f"positions {there} in the group", lane)


def transaction(lab: LaneLab, topic: str, *, commits: bool) -> None:
    """Ten records and a marker at the end of partition 0; brokers write the marker after they have answered."""
    begun = lab.end(topic, 0)
    writer = Producer({**lab.source.client_settings(), "transactional.id": lab.name})
    writer.init_transactions(30)
    writer.begin_transaction()
    for number in range(10):
        writer.produce(topic, b"%d" % number, partition=0)
    writer.flush(30)  # what was not sent is not aborted
    (writer.commit_transaction if commits else writer.abort_transaction)(30)
    wait_until(lambda: lab.end(topic, 0) == begun + 11, timeout_seconds=30, describe="the marker")


@DELIVERIES
def test_the_group_follows_to_the_end_of_the_log_behind_markers_and_aborted_records(lab, delivery):
    topic = lab.topic(partitions=2)
    lab.numbered(topic, range(100))
    lab.numbered(topic, range(50), partition=1)
    lane = lab.lane(topic, delivery=delivery, **BATCHES)
    lag_is_gone(lab, topic, lane)

    transaction(lab, topic, commits=False)
    lag_is_gone(lab, topic, lane)
    transaction(lab, topic, commits=True)
    lag_is_gone(lab, topic, lane)
    assert len(lab.values(topic)) == 160
    assert lane.stats.progress_problem == ""


@ENGINES
def test_a_lane_that_stops_in_order_has_shown_all_that_it_copied(lab, monkeypatch, engine):
    monkeypatch.setattr(shown_positions, "PROGRESS_SECONDS", 3600.0)
    # The first group of a cluster waits until its brokers have made the topic for groups.
    monkeypatch.setattr(progress_beside, "END_SECONDS", 20.0)
    topic = lab.topic(partitions=2)
    lab.numbered(topic, range(100))
    lab.copied(topic, **engine)
    assert shown(lab, topic) == ends(lab, topic) == [100, 0]


class BehindProxy(LaneLab):
    """Lanes reach their source through the proxy."""

    proxy: ProtocolProxy

    def plan(self, cluster, alias):
        if alias == "east":
            return ClusterPlan(alias, tuple(self.proxy.bootstrap_servers))
        return super().plan(cluster, alias)


@pytest.mark.parametrize("error", [-1, 14, 16], ids=["failed", "loading", "moved"])
@ENGINES
def test_positions_that_were_not_taken_are_shown_again_though_nothing_moves(
    east, west, unique, engine, error
):
    not_taken = Rule(Match(Api.OFFSET_COMMIT, times=3), Answer(error))
    with ProtocolProxy(east.bootstrap_servers, [not_taken]) as proxy:
        lab = BehindProxy(east, west, name=unique)
        lab.proxy = proxy
        try:
            topic = lab.topic()
            lab.numbered(topic, range(10))
            lane = lab.lane(topic, **engine)
            lag_is_gone(lab, topic, lane)
            assert proxy.applied(not_taken)
        finally:
            lab.close()


@pytest.mark.slow
def test_engines_in_turns_never_show_less_than_before(lab):
    topic = lab.topic()
    lab.prepare()
    before = 0
    for engine in (BATCHES, RECORDS, BATCHES):
        lab.numbered(topic, range(100))
        lane = lab.lane(topic, **engine)
        assert shown(lab, topic)[0] >= before or not before
        lag_is_gone(lab, topic, lane)
        lane.stop()
        (before,) = shown(lab, topic)
    assert before == 300


@pytest.mark.slow
@ENGINES
def test_a_group_that_others_use_is_told_and_shows_positions_once_they_are_gone(lab, engine):
    topic = lab.topic()
    lab.numbered(topic, range(10))
    group = progress_group(lab.name, "west")
    stranger = Consumer(
        {**lab.source.client_settings(), "group.id": group, "enable.auto.commit": False}
    )
    stranger.subscribe([topic])
    try:
        wait_until(
            lambda: stranger.poll(0.1) is None and stranger.assignment(),
            timeout_seconds=30, describe="the member to have its partition",
        )  # fmt: skip
        lane = lab.lane(topic, **engine)
        lab.caught_up(lane)
        said = lab.until(lambda: lane.stats.progress_problem, "the problem", lane)
        assert said.startswith(f"GROUP_REFUSED cannot show progress in group {group}"), said
        assert lab.values(topic) == [b"%d" % number for number in range(10)]
    finally:
        stranger.close()
    lag_is_gone(lab, topic, lane)
    lab.until(lambda: not lane.stats.progress_problem, "no problem", lane)


def coordinator(lab: LaneLab) -> int:
    """The id of the broker that answers for the lane's group now."""
    group, deadline = progress_group(lab.name, "west"), time.monotonic() + PATIENCE_SECONDS
    at = ClusterPlan("east", tuple(lab.source.bootstrap_servers))
    with any_broker(at, client_id="test", deadline=deadline) as connection:
        request = FindCoordinatorRequest(key=group, key_type=0, coordinator_keys=[group])
        (found,) = connection.call(request, newest=6, deadline=deadline).coordinators
    return found.node_id


@pytest.mark.slow
@ENGINES
def test_the_group_is_shown_on_when_its_coordinator_dies(west, clusters, unique, engine):
    (east,) = clusters("east", brokers=3)
    lab = LaneLab(east, west, name=unique)
    try:
        topic = lab.topic()
        lab.numbered(topic, range(100))
        lane = lab.lane(topic, **engine)
        lag_is_gone(lab, topic, lane)
        first = coordinator(lab)
        east.kill(first)
        lab.numbered(topic, range(100, 200))
        lag_is_gone(lab, topic, lane)
        east.restart(first)
        second = coordinator(lab)
        if second != first:
            east.kill(second)
        lab.numbered(topic, range(200, 300))
        lag_is_gone(lab, topic, lane)
        assert lab.values(topic) == [b"%d" % number for number in range(300)]
    finally:
        lab.close()
