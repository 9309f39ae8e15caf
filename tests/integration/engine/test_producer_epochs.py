"""A lane's producer comes to the end of its epochs: the coordinator gives it another producer id.

Epochs of a transactional id go up with every owner, to 32,766. The next owner gets a new producer id with
epoch 0, so that "the newer owner has the higher epoch" is no longer true of the two.
"""

import pytest

from replicator.batches.copy.transactions import Transactions
from replicator.identifiers import lane_transactional_id

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LAST_EPOCH = 32_766


def numbers(count):
    return [b"%d" % number for number in range(count)]


def taken(lab, *, until=lambda _epoch: True):
    """Takes the lane's id over, again and again until its epoch is as wanted; the producer then."""
    owner = Transactions(
        lab.plan(lab.target, "west"), client_id="test", timeout_seconds=60.0,
        transactional_id=lane_transactional_id(lab.name, "east", "west", 0),
    )  # fmt: skip
    try:
        owner.take_over(30.0)
        while not until(owner.identity.epoch):
            owner.take_over(30.0)
    finally:
        owner.close()
    return owner.identity


def test_owners_follow_each_other_past_the_last_epoch(lab):
    topic = lab.topic()
    lab.prepare()
    before = taken(lab, until=lambda epoch: epoch >= LAST_EPOCH - 3)
    written = 0
    for _ in range(6):
        lab.numbered(topic, range(written, written + 50))
        written += 50
        lab.copied(topic)
    assert lab.values(topic) == numbers(written)
    after = taken(lab)
    assert after.producer_id != before.producer_id
    assert after.epoch < before.epoch


def test_an_older_owner_with_the_last_epoch_is_fenced_by_the_first_one_of_the_next_id(lab):
    topic = lab.topic()
    lab.numbered(topic, range(100))
    lab.copied(topic)
    before = taken(lab, until=lambda epoch: epoch >= LAST_EPOCH - 1)
    older = lab.lane(topic)  # nothing to copy: it keeps the epoch that it begins with
    lab.caught_up(older)
    newer = lab.lane(topic)
    lab.caught_up(newer)
    assert older.ended is None
    lab.numbered(topic, range(100, 600))
    lab.caught_up(newer)
    lab.until(lambda: older.ended is not None, "the older one to end", older)
    assert older.ended.fenced, older.ended
    lab.numbered(topic, range(600, 700))
    lab.caught_up(newer)
    assert newer.ended is None
    newer.stop()
    assert lab.values(topic) == numbers(700)
    assert taken(lab).producer_id != before.producer_id
