"""Transactions of the source's own writers: what was aborted never arrives, what is open waits."""

import pytest
from confluent_kafka import Producer

from replicator.dataplane.health import unheard_records
from replicator.dataplane.health.newest_ends import NewestEnds
from replicator.dataplane.health.silent_partitions import SILENT_ROUNDS
from replicator.dataplane.lane import stats_schedule

ENGINES = pytest.mark.parametrize(
    "engine", [{}, {"engine": "batches", "provenance": "path"}], ids=["records", "batches"]
)
BOTH = pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])


@pytest.fixture
def writer(lab):
    """A transactional writer on the source."""
    producer = Producer(
        {
            **lab.source.client_settings(),
            "transactional.id": lab.name,
            "linger.ms": 0,
            "transaction.timeout.ms": 300_000,  # one is held open by a test
        }
    )
    producer.init_transactions(30)
    return producer


def transaction(writer: Producer, topic: str, *values: bytes, end: str) -> None:
    writer.begin_transaction()
    for value in values:
        writer.produce(topic, value, partition=0)
    assert writer.flush(30) == 0
    if end == "commit":
        writer.commit_transaction(30)
    elif end == "abort":
        writer.abort_transaction(30)


@BOTH
def test_aborted_transactions_never_arrive_and_their_markers_leave_no_lag(
    lab, writer, delivery, monkeypatch
):
    monkeypatch.setattr(stats_schedule, "IDLE_STATS_SECONDS", 1.0)
    monkeypatch.setattr(stats_schedule, "UNCHANGED_STATS_SECONDS", 1.0)
    topic = lab.topic()
    for number in range(6):
        transaction(writer, topic, b"a%d" % number, b"b%d" % number,
                    end="abort" if number % 2 else "commit")  # fmt: skip
    transaction(writer, topic, b"last", end="abort")

    lane = lab.lane(topic, delivery=delivery)
    lab.caught_up(lane)

    assert lab.values(topic) == [b"a0", b"b0", b"a2", b"b2", b"a4", b"b4"]
    assert lab.checkpoints()[topic, 0].offset == lab.end(topic) == 6 * 3 + 2
    lab.until(
        lambda: (lane.partition(topic).position, lane.partition(topic).source_end) == (20, 20),
        "no lag in the lane's figures", lane,
    )  # fmt: skip


@BOTH
def test_an_open_transaction_holds_the_position_until_its_outcome_is_known(lab, writer, delivery):
    topic, other = lab.topic(), lab.topic()
    lab.numbered(topic, range(3))
    transaction(writer, topic, b"open-1", b"open-2", end="later")
    lab.numbered(topic, range(3, 6))

    lane = lab.lane(topic, other, delivery=delivery)
    lab.numbered(other, range(3))
    lab.caught_up(lane, other)
    lab.until(lambda: lab.checkpoints()[topic, 0].offset == 3, "all before the open one", lane)
    assert lab.values(topic) == [b"0", b"1", b"2"]

    lane.stop()
    lane = lab.lane(topic, other, delivery=delivery)
    writer.commit_transaction(30)
    lab.caught_up(lane)
    assert lab.values(topic) == [b"0", b"1", b"2", b"open-1", b"open-2", b"3", b"4", b"5"]


@ENGINES
def test_what_cannot_be_read_is_no_record_that_a_client_does_not_hear_of(
    lab, writer, engine, monkeypatch
):
    """The lane asks the newest leader as well: markers, aborted and undecided records have offsets too."""
    answers = []
    take = NewestEnds.take

    def taken(asking):
        answers.append(take(asking))
        return answers[-1]

    monkeypatch.setattr(NewestEnds, "take", taken)
    monkeypatch.setattr(unheard_records, "LOOK_SECONDS", 0.1)  # so in each round of its checks
    aborted, undecided = lab.topic(), lab.topic()
    for topic in (aborted, undecided):
        lab.numbered(topic, range(3))
        transaction(writer, topic, b"no", end="abort")
    transaction(writer, undecided, b"later", end="later")

    lane = lab.lane(aborted, undecided, **engine)
    lab.caught_up(lane, aborted)
    wanted = len(answers) + SILENT_ROUNDS + 2
    lab.until(lambda: len(answers) >= wanted, "so many looks", lane)
    assert answers[-1][aborted, 0] == lab.end(aborted) == 5
    assert answers[-1].get((undecided, 0), 5) == 5
    told = [each.failure.code for each in lane.stats.partitions if each.failure]
    assert "NOT_MOVING" not in told, lane.log
    assert not any("another is opened" in line.event for line in lane.log)
    writer.commit_transaction(30)
    lab.caught_up(lane)


def state(records):
    """The value of each key that has one, as a compacted log states it."""
    latest = {seen.key: seen.value for seen in records}
    return {key: value for key, value in latest.items() if value is not None}


def test_compacted_topics_with_holes_and_empty_partitions_are_followed_to_their_end(lab, writer):
    holes = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
        "delete.retention.ms": "0",
    }
    topic = lab.topic(partitions=3, source=holes)
    lab.produce(topic, *({"key": b"k%d" % (n % 3), "value": b"%d" % n} for n in range(30)))
    lab.produce(topic, {"key": b"gone", "value": b"x"}, {"key": b"gone", "value": None})
    # Cleaning leaves the active segment alone: more records roll it.
    written = iter(range(100, 10_000))

    def cleaned() -> bool:
        lab.produce(topic, {"key": b"roll", "value": b"%d" % next(written)})
        return len(lab.on_source(topic)) < 20

    lab.until(cleaned, "the source to compact")
    lab.copied(topic)

    # Cleaning goes on meanwhile and may take a tombstone that the lane has copied: what a
    # compacted log states is the same with it and without.
    source, target = state(lab.on_source(topic)), state(lab.on_target(topic))
    assert target == source
    assert target == {
        b"k0": b"27",
        b"k1": b"28",
        b"k2": b"29",
        b"roll": b"%d" % (next(written) - 1),
    }
    checkpoints = lab.checkpoints()
    assert checkpoints[topic, 0].offset == lab.end(topic) > 32
    assert [checkpoints[topic, empty].offset for empty in (1, 2)] == [0, 0]
