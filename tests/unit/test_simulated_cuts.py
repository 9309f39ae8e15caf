"""Lanes on virtual time between clusters that lose what they had acknowledged; planted bugs are found.

The schedules are ``tests/support/simulated_cuts.py``, what must hold is in ``simulated_cuts_judge.py``. What is
known not to hold has a schedule of its own here, which must go on failing until it is mended.
"""

from dataclasses import replace

import pytest
from simulated_cuts import RISKS, run_cut_schedule
from simulated_lane import Chances

from replicator.dataplane.copy.refused_record_search import RefusedRecordFinder
from replicator.dataplane.lane import partitions
from replicator.dataplane.lane.partition_news import PartitionNews
from replicator.dataplane.lane.partitions import LanePartitions
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.progress.run_reports import RunReports
from replicator.dataplane.progress.target_log import TargetLog
from replicator.dataplane.takeover import own_transaction, source_looks, takeover, target_loss
from replicator.dataplane.takeover.changed_logs import ChangedLogs

CUTS, LOSSES = Chances(cuts=5), Chances(losses=4)
BOTH = Chances(cuts=4, losses=3)
MANY = Chances(cuts=25)
PAST = Chances(cuts=4, losses=3, past=40)
"""One broker of each cluster never hears of elections, and is often the one that is asked."""

SEEDS = 150
FOUND_WITHIN = 600
EVERYTHING = [
    ("exactly-once", CUTS),
    ("exactly-once", LOSSES),
    ("exactly-once", BOTH),
    ("exactly-once", PAST),
    ("at-least-once", replace(CUTS, sleep=0)),
    # A lane that sleeps would write behind a loss when it wakes up: nothing fences it.
    ("at-least-once", replace(LOSSES, sleep=0)),
]
SIDES = pytest.mark.parametrize(
    ("delivery", "chances"),
    EVERYTHING,
    ids=[
        "source",
        "target",
        "both",
        "brokers of the past",
        "source without transactions",
        "target without transactions",
    ],
)


def broken(seeds, delivery, chances):
    """The first schedule that breaks something; None where all hold."""
    for seed in seeds:
        found = run_cut_schedule(seed, delivery=delivery, chances=chances)
        if found:
            return seed, found
    return None


@SIDES
def test_what_is_lost_is_told_or_copied_again_in_any_schedule(delivery, chances):
    assert broken(range(SEEDS), delivery, chances) is None


@pytest.mark.slow
@pytest.mark.timeout(1800)
@SIDES
def test_ten_thousand_other_schedules_hold_too(delivery, chances):
    assert broken(range(SEEDS, SEEDS + 10_000), delivery, chances) is None


# -- what does not hold yet ------------------------------------------------------------------------

KNOWN = [
    ("aborted returns", "exactly-once", CUTS, 118),
    ("undecided in a unit", "exactly-once", LOSSES, 132),
]


def test_each_known_risk_has_a_schedule():
    assert {risk for risk, *_ in KNOWN} == set(RISKS)


@pytest.mark.xfail(strict=True, reason="not mended yet: see RISKS")
@pytest.mark.parametrize(
    ("risk", "delivery", "chances", "seed"), KNOWN, ids=[each[0] for each in KNOWN]
)
def test_a_risk_that_is_known_harms_nothing(risk, delivery, chances, seed):
    found = run_cut_schedule(seed, delivery=delivery, chances=chances, risks=frozenset({risk}))
    assert found == []


# -- planted bugs: one decision each is wrong -------------------------------------------------------


def stored(patch, **instead):
    """Checkpoints are made with other fields."""
    true = PartitionState.checkpoint
    patch.setattr(
        PartitionState, "checkpoint", lambda state, **k: replace(true(state, **k), **instead)
    )


def checkpoints_forget_the_leader_epoch(patch):
    stored(patch, position_epoch=-1, record_end=-1)


def checkpoints_forget_that_a_partition_is_stopped(patch):
    # With the epoch of its leader such a partition is found to be cut once more.
    a_position_behind_no_record_has_no_epoch(patch)
    stored(patch, problem="", detail="")


def decided(patch, change):
    """The source is asked, and something else is taken in."""
    true = takeover.decide_start
    patch.setattr(takeover, "decide_start", lambda held, facts, **k: change(true, held, facts, **k))


def a_cut_that_the_client_reports_is_not_believed(patch):
    decided(
        patch,
        lambda true, held, facts, **k: true(held, replace(facts, diverged=False), **k),
    )


def a_source_that_is_shorter_than_the_position_is_waited_for(patch):
    def change(true, held, facts, **k):
        least = 0 if held is None else held.offset
        return true(held, replace(facts, latest=max(facts.latest, least)), **k)

    decided(patch, change)


def a_gap_is_passed_without_a_word(patch):
    patch.setattr(PartitionNews, "_gave_up", lambda *_: None)


def targets_are_never_looked_at(patch):
    patch.setattr(takeover, "needs_look", lambda *_: False)
    patch.setattr(partitions, "needs_look", lambda *_: False)


def targets_are_not_looked_at_on_take_over(patch):
    patch.setattr(takeover, "needs_look", lambda *_: False)


def a_new_leader_of_the_target_is_no_reason_to_look(patch):
    true = target_loss.needs_look

    def change(claim, seen):
        return true(claim, replace(seen, leader_epoch=claim.leader_epoch))

    patch.setattr(takeover, "needs_look", change)
    patch.setattr(partitions, "needs_look", change)


def a_target_that_was_made_anew_is_taken_for_the_old_one(patch):
    patch.setattr(target_loss, "recreated", lambda *_: False)
    patch.setattr(takeover, "recreated", lambda *_: False)


def a_running_lane_never_looks_at_its_target(patch):
    patch.setattr(LanePartitions, "check_targets", lambda _: None)


def records_that_are_stored_too_low_are_committed(patch):
    true = RunReports.report_for

    def unexpected(reports, state, offset):
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(TargetLog, "report_for", lambda _, noted: (noted, -1))
            return true(reports, state, offset)

    patch.setattr(RunReports, "report_for", unexpected)


def healed(patch, more):
    true = takeover.find_loss

    def find(*a, **k):
        found = true(*a, **k)
        if found is None or found.resume_at is None:
            return found
        return replace(found, resume_at=max(0, found.resume_at + more))

    patch.setattr(takeover, "find_loss", find)


def healing_begins_one_too_late(patch):
    healed(patch, 1)


def healing_begins_one_too_early(patch):
    healed(patch, -1)


def copies_of_an_aborted_transaction_are_left_open(patch):
    patch.setattr(own_transaction, "_undecided", lambda *_: [])


def one_refused_record_makes_all_partitions_forget_their_last_copy(patch):
    # As it was until these schedules found it.
    true = RefusedRecordFinder._attempt

    def forget(finder, messages, refused):
        for by_partition in finder._table.values():
            for state in by_partition.values():
                state.target.last_copied = -1
        return true(finder, messages, refused)

    patch.setattr(RefusedRecordFinder, "_attempt", forget)


def an_aborted_unit_leaves_its_last_copy_in_the_claim(patch):
    # This too.
    true = TargetLog.aborted

    def kept(log):
        last = log.last_copied
        true(log)
        log.last_copied = last

    patch.setattr(TargetLog, "aborted", kept)


def a_loss_is_not_put_on_record(patch):
    stored(patch, target_loss=target_loss.TargetLoss())


def copies_of_an_older_source_log_count_as_the_last_ones(patch):
    # This, and the four below, too.
    patch.setattr(takeover, "last_copies_in_order", lambda look, wanted, _: look(wanted))


def a_position_behind_no_record_has_no_epoch(patch):
    patch.setattr(takeover, "learn_epochs", lambda *_: None)


def a_position_that_the_target_moved_back_has_no_epoch(patch):
    true = takeover.moved_back

    def change(*a, **k):
        return replace(true(*a, **k), position_epoch=-1, record_end=-1, epoch_of_leader=False)

    patch.setattr(takeover, "moved_back", change)
    patch.setattr(takeover, "learn_epochs", lambda *_: None)


def a_log_without_any_copy_lost_them_to_retention(patch):
    true = takeover.find_loss
    patch.setattr(takeover, "find_loss", lambda *a, **k: true(*a, **{**k, "never_deleted": False}))


def the_same_gap_is_told_once_however_often_it_opens(patch):
    true = PartitionNews.decided

    def change(news, state, decision):
        at_ms, state.committed_at_ms = state.committed_at_ms, 0
        true(news, state, decision)
        state.committed_at_ms = at_ms

    patch.setattr(PartitionNews, "decided", change)


def records_are_stored_under_a_new_leader_without_a_look(patch):
    # Known risks, these and the next three, until they were mended.
    patch.setattr(ChangedLogs, "confirm", lambda *_: None)


def a_topic_that_is_made_anew_in_a_unit_is_not_noticed(patch):
    true = TargetLog.changed
    patch.setattr(TargetLog, "changed", lambda log, epoch, _: true(log, epoch, ""))


def what_was_left_open_before_the_first_checkpoint_stays_open(patch):
    patch.setattr(takeover, "without_hidden_copies", _only_where_a_checkpoint_is)


def _only_where_a_checkpoint_is(look, abort_in):
    first = look.__name__ == "undecided"
    return {} if first else own_transaction.without_hidden_copies(look, abort_in)


def a_source_that_lost_a_marker_is_read_again_from_the_first_record_of_that_transaction(patch):
    decided(patch, lambda true, held, facts, **k: true(held, replace(facts, end=None), **k))


def brokers_of_the_past_are_believed(patch):
    # As it was, until this was tried on brokers.
    for asked in (takeover, source_looks):
        patch.setattr(asked, "stale_answers", lambda *_, **__: {})


def an_earlier_leader_of_the_target_is_believed(patch):
    patch.setattr(takeover, "stale_answers", lambda *_, **__: {})


def a_source_is_believed_by_whoever_answers(patch):
    patch.setattr(source_looks, "stale_answers", lambda *_, **__: {})


PLANTED = [
    (checkpoints_forget_the_leader_epoch, CUTS),
    (checkpoints_forget_that_a_partition_is_stopped, CUTS),
    (a_cut_that_the_client_reports_is_not_believed, CUTS),
    (a_source_that_is_shorter_than_the_position_is_waited_for, CUTS),
    (a_gap_is_passed_without_a_word, CUTS),
    (targets_are_never_looked_at, LOSSES),
    (targets_are_not_looked_at_on_take_over, LOSSES),
    (a_new_leader_of_the_target_is_no_reason_to_look, LOSSES),
    (a_target_that_was_made_anew_is_taken_for_the_old_one, LOSSES),
    (a_running_lane_never_looks_at_its_target, LOSSES),
    (healing_begins_one_too_late, LOSSES),
    (healing_begins_one_too_early, LOSSES),
    (copies_of_an_aborted_transaction_are_left_open, LOSSES),
    (one_refused_record_makes_all_partitions_forget_their_last_copy, LOSSES),
    (an_aborted_unit_leaves_its_last_copy_in_the_claim, LOSSES),
    (a_loss_is_not_put_on_record, LOSSES),
    (copies_of_an_older_source_log_count_as_the_last_ones, BOTH),
    (a_position_that_the_target_moved_back_has_no_epoch, BOTH),
    (a_log_without_any_copy_lost_them_to_retention, LOSSES),
    (records_are_stored_under_a_new_leader_without_a_look, LOSSES),
    (a_topic_that_is_made_anew_in_a_unit_is_not_noticed, LOSSES),
    (what_was_left_open_before_the_first_checkpoint_stays_open, LOSSES),
    (a_source_that_lost_a_marker_is_read_again_from_the_first_record_of_that_transaction, CUTS),
    (brokers_of_the_past_are_believed, PAST),
    (an_earlier_leader_of_the_target_is_believed, PAST),
    (a_source_is_believed_by_whoever_answers, PAST),
]
SELDOM_FOUND = [
    (a_position_behind_no_record_has_no_epoch, BOTH, 72),
    (a_position_behind_no_record_has_no_epoch, CUTS, 180),
    (records_that_are_stored_too_low_are_committed, LOSSES, 385),
    (the_same_gap_is_told_once_however_often_it_opens, MANY, 770),
]


@pytest.mark.parametrize(
    ("plant", "chances"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED]
)
def test_a_planted_bug_is_found(plant, chances, monkeypatch):
    plant(monkeypatch)
    assert broken(range(FOUND_WITHIN), "exactly-once", chances) is not None


@pytest.mark.parametrize(
    ("plant", "chances", "seed"),
    SELDOM_FOUND,
    ids=[f"{plant.__name__}-{seed}" for plant, _, seed in SELDOM_FOUND],
)
def test_a_planted_bug_that_seldom_shows_is_found(plant, chances, seed, monkeypatch):
    assert run_cut_schedule(seed, delivery="exactly-once", chances=chances) == []
    plant(monkeypatch)
    assert run_cut_schedule(seed, delivery="exactly-once", chances=chances) != []
