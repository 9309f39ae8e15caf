"""Role changes on virtual time lose, repeat and shut out nothing, whatever happens when; planted bugs are found.

The model is ``tests/support/simulated_sides.py``, the schedules are ``simulated_transitions.py``.
"""

import pytest
from simulated_transition_schedule import run_schedule
from simulated_transitions import Chances

from replicator.failover.clusters import fencing, lag, reverse_flow
from replicator.failover.report.backlog import Backlog
from replicator.failover.rules import before, machine
from replicator.failover.run import executor, runner, taking
from replicator.failover.steps import failback, fence_steps, overtaken_fences, switchover
from replicator.failover.steps.journal import Journal, TakenOverError
from replicator.failover.steps.transition_context import TransitionContext

SEEDS = 150
FOUND_WITHIN = 3_000
FOUND_SOMETHING = (
    3, 15, 30, 38, 43, 80, 101, 149, 165, 208, 910, 1899, 2290, 3787, 6876, 7660, 10516, 10903, 11624, 13584,
    13999, 15390, 17451, 20094, 23301, 31710, 36392, 43957,
)  # fmt: skip
"""Schedules that have found something; most mean something else since what they found was mended."""


def broken(seeds, *, failovers=True):
    """The first schedule that breaks something; None where all hold."""
    for seed in seeds:
        found = run_schedule(seed, chances=Chances(failovers=failovers))
        if found:
            return seed, found
    return None


def test_a_link_comes_through_any_role_changes_whole():
    assert broken(range(SEEDS)) is None


def test_planned_changes_alone_lose_nothing():
    assert broken(range(SEEDS), failovers=False) is None


def test_schedules_that_once_found_something_hold_now():
    assert broken(FOUND_SOMETHING) is None


def settled(seed, failovers, monkeypatch):
    """What was said of fences that somebody rolled back while they were put up."""
    told = []
    true = overtaken_fences.settle

    def settle(*about):
        try:
            true(*about)
        except TakenOverError as error:
            told.append(error)
            raise

    monkeypatch.setattr(overtaken_fences, "settle", settle)
    monkeypatch.setattr(fence_steps, "settle", settle)
    assert run_schedule(seed, chances=Chances(failovers=failovers)) == []
    return told


@pytest.mark.parametrize(("seed", "failovers"), [(9846, False), (43957, True)])
def test_a_fence_that_had_been_rolled_back_is_on_record_again(seed, failovers, monkeypatch):
    told = settled(seed, failovers, monkeypatch)
    assert "was put up again here: DENY WRITE for User:app on t" in told[0].message
    assert "replicator switchover --link dr --rollback" in told[0].remedy


def test_rules_that_no_fence_on_record_names_are_told(monkeypatch):
    told = settled(2290, True, monkeypatch)
    assert "that were added here: DENY WRITE for User:app on t" in told[0].message
    assert "--remove --operation Write --deny-principal" in told[0].remedy


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("failovers", [True, False])
def test_twenty_thousand_other_schedules_hold_too(failovers):
    assert broken(range(SEEDS, SEEDS + 20_000), failovers=failovers) is None


# -- planted bugs: one decision each is wrong -------------------------------------------------------


def a_rollback_leaves_a_promoted_link_mirroring(patch):
    patch.setattr(taking, "rest_of", lambda _state: "mirroring")


def a_flow_begins_where_its_cluster_was_promoted_last(patch):
    def newest(promotions, active):
        own = [one for one in promotions if one.cluster == active]
        own.sort(key=lambda one: one.epoch)
        return before.ReverseStart(0, own[-1].ends if own else {})

    patch.setattr(failback, "reverse_start", newest)


def an_injected_tail_is_injected_again(patch):
    patch.setattr(failback.FailbackSteps, "_injected", lambda _: {})


def an_injected_tail_is_copied_as_well(patch):
    patch.setattr(failback, "behind_injected", lambda starts, *_: dict(starts))


def a_lost_answer_takes_the_journal_back(patch):
    def own(held):
        held._owned = True

    patch.setattr(Journal, "_own", own)


def who_was_overtaken_goes_on(patch):
    patch.setattr(TransitionContext, "_refuse_overtaken", lambda *_: None)
    patch.setattr(Journal, "check_ours", lambda _: None)


def a_fence_that_was_rolled_back_meanwhile_stays(patch):
    patch.setattr(fence_steps, "settle", lambda *_: None)


def a_fence_that_was_rolled_back_meanwhile_is_removed_by_who_wakes(patch):
    def settle(run, cluster, plan, error):
        seen = overtaken_fences._on_record(run, cluster)
        if set(seen.values()) == {None}:
            fencing.remove_fence(run.clusters, cluster, plan.fencing, plan.record)

    patch.setattr(fence_steps, "settle", settle)


def a_fence_of_the_active_cluster_survives_a_rollback(patch):
    patch.setattr(executor, "remove_fences", lambda _: [])


def a_failback_that_is_rolled_back_opens_the_passive_cluster(patch):
    patch.setattr(
        fence_steps, "_opened_again", lambda run, one: one.transition == run.journal.header.id
    )


def what_is_replaced_is_ended_before_the_last_look(patch):
    true = runner.begin

    def begin(held, clusters, *, replaced, overtaken):
        if replaced is not None:
            held.supersede(replaced, lambda: None)
        true(held, clusters, replaced=replaced, overtaken=overtaken)

    patch.setattr(runner, "begin", begin)


def the_link_is_not_looked_at_again_under_the_lock(patch):
    patch.setattr(taking, "_check_again", lambda *_: None)


def a_drained_cluster_is_promoted_by_what_was_read_before(patch):
    patch.setattr(switchover, "measure_backlog", lambda *_, **__: Backlog({}))


def a_record_past_the_fence_is_not_noticed(patch):
    patch.setattr(lag, "first_record", lambda *_: None)
    patch.setattr(fencing, "apply_fence", lambda *_, **__: None)
    patch.setattr(fence_steps, "apply_fence", lambda *_, **__: None)


def lanes_are_not_fenced_at_a_promotion(patch):
    patch.setattr(switchover, "fence_lanes", lambda *_, **__: 0)


def the_reverse_flow_begins_at_its_first_record(patch):
    def place(clusters, source, starts, **how):
        return reverse_flow.place_starts(clusters, source, dict.fromkeys(starts, 0), **how)

    patch.setattr(switchover, "place_starts", place)


def the_reverse_flow_begins_one_record_too_late(patch):
    def place(clusters, source, starts, **how):
        late = {place: offset + 1 for place, offset in starts.items()}
        return reverse_flow.place_starts(clusters, source, late, **how)

    patch.setattr(switchover, "place_starts", place)
    patch.setattr(failback, "place_starts", place)


def a_promoted_link_can_be_rolled_back(patch):
    patch.setattr(executor, "promoted", lambda _: False)
    patch.setattr(machine, "promoted", lambda _: False)


PLANTED = [
    a_rollback_leaves_a_promoted_link_mirroring,
    a_flow_begins_where_its_cluster_was_promoted_last,
    an_injected_tail_is_injected_again,
    an_injected_tail_is_copied_as_well,
    a_lost_answer_takes_the_journal_back,
    who_was_overtaken_goes_on,
    a_fence_that_was_rolled_back_meanwhile_stays,
    a_fence_that_was_rolled_back_meanwhile_is_removed_by_who_wakes,
    a_fence_of_the_active_cluster_survives_a_rollback,
    a_failback_that_is_rolled_back_opens_the_passive_cluster,
    what_is_replaced_is_ended_before_the_last_look,
    the_link_is_not_looked_at_again_under_the_lock,
    a_drained_cluster_is_promoted_by_what_was_read_before,
    a_record_past_the_fence_is_not_noticed,
    lanes_are_not_fenced_at_a_promotion,
    the_reverse_flow_begins_at_its_first_record,
    the_reverse_flow_begins_one_record_too_late,
    a_promoted_link_can_be_rolled_back,
]
FIRST = {
    an_injected_tail_is_copied_as_well: 3_750,
    what_is_replaced_is_ended_before_the_last_look: 650,
    a_fence_that_was_rolled_back_meanwhile_is_removed_by_who_wakes: 22_800,
}
"""The first schedule for bugs that only few find."""


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    first = FIRST.get(plant, 0)
    assert broken(range(first, first + FOUND_WITHIN)) is not None
