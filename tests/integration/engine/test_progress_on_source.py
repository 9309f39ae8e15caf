"""Lag tools see flows of whole batches: the group on the source has the positions that the target has stored."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from lane_lab import LaneLab
from running_lane import PATIENCE_SECONDS

from replicator.dataplane.progress import shown_positions
from replicator.dataplane.whole_batches import progress_beside
from replicator.identifiers import progress_group
from replicator.testing import wait_until

RECORDS = {"engine": "records", "provenance": "full"}
BATCHES = {"engine": "batches", "provenance": "path"}
ENGINES = pytest.mark.parametrize("engine", [RECORDS, BATCHES], ids=["records", "batches"])
DELIVERIES = pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(shown_positions, "PROGRESS_SECONDS", 0.3)


def shown(lab: LaneLab, topic: str) -> list[int]:
    """The group's offsets of a topic's partitions, negative where there is none.

    A plain consumer asks: the admin client's call ends the process where a broker dies meanwhile (librdkafka 2.16).
    """
    group = progress_group(lab.name, "west")
    count = len(lab.source.admin().list_topics(topic, timeout=20).topics[topic].partitions)
    reader = Consumer({**lab.source.client_settings(), "group.id": group})
    try:
        places = [TopicPartition(topic, number) for number in range(count)]
        return [place.offset for place in reader.committed(places, timeout=PATIENCE_SECONDS)]
    finally:
        reader.close()


def ends(lab: LaneLab, topic: str) -> list[int]:
    return [lab.end(topic, number) for number in range(len(shown(lab, topic)))]


def lag_is_gone(lab: LaneLab, topic: str, lane) -> None:
    there = ends(lab, topic)
    lab.until(lambda: shown(lab, topic) == there, f"positions {there} in the group", lane)


def transaction(lab: LaneLab, topic: str, *, commits: bool) -> None:
    """Ten records and a marker at the end of partition 0."""
    writer = Producer({**lab.source.client_settings(), "transactional.id": lab.name})
    writer.init_transactions(30)
    writer.begin_transaction()
    for number in range(10):
        writer.produce(topic, b"%d" % number, partition=0)
    (writer.commit_transaction if commits else writer.abort_transaction)(30)


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


def test_a_lane_that_stops_in_order_has_shown_all_that_it_copied(lab, monkeypatch):
    monkeypatch.setattr(shown_positions, "PROGRESS_SECONDS", 3600.0)
    # The first group of a cluster waits until its brokers have made the topic for groups.
    monkeypatch.setattr(progress_beside, "END_SECONDS", 20.0)
    topic = lab.topic(partitions=2)
    lab.numbered(topic, range(100))
    lab.copied(topic, **BATCHES)
    assert shown(lab, topic) == ends(lab, topic) == [100, 0]


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
