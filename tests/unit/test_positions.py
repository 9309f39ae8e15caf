"""Where a partition goes on: every case of the decision, by name."""

import pytest

from replicator.dataplane.takeover.start_position import SourceLog, StartDecision, decide_start
from replicator.formats.checkpoint import Checkpoint
from replicator.policy.values import StartFrom

FACTS = SourceLog(topic_id="A", earliest=10, latest=50)


def at(offset: int, **fields: object) -> Checkpoint:
    return Checkpoint("orders", 0, offset, **{"topic_id": "A", **fields})


def decide(
    checkpoint: Checkpoint | None,
    facts: SourceLog = FACTS,
    *,
    start_from: StartFrom | None = None,
    policy: str = "stop",
    token: str = "",
    unreadable: tuple[int, int] | None = None,
) -> StartDecision:
    return decide_start(
        checkpoint,
        facts,
        start_from=start_from or StartFrom(),
        on_truncation=policy,
        accept_gap=token,
        unreadable=unreadable,
    )


@pytest.mark.parametrize(
    ("start_from", "at_timestamp", "offset"),
    [
        (StartFrom(), None, 10),
        (StartFrom("latest"), None, 50),
        (StartFrom("timestamp", 1), 30, 30),
        (StartFrom("timestamp", 1), 3, 10),
        (StartFrom("timestamp", 1), None, 50),
    ],
    ids=["earliest", "latest", "time", "time before the log", "time after the log"],
)
def test_a_first_start_follows_the_policy_and_is_stored(start_from, at_timestamp, offset):
    facts = SourceLog("A", 10, 50, at_timestamp)

    decision = decide(None, facts, start_from=start_from)

    assert (decision.offset, decision.store, decision.problem) == (offset, True, "")


@pytest.mark.parametrize("offset", [10, 30, 50])
def test_a_position_inside_the_log_is_where_it_continues_under_any_start_policy(offset):
    decision = decide(at(offset), start_from=StartFrom("latest"))

    assert (decision.offset, decision.store, decision.problem) == (offset, False, "")


def test_lost_records_stop_the_partition_at_its_position():
    decision = decide(at(4))

    assert (decision.problem, decision.offset, decision.lost) == ("TRUNCATED", 4, None)
    assert "offsets 4 to 9 vanished" in decision.detail


def test_lost_records_are_passed_and_put_into_words_where_the_policy_reports():
    decision = decide(at(4), policy="report")

    assert (decision.problem, decision.offset, decision.lost) == ("", 10, (4, 10))
    assert decision.store


def test_a_token_lets_a_stopped_partition_go_on_once():
    stopped = at(4, problem="TRUNCATED", detail="d")

    accepted = decide(stopped, token="t1")
    later = decide(at(4, problem="TRUNCATED", detail="d", accepted_gap="t1"), token="t1")

    assert (accepted.problem, accepted.offset, accepted.accepted_gap) == ("", 10, "t1")
    assert later.problem == "TRUNCATED", "a token counts once"


def test_a_log_that_ends_below_the_position_stops_and_goes_on_at_its_end_when_accepted():
    assert decide(at(60)).problem == "TRUNCATED"
    assert decide(at(60), token="t").offset == 50
    assert decide(at(60), policy="report").offset == 50


def test_a_transaction_of_the_source_that_is_open_again_is_not_copied_twice():
    """The log lost the marker, so that it is stable up to 50 only; the copies reach 55."""
    behind = SourceLog("A", 10, 50, end=70)
    passed = decide(at(55), behind, policy="report")
    assert (passed.offset, passed.lost) == (55, (55, 55))
    stopped = decide(at(55), behind)
    assert stopped.problem == "TRUNCATED"
    assert "transaction at offset 50 of the source is open again" in stopped.detail
    # Told once: until the transaction ends the lane knows no epoch but the leader's.
    waiting = at(55, position_epoch=4, record_end=55, epoch_of_leader=True)
    assert decide(waiting, behind) == StartDecision(55, "from its checkpoint")
    shorter = SourceLog("A", 10, 50, end=52)
    assert decide(at(55), shorter, policy="report").offset == 52
    assert decide(waiting, shorter).problem == "TRUNCATED"


def test_a_log_that_was_cut_and_rewritten_stops_though_it_is_long_enough():
    facts = SourceLog("A", 10, 50, diverged=True)

    assert decide(at(30), facts).problem == "TRUNCATED"
    passed = decide(at(30), facts, policy="report")
    assert (passed.problem, passed.offset, passed.lost) == ("", 30, (30, 30))
    stopped = at(30, problem="TRUNCATED", detail="d")
    assert decide(stopped, token="t").problem == ""


def test_another_topic_id_is_another_topic_wherever_the_position_is():
    for offset in (4, 30, 60):
        assert decide(at(offset, topic_id="OLD")).problem == "RECREATED"
        accepted = decide(at(offset, topic_id="OLD"), token="t")
        assert (accepted.problem, accepted.offset) == ("", 10)
        assert "deleted and created again" in accepted.detail
        assert decide(at(offset, topic_id="OLD"), policy="report").offset == 10


def test_a_stop_whose_cause_is_no_longer_visible_stays_until_an_operator_ends_it():
    stopped = at(30, problem="TRUNCATED", detail="the log ended below")

    assert decide(stopped).problem == "TRUNCATED"
    assert decide(stopped, policy="report").problem == "TRUNCATED"
    accepted = decide(stopped, token="t")
    assert (accepted.problem, accepted.offset) == ("", 30)


def test_a_stop_that_is_known_already_is_not_stored_again():
    first = decide(at(4))
    assert first.store
    assert not decide(at(4, problem="TRUNCATED", detail=first.detail)).store


def test_a_refused_record_stays_refused_until_accepted_and_the_token_is_not_stored_before():
    refused = at(30, problem="TARGET_REFUSES", detail="offset 30: too large")

    kept = decide(refused)
    tried = decide(refused, token="t")

    assert (kept.problem, kept.offset, kept.store) == ("TARGET_REFUSES", 30, False)
    assert (tried.problem, tried.offset, tried.accepted_gap) == ("", 30, "t")
    assert not tried.store, "a restart in between must find the stop, and the token unused"


def test_a_checkpoint_without_a_topic_id_is_judged_by_its_offsets_alone():
    assert decide(at(30, topic_id="")).offset == 30
    assert decide(at(30), SourceLog("", 10, 50)).offset == 30


@pytest.mark.parametrize("offset", [20, 24])
def test_what_cannot_be_read_is_skipped_once_by_an_operator(offset):
    decision = decide(at(offset), token="t", unreadable=(20, 30))

    assert (decision.offset, decision.lost, decision.accepted_gap) == (30, (20, 30), "t")
    assert decision.store
    assert "offsets 20 to 29 cannot be read" in decision.detail
    again = decide(at(20, accepted_gap="t"), token="t", unreadable=(20, 30))
    assert (again.offset, again.lost, again.store) == (20, None, False)


def test_what_comes_before_it_is_copied_first_and_the_acceptance_waits():
    decision = decide(at(15), token="t", unreadable=(20, 30))

    assert (decision.offset, decision.lost, decision.accepted_gap) == (15, None, "")


def test_behind_it_the_acceptance_is_used_up():
    decision = decide(at(31), token="t", unreadable=(20, 30))

    assert (decision.offset, decision.lost, decision.accepted_gap) == (31, None, "t")
    assert decision.store


def test_more_is_not_passed_over_than_the_source_has():
    decision = decide(at(45), token="t", unreadable=(45, 90))

    assert (decision.offset, decision.lost) == (50, (45, 50))


def test_accepting_damaged_records_accepts_no_other_loss():
    assert decide(at(4), token="t", unreadable=(4, 30)).problem == "TRUNCATED"
    assert decide(at(20, topic_id="B"), token="t", unreadable=(4, 30)).problem == "RECREATED"
    stopped = at(20, problem="TARGET_REFUSES", detail="too large")
    assert decide(stopped, token="t", unreadable=(4, 30)).problem == "TARGET_REFUSES"
    another = decide(at(20, topic_id="B"), policy="report", token="t", unreadable=(20, 30))
    assert (another.offset, another.accepted_gap) == (10, "t")
