"""A running lane gets a new spec: it goes on exactly, and only what changed is touched."""

import time
from dataclasses import replace

import pytest

from replicator.policy.values import Throttle


def numbers(*ranges: range) -> list[bytes]:
    return [b"%d" % number for each in ranges for number in each]


def test_partitions_come_and_go_and_come_back_exactly_where_they_were(lab):
    topic, other = lab.topic(partitions=3), lab.topic()
    first, second, third = lab.work(topic)
    lab.numbered(other, range(10))
    for partition in range(3):
        lab.numbered(topic, range(10), partition=partition)

    lane = lab.lane(work=[*lab.work(other), first])
    lab.caught_up(lane)
    takeovers = lane.lane._clients
    lane.update(work=(*lab.work(other), first, second, third))
    lab.caught_up(lane)
    lane.update(work=(*lab.work(other), first, third))
    for partition in range(3):
        lab.numbered(topic, range(10, 20), partition=partition)
    lab.caught_up(lane)
    assert len([seen for seen in lab.on_target(topic) if seen.partition == 1]) == 10
    lane.update(work=(*lab.work(other), first, second, third))
    lab.caught_up(lane)

    for partition in range(3):
        assert [s.value for s in lab.on_target(topic) if s.partition == partition] == numbers(
            range(20)
        )
    assert lane.lane._clients is takeovers, "the lane must not start over"


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_pausing_under_load_again_and_again_loses_and_repeats_nothing(lab, delivery):
    topic, other = lab.topic(), lab.topic()
    work = (*lab.work(topic), *lab.work(other))
    lane = lab.lane(work=work, delivery=delivery)
    for turn in range(6):
        lab.numbered(topic, range(turn * 500, turn * 500 + 500))
        lab.numbered(other, range(turn * 500, turn * 500 + 500))
        lane.update(work=work[1:] if turn % 2 else work)
    lane.update(work=work)
    lab.caught_up(lane)

    assert lab.values(topic) == lab.values(other) == numbers(range(3000))


def test_other_settings_are_taken_by_a_new_lane_that_goes_on_exactly(lab):
    topic = lab.topic()
    for turn, settings in enumerate(
        (
            {"delivery": "exactly-once"},
            {"delivery": "at-least-once", "provenance": "path"},
            {"delivery": "exactly-once", "commit_interval_seconds": 0.05},
        )
    ):
        lane = lab.lane(topic, **settings)
        lab.numbered(topic, range(turn * 1000, turn * 1000 + 1000))
        stopped = lane.stop()  # somewhere in the middle
        assert not stopped.fenced
    lane = lab.lane(topic)
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(3000))


RATES = [
    pytest.param(Throttle(records_per_second=200), 200, id="records"),
    pytest.param(Throttle(bytes_per_second=100_000), 200, id="bytes"),
]


@pytest.mark.parametrize(("throttle", "records_per_second"), RATES)
def test_a_throttle_holds_its_rate_and_is_lifted_in_place(lab, throttle, records_per_second):
    topic = lab.topic()
    lab.produce(topic, *({"value": b"x" * 500} for _ in range(3000)))
    lane = lab.lane(topic, throttle=throttle)

    def copied() -> int:
        return lane.lane._counters.outcome.copied

    lab.until(lambda: copied() > records_per_second * 0.5, "the first records", lane)
    began, before = time.monotonic(), copied()
    lab.until(lambda: time.monotonic() - began >= 5, "five seconds")
    rate = (copied() - before) / (time.monotonic() - began)

    # It never goes above; how far below says how busy the machine is.
    assert 0.6 * records_per_second <= rate <= 1.1 * records_per_second
    clients = lane.lane._clients
    lane.update(throttle=Throttle())
    lab.caught_up(lane)
    assert lane.lane._clients is clients, "the lane must not start over"
    assert len(lab.on_target(topic)) == 3000
    assert lane.stats.throttle_wait_seconds > 0


def test_while_throttled_the_critical_topic_is_done_first(lab):
    critical, normal, bulk = (lab.topic() for _ in range(3))
    for topic in (bulk, normal, critical):
        lab.numbered(topic, range(400))
    work = [
        replace(item, priority=priority)
        for topic, priority in ((bulk, "bulk"), (normal, "normal"), (critical, "critical"))
        for item in lab.work(topic)
    ]
    lane = lab.lane(work=work, throttle=Throttle(records_per_second=150))

    def position(topic: str) -> int:
        return next(state.position for state in lane.lane._states() if state.topic == topic)

    lab.until(lambda: lane.lane._states() and position(critical) == 400, "the critical one", lane)
    assert position(normal) + position(bulk) < 300
    lab.until(lambda: position(normal) == 400, "the normal one", lane)
    assert position(bulk) < 250
    lab.caught_up(lane)

    for topic in (critical, normal, bulk):
        assert lab.values(topic) == numbers(range(400))


def test_a_lane_whose_clients_cannot_be_closed_says_so_and_goes_on(lab):
    topic = lab.topic()
    lane = lab.lane(topic)
    lab.numbered(topic, range(10))
    lab.caught_up(lane)
    clients = lane.lane._clients
    clients.consumer.close()  # under the lane: its next step fails, and so does its own close
    del clients.consumer
    lab.until(
        lambda: any(line.event == "lane failed unexpectedly" for line in lane.log), "the word", lane
    )
    lab.numbered(topic, range(10, 20))
    lab.caught_up(lane)
    assert lane.ended is None
    assert lab.values(topic) == numbers(range(20))
