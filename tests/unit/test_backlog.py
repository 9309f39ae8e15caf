"""What a flow still has to copy: a partition counts as copied only by an answer of its own."""

import pytest

from replicator.control.records.role_records import ContactRecord, TopicContact
from replicator.failover.report.backlog import (
    Backlog,
    SourceLook,
    Unknown,
    backlog_of,
    returned_short,
)
from replicator.failover.report.loss import loss_by_backlog, loss_by_contact
from replicator.failover.report.report import Loss
from replicator.failover.rules.machine import (
    SWITCHOVER,
    Step,
    TransitionFacts,
    TransitionProgress,
    decide,
)
from replicator.formats.checkpoint import Checkpoint

KEY = ("orders", 0)
COPIED = {KEY: Checkpoint("orders", 0, 10, topic_id="one")}


@pytest.mark.parametrize(
    ("look", "copied", "reason"),
    [
        (SourceLook({}), COPIED, "does not list it"),
        (SourceLook({}, refused={KEY: "no leader"}), COPIED, "no leader"),
        (SourceLook({KEY: 4}), COPIED, "ends at 4, and was copied up to 10"),
        (SourceLook({KEY: 10}, topic_ids={"orders": "two"}), COPIED, "created anew"),
        (SourceLook({}, absent={"orders": "hidden"}), COPIED, "hidden"),
        (SourceLook({KEY: 10}), {KEY: Checkpoint("orders", 0, 10, problem="TRUNCATED")}, "stopped"),
    ],
)
def test_what_no_answer_covers_is_unknown_and_never_0(look, copied, reason):
    found = backlog_of(look, copied, {"orders": 1})
    assert found.known is None
    assert [reason in one.reason for one in found.unknown] == [True]
    assert not loss_by_backlog(found).known


def test_what_is_copied_to_its_end_is_known_to_be():
    look = SourceLook({KEY: 10}, topic_ids={"orders": "one"})
    assert backlog_of(look, COPIED, {"orders": 1}) == Backlog({KEY: 0})
    assert returned_short(look, COPIED) == ()


def test_a_topic_that_its_drill_deleted_is_not_missed():
    look = SourceLook(
        {KEY: 10}, topic_ids={"orders": "one"}, gone=frozenset({"replicator-drill.d.1"})
    )
    copied = {**COPIED, ("replicator-drill.d.1", 0): Checkpoint("replicator-drill.d.1", 0, 5)}
    assert backlog_of(look, copied, {"orders": 1, "replicator-drill.d.1": 1}) == Backlog({KEY: 0})
    assert returned_short(look, copied) == ()


def test_only_records_up_to_the_given_ends_count_and_none_of_partitions_that_came_later():
    look = SourceLook({KEY: 20, ("orders", 1): 7})
    assert backlog_of(look, COPIED, {"orders": 2}, {KEY: 12}).records == {KEY: 2}


def test_an_open_transaction_makes_the_loss_a_bound():
    found = backlog_of(SourceLook({KEY: 14}, stable={KEY: 12}), COPIED, {"orders": 1})
    assert (found.open_from, found.known) == ({KEY: 12}, 4)
    assert not loss_by_backlog(found).exact


def test_a_cluster_that_returned_with_less_than_it_gave_is_named():
    short = returned_short(SourceLook({KEY: 4}), COPIED)
    assert [one.words() for one in short] == [
        "orders/0: its log ends at 4, and was copied up to 10"
    ]


def test_a_switchover_waits_for_what_is_unknown_and_is_rolled_back_with_the_reason():
    progress = TransitionProgress(SWITCHOVER, frozenset(SWITCHOVER[:2]))
    facts = TransitionFacts(fence_holds=True, unknown="orders: hidden")
    assert progress.next is Step.DRAIN
    assert decide(progress, facts).do == "wait"
    late = TransitionFacts(fence_holds=True, unknown="orders: hidden", waited_seconds=99.0)
    assert decide(progress, late).do == "roll-back"
    assert "orders: hidden" in decide(progress, late).reason


def contact(at_ms, *ends):
    topic = TopicContact(topic="orders", ends=ends, records_per_second=0.0)
    return ContactRecord(source="east", link="dr", at_ms=at_ms, topics=(topic,))


@pytest.mark.parametrize(
    ("now_ms", "since_ms", "known"), [(20_000, 0, True), (61_001, 0, False), (20_000, 2_000, False)]
)
def test_a_contact_that_is_old_or_of_another_role_never_gives_0_records(now_ms, since_ms, known):
    loss = loss_by_contact(contact(1_000, 10), COPIED, now_ms=now_ms, since_ms=since_ms)
    assert (loss.records, loss.known) == (0, known)
    assert known or "unknown since 1970-01-01 00:00:01 UTC" in loss.words()


def test_partitions_and_topics_that_the_last_contact_did_not_read_are_unknown():
    loss = loss_by_contact(contact(0, 10, -1), COPIED, now_ms=1, topics=["orders", "later"])
    assert [(one.topic, one.partition) for one in loss.unknown] == [("orders", 1), ("later", -1)]
    assert Loss.from_json(loss.as_json()) == loss


def test_a_loss_of_a_release_before_is_still_read():
    told = {"records": 2, "exact": True, "known": True, "topics": []}
    assert Loss.from_json(told).unknown == ()
    assert Unknown("a", "b").as_json()["partition"] is None
