"""What several brokers say of who leads a log: the newest counts, and nothing while they mean different topics."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from replicator.errors import NotFoundError, TransientBrokerError
from replicator.identifiers import topic_id_text
from replicator.wire.connection.newest_leaders import newest, whom
from replicator.wire.connection.topic_questions import Leader, told_leaders

PLACE = ("log", 0)
BROKERS = {1: ("one", 9092), 2: ("two", 9092), 3: ("three", 9092)}
FIRST, SECOND = UUID(int=1), UUID(int=2)


def answer(*, leader=1, epoch=0, topic_id=FIRST, code=0, replicas=(1, 2), brokers=(1, 2, 3)):
    """Metadata of one broker; an older one has neither epochs nor ids."""
    part = SimpleNamespace(partition_index=0, leader_id=leader, replica_nodes=list(replicas))
    topic = SimpleNamespace(name="log", error_code=code, partitions=[] if code else [part])
    if epoch is not None:
        part.leader_epoch = epoch
    if topic_id is not None:
        topic.topic_id = topic_id
    named = [
        SimpleNamespace(node_id=number, host=BROKERS[number][0], port=BROKERS[number][1])
        for number in brokers
    ]
    return SimpleNamespace(topics=[topic], brokers=named)


def leader(*answers):
    """By what these brokers said."""
    known = [leaders[PLACE] for leaders in map(told_leaders, answers) if leaders]
    return newest(PLACE, known, subject="cluster:east")


def test_the_newest_leader_counts_whoever_is_asked_first():
    old, new = answer(leader=1, epoch=4), answer(leader=2, epoch=5)
    for answers in ((old, new), (new, old)):
        assert leader(*answers) == Leader(topic_id_text(FIRST.bytes), 5, BROKERS[2])


def test_who_has_not_heard_of_a_topic_is_no_proof_that_it_is_gone():
    assert leader(answer(code=3), answer()).address == BROKERS[1]
    with pytest.raises(NotFoundError):
        leader(answer(code=3), answer(code=3))


def test_two_topics_of_one_name_decide_nothing():
    with pytest.raises(TransientBrokerError, match="disagree which topic log is"):
        leader(answer(topic_id=FIRST, epoch=9), answer(topic_id=SECOND))


def test_brokers_without_ids_or_epochs_agree_with_all():
    ancient, upgraded = (
        answer(topic_id=None, epoch=None),
        answer(topic_id=UUID(int=0), epoch=2, leader=3),
    )
    assert leader(ancient, upgraded) == Leader("", 2, BROKERS[3])
    assert leader(answer(topic_id=None), answer()).epoch == 0


def test_a_partition_without_a_leader_has_no_address():
    assert told_leaders(answer(leader=-1, epoch=7))[PLACE] == Leader(
        topic_id_text(FIRST.bytes), 7, None
    )


def test_those_that_hold_the_log_are_asked_first():
    assert whom([answer(replicas=(3,))])[0] == BROKERS[3]
    assert set(whom([answer(replicas=(3, 2)), answer(brokers=(1,))])) == set(BROKERS.values())
