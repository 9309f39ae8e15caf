"""Transactions whose outcome nobody heard of, and owners that were replaced."""

import threading

import pytest
from confluent_kafka import Producer
from lane_lab import LaneLab

from replicator.identifiers import checkpoints_topic, lane_transactional_id
from replicator.kafka.logs import compacted_log


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_commits_cut_off_at_any_instant_lose_nothing_and_repeat_nothing(lab, proxied, unique):
    cut = LaneLab(lab.source, proxied, name=unique)
    cut.survives_cuts_of(proxied.proxy)


def test_answers_that_get_lost_leave_an_outcome_that_is_looked_up(lab, proxied, unique):
    """Commits arrive and their answers do not: neither done nor failed until somebody reads."""
    cut = LaneLab(lab.source, proxied, name=unique)
    topic = cut.topic()
    cut.prepare()
    lane = cut.lane(topic, commit_interval_seconds=0.05)
    cut.numbered(topic, range(500))
    cut.caught_up(lane)
    cut.numbered(topic, range(500, 3000))
    proxied.proxy.black_hole("to-client")
    threading.Event().wait(1.0)
    lane.lane.stop(1)  # gives up on the silent target in its drain time
    lane.lane.join(30)
    assert not lane.lane.is_alive()
    proxied.proxy.heal()
    lane = cut.lane(topic)
    try:
        cut.caught_up(lane)
        assert cut.values(topic) == numbers(3000)
    finally:
        cut.close()


@pytest.mark.parametrize("busy", [True, False])
def test_the_older_of_two_owners_is_fenced_and_writes_nothing_more(lab, busy):
    topic = lab.topic()
    lab.numbered(topic, range(2000))
    older = lab.lane(topic)
    if busy:
        lab.until(lambda: older.lane._counters.outcome.copied > 0, "its first records", older)
    else:
        lab.caught_up(older)
    newer = lab.lane(topic)
    lab.caught_up(newer)
    lab.numbered(topic, range(2000, 4000))
    lab.caught_up(newer)

    lab.until(lambda: older.ended is not None, "the older one to end", older)
    assert older.ended.fenced
    assert older.stats.state == "failed"
    assert "replaced" in older.ended.reason
    assert newer.ended is None
    assert lab.values(topic) == numbers(4000)


def test_a_transaction_that_the_broker_takes_away_ends_the_lane_and_a_new_one_goes_on(lab):
    topic = lab.topic()
    lab.numbered(topic, range(10))
    lane = lab.lane(topic)
    lab.caught_up(lane)
    # What the coordinator does when a transaction takes too long: it takes the next epoch.
    thief = Producer(
        {
            **lab.target.client_settings(),
            "transactional.id": lane_transactional_id(lab.name, "east", "west", 0),
        }
    )
    thief.init_transactions(30)
    lab.numbered(topic, range(10, 20))

    lab.until(lambda: lane.ended is not None, "the lane to end", lane)
    assert lane.ended.fenced
    lane = lab.lane(topic)
    lab.caught_up(lane)
    assert lab.values(topic) == numbers(20)


@pytest.mark.parametrize(
    "engine", [{}, {"engine": "batches", "provenance": "path"}], ids=["records", "batches"]
)
def test_a_lane_whose_checkpoints_are_hidden_says_by_whom_while_it_waits(
    lab, unique, monkeypatch, engine
):
    monkeypatch.setattr(compacted_log, "TOLD_SECONDS", 0.5)
    topic = lab.topic()
    lab.copied(topic, **engine)
    producer = Producer({**lab.target.client_settings(), "transactional.id": f"other-{unique}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(checkpoints_topic(lab.name, "east"), b"open", b"key", 0)
    producer.flush(30)
    lab.numbered(topic, range(10))
    lane = lab.lane(topic, **engine)
    lab.until(lambda: f"'other-{unique}'" in lane.stats.target_problem, "whose it is", lane)
    assert lane.stats.state == "recovering"
    assert "hides what was written behind it" in lane.stats.reason
    producer.abort_transaction(30)
    lab.caught_up(lane)
    assert lab.values(topic) == [b"%d" % number for number in range(10)]
    lab.until(lambda: not lane.stats.target_problem, "the end of the problem", lane)
    told = [line for line in lane.log if line.event == "lane waits for its checkpoints"]
    assert len(told) == 1
    assert told[0].fields["remedy"]
