"""Long lines are as long, as lossy and as narrow as they say, and clusters can be at their far end."""

import pytest
from confluent_kafka import Consumer, Producer
from far_end import far_end, receiving_rate, round_trip, sending_rate

from replicator.testing import LineQuality, LocalCluster, WanLine
from replicator.testing.wan.wan_line import unavailable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "there are long lines"),
]


def send(cluster, topic, *values):
    """Writes values and waits for every acknowledgement; returns how many are missing."""
    producer = Producer({**cluster.client_settings(), "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    return producer.flush(20)


def receive(cluster, topic, count):
    """What a group reads from where it was."""
    settings = {"group.id": "far-reader", "auto.offset.reset": "earliest"}
    consumer = Consumer({**cluster.client_settings(), **settings})
    consumer.subscribe([topic])
    values = [message.value() for message in consumer.consume(count, 60)]
    consumer.close()
    return sorted(values)


@pytest.fixture(scope="module")
def line():
    with WanLine(LineQuality()) as started:
        yield started


def test_the_round_trip_is_that_asked_for(line, tmp_path):
    with far_end(line, tmp_path) as address:
        for seconds in (0.1, 0.03):
            line.change(LineQuality(round_trip_seconds=seconds))
            assert round_trip(address) == pytest.approx(seconds, rel=0.05, abs=0.002)


def test_loss_is_that_asked_for_and_connections_bear_it(line, tmp_path):
    line.change(LineQuality(round_trip_seconds=0.02, loss=0.02, seed=3))
    with far_end(line, tmp_path) as address:
        before = line.packets()
        sending_rate(address, seconds=4)
        there = line.packets()[0]
    offered, lost = there.offered - before[0].offered, there.lost - before[0].lost
    assert offered > 500
    assert 0.5 * 0.02 < lost / offered < 2 * 0.02
    assert there.overflowed == before[0].overflowed


def test_the_rate_is_that_asked_for_in_both_directions(line, tmp_path):
    rate = 5_000_000.0
    line.change(LineQuality(round_trip_seconds=0.02, bytes_per_second=rate))
    with far_end(line, tmp_path) as address:
        # Headers of 52 bytes stand in each packet of 1500; the start of a connection is slower.
        assert 0.85 * rate < sending_rate(address, seconds=4) < rate
        assert 0.85 * rate < receiving_rate(address, seconds=4, ramp_seconds=1) < 1.02 * rate


def test_a_cluster_at_the_far_end_is_far_for_clients_and_near_for_set_up(line):
    line.change(LineQuality(round_trip_seconds=0.1))
    with LocalCluster("far", place=line.place) as far:
        far.create_topic("orders", partitions=2)
        before = line.packets()[0].offered
        assert send(far, "orders", b"one", b"two") == 0
        assert receive(far, "orders", 2) == [b"one", b"two"]
        assert line.packets()[0].offered > before + 10
        far.kill()
        far.restart()
        assert send(far, "orders", b"three") == 0
        assert receive(far, "orders", 1) == [b"three"]  # the group's position outlived the kill too
