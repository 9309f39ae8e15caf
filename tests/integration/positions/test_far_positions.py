"""Positions far behind the end, over lane changes, partition growth and restarts of the worker."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from whole_topic import read_topic

MANY = 1_000_100
LAGS = (0, 1, 10, 1_000, 1_000_000)
CHUNK = 1_000


def write_many(pair, count, *, partition=0):
    """Writes fast; every record's value is its number."""
    producer = Producer(
        {**pair.east.client_settings(), "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    )
    for first in range(0, count, CHUNK):
        numbers = range(first, min(first + CHUNK, count))
        batch = [{"value": b"%d" % number} for number in numbers]
        while len(producer) > 300_000:
            producer.poll(0.05)
        assert producer.produce_batch(pair.topic, batch, partition=partition) == len(batch)
    assert producer.flush(60) == 0


def source_of(message):
    hops = dict(message.headers() or [])["replicator-hops"].decode()
    return int(hops.split(" ")[-1].rsplit("/", 1)[1])


def neighbours(pair, at, *, partition=0):
    """Source offsets of the last copy before a place on the target, and of the first at or after."""
    before = None
    for message in read_topic(pair.west, pair.topic, [partition], start=max(0, at - 20)):
        if message.offset() >= at:
            return before, source_of(message)
        before = source_of(message)
    return before, None


def assert_exact(pair, answer, wanted, *, partition=0):
    assert (answer.grade, answer.records_reread) == ("exact", 0), (wanted, answer)
    assert answer.probes <= 3, (wanted, answer)
    before, after = neighbours(pair, answer.offset, partition=partition)
    assert before is None or before < wanted, (wanted, answer)
    assert after is None or after >= wanted, (wanted, answer)


@pytest.mark.slow
def test_positions_up_to_a_million_records_behind_are_exact_over_restarts_lanes_and_growth(
    pair, replicating, translate
):
    pair.east.create_topic(pair.topic)
    plan = pair.topology(lanes=1)
    pair.write_transactions(pair.east, [10, -30, 5])
    write_many(pair, MANY // 2)
    replicating(expect_position={(pair.topic, 0): MANY // 2})
    pair.write_transactions(pair.east, [-7, 3])
    grown = pair.east.admin().create_partitions([NewPartitions(pair.topic, 3)])
    grown[pair.topic].result(20)
    plan = pair.topology(lanes=3)
    write_many(pair, MANY - MANY // 2)
    write_many(pair, 500, partition=2)
    end = pair.end_of(pair.east)
    replicating(expect_position={(pair.topic, 0): end, (pair.topic, 2): 500})

    wanted = [end - lag for lag in LAGS]
    for offset, answer in zip(
        wanted, translate(plan, "east", "west", pair.topic, *wanted), strict=True
    ):
        assert_exact(pair, answer, offset)
    young = translate(plan, "east", "west", pair.topic, 0, 250, 499, 500, partition=2)
    for offset, answer in zip((0, 250, 499, 500), young, strict=True):
        assert_exact(pair, answer, offset, partition=2)
    there = [answer.offset for answer in translate(plan, "east", "west", pair.topic, *wanted[1:])]
    back = translate(plan, "west", "east", pair.topic, *there)
    assert [(answer.grade, answer.offset) for answer in back] == [
        ("exact", offset) for offset in wanted[1:]
    ]
