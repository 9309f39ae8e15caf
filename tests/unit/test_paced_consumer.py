"""One consumer follows the other at the lane's positions; nothing is skipped, and who rests is not forgotten."""

from types import SimpleNamespace

import pytest
from fake_kafka import FakeCluster, FakeConsumer, FakeProducer

from replicator.dataplane.session import paced_consumer
from replicator.dataplane.session.paced_consumer import (
    AGAIN_SECONDS,
    SERVED_SECONDS,
    TAKE_OVER_SECONDS,
    PacedConsumer,
)
from replicator.errors import InputError
from replicator.kafka.clients.client import ClientPartition
from replicator.testing.kit.manual_clock import ManualClock

TOPIC = "orders"


class Lab:
    """A topic of two partitions that a lane reads, and copies all of at once."""

    def __init__(self):
        self.cluster = FakeCluster()
        self.cluster.create_topic(TOPIC, partitions=2)
        self.clock = ManualClock()
        self.plain = FakeConsumer(self.cluster)
        self.opened = []
        self.consumer = PacedConsumer(
            self.plain, open_paced=self._open, close_paced=FakeConsumer.close, clock=self.clock
        )
        self.states = [
            SimpleNamespace(
                key=(TOPIC, n), topic=TOPIC, partition=n, position=0, position_epoch=-1,
                record_end=-1,
            )
            for n in range(2)
        ]  # fmt: skip
        self.consumer.incremental_assign([ClientPartition(TOPIC, n, 0) for n in range(2)])

    def _open(self):
        self.opened.append(FakeConsumer(self.cluster))
        return self.opened[-1]

    def write(self, *values):
        producer = FakeProducer(self.cluster)
        for value in values:
            producer.produce(TOPIC, value, b"k", 0, None, None, 1000)
        producer.flush()

    def read(self):
        found = [each for each in self.consumer.consume(100, 0.0) if each.error() is None]
        for each in found:
            self.states[each.partition()].position = each.offset() + 1
        return [each.value() for each in found]

    def go(self, *, paced):
        self.consumer.go(paced=paced, states=lambda: self.states)


def partitions(consumer):
    return {item.partition for item in consumer.assignment()}


def test_the_next_one_goes_on_where_the_lane_is_and_is_alone_when_it_brings_something():
    lab = Lab()
    lab.write(b"0", b"1")
    assert lab.read() == [b"0", b"1"]
    lab.go(paced=True)
    assert not lab.consumer.paced
    (paced,) = lab.opened
    assert partitions(lab.plain) == partitions(paced) == {0, 1}
    lab.write(b"2")
    assert lab.read() == [b"2"]
    assert lab.consumer.paced
    assert (partitions(lab.plain), partitions(paced)) == (set(), {0, 1})
    assert partitions(lab.consumer) == {0, 1}


def test_the_first_one_is_read_as_long_as_the_next_one_brings_nothing(monkeypatch):
    lab = Lab()
    monkeypatch.setattr(FakeConsumer, "consume", quiet(lab, FakeConsumer.consume))
    lab.go(paced=True)
    lab.write(b"0")
    assert lab.read() == [b"0"]
    assert not lab.consumer.paced
    lab.write(b"1")
    message = lab.consumer.poll(10.0)
    assert message is not None
    assert message.value() == b"1"


def test_one_that_brings_nothing_in_time_is_closed_and_another_is_tried_a_minute_later(monkeypatch):
    lab = Lab()
    consume = FakeConsumer.consume
    monkeypatch.setattr(FakeConsumer, "consume", quiet(lab, consume))
    lab.go(paced=True)
    lab.clock.advance(TAKE_OVER_SECONDS + 0.1)
    lab.read()
    assert lab.opened[0].closed
    assert partitions(lab.consumer) == {0, 1}
    lab.go(paced=True)
    assert len(lab.opened) == 1
    lab.clock.advance(AGAIN_SECONDS)
    monkeypatch.setattr(FakeConsumer, "consume", consume)
    lab.go(paced=True)
    lab.write(b"0")
    assert lab.read() == [b"0"]
    assert lab.consumer.paced


def test_it_goes_back_and_the_one_that_asked_in_paces_is_closed():
    lab = Lab()
    lab.go(paced=True)
    lab.write(b"0")
    lab.read()
    lab.go(paced=False)
    assert lab.consumer.paced, "at most one change a minute"
    lab.clock.advance(AGAIN_SECONDS)
    lab.go(paced=False)
    lab.write(b"1")
    assert lab.read() == [b"1"]
    assert not lab.consumer.paced
    assert lab.opened[0].closed
    assert partitions(lab.plain) == {0, 1}


def test_one_that_cannot_be_opened_or_takes_no_partitions_changes_nothing(monkeypatch):
    lab = Lab()

    def refuse(*_):
        raise InputError("no such file")

    monkeypatch.setattr(lab.consumer, "_open_paced", refuse)
    lab.go(paced=True)
    lab.clock.advance(AGAIN_SECONDS)
    monkeypatch.setattr(lab.consumer, "_open_paced", lab._open)
    monkeypatch.setattr(paced_consumer, "read_from", refuse)
    lab.go(paced=True)
    assert lab.opened[0].closed
    lab.write(b"0")
    assert lab.read() == [b"0"]


@pytest.mark.parametrize("call", ["incremental_assign", "incremental_unassign", "seek", "pause"])
def test_what_the_lane_does_with_partitions_meanwhile_is_done_with_the_one_it_reads(call):
    lab = Lab()
    lab.go(paced=True)
    place = ClientPartition(TOPIC, 0, 0)
    getattr(lab.consumer, call)(place if call == "seek" else [place])
    assert lab.opened[0].closed
    assert partitions(lab.plain) == ({1} if call == "incremental_unassign" else {0, 1})


def test_nothing_changes_hands_while_a_partition_is_held_back():
    lab = Lab()
    held = [ClientPartition(TOPIC, 0)]
    lab.consumer.pause(held)
    lab.go(paced=True)
    assert not lab.opened
    lab.consumer.resume(held)
    lab.go(paced=True)
    assert lab.opened


def test_only_partitions_that_are_read_are_handed_over():
    lab = Lab()
    lab.consumer.incremental_unassign([ClientPartition(TOPIC, 1)])
    lab.go(paced=True)
    assert partitions(lab.opened[0]) == {0}


def test_the_one_that_rests_is_served_and_both_are_closed(monkeypatch):
    lab = Lab()
    lab.go(paced=True)
    lab.write(b"0")
    lab.read()
    served, poll = [], FakeConsumer.poll

    def noted(consumer, timeout=0):
        served.append(consumer is lab.plain)
        return poll(consumer, timeout)

    monkeypatch.setattr(FakeConsumer, "poll", noted)
    for _ in range(3):
        lab.clock.advance(SERVED_SECONDS)
        lab.read()
        lab.read()
    assert served == [True] * 3
    lab.consumer.close()
    assert lab.plain.closed
    assert lab.opened[0].closed


def quiet(lab, consume):
    """Consumers that were opened later bring nothing."""

    def only_the_first(consumer, *arguments):
        return consume(consumer, *arguments) if consumer is lab.plain else []

    return only_the_first
