"""Promotion by itself: flapping, one-way cuts and slow but living primaries never promote."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.failover.rules.request import Question
from replicator.failover.rules.witness_decision import (
    LEAST_LOOKS,
    WitnessLook,
    judge,
    keep,
    patience_seconds,
)
from replicator.failover.run.automatic import why_refused
from replicator.policy.procedure import Automatic

RULE = Automatic(witness_cluster="central", after_seconds=30.0, interval_seconds=2.0)
WORDS = st.sampled_from([True, False, None])


def looks(*words, every=2.0):
    return tuple(WitnessLook(number * every, *each) for number, each in enumerate(words))


def verdict(taken):
    return judge(taken, RULE, now_seconds=taken[-1].at_seconds if taken else 0.0)


GONE = (False, False)


def test_gone_for_the_whole_time_by_both_promotes_and_a_moment_less_does_not():
    assert not verdict(looks(*[GONE] * 15)).promote
    assert verdict(looks(*[GONE] * 16)).promote
    assert "of 30 s" in verdict(looks(*[GONE] * 5)).reason


def test_a_flapping_primary_is_never_replaced():
    taken = looks(*([GONE] * 14 + [(True, True)]) * 6)
    for end in range(1, len(taken)):
        assert not verdict(taken[:end]).promote


def test_a_slow_primary_that_answers_now_and_then_is_never_replaced():
    taken = looks(*([(False, False)] * 9 + [(True, False)]) * 8)
    for end in range(1, len(taken)):
        assert not verdict(taken[:end]).promote


def test_a_cut_in_one_direction_only_is_seen_by_the_witness():
    taken = looks(*[(False, True)] * 60)
    assert not verdict(taken).promote
    assert "only our own connection" in verdict(taken).reason


def test_a_witness_that_is_cut_off_with_us_says_nothing_and_nothing_happens():
    assert not verdict(looks(*[(False, None)] * 60)).promote
    assert not verdict(looks(*[(None, False)] * 60)).promote


def test_a_worker_that_slept_starts_over():
    early = looks(*[GONE] * 14)
    late = tuple(WitnessLook(100.0 + look.at_seconds, *GONE) for look in looks(*[GONE] * 5))
    assert not verdict((*early, *late)).promote
    assert not judge(looks(*[GONE] * 16), RULE, now_seconds=100.0).promote


@given(st.lists(st.tuples(WORDS, WORDS), max_size=80))
def test_only_a_whole_stretch_of_agreement_promotes(words):
    taken = looks(*words)
    wanted = len(words) >= 16 and all(each == GONE for each in words[-16:])
    assert verdict(taken).promote == wanted
    assert verdict(keep(taken, RULE)).promote == wanted


@given(st.floats(10.0, 600.0), st.floats(1.0, 60.0))
def test_a_slow_primary_has_more_than_an_interval_to_answer_and_a_dead_one_is_still_judged(
    after, interval
):
    rule = Automatic(witness_cluster="central", after_seconds=after, interval_seconds=interval)
    patience = patience_seconds(rule)
    assert patience >= max(interval, after / 4)
    # Probes that nobody answers come one patience apart at most: not too far apart to be one stretch.
    count = max(LEAST_LOOKS, int(after / patience) + 2)
    taken = looks(*[GONE] * count, every=max(patience, interval))
    assert judge(taken, rule, now_seconds=taken[-1].at_seconds).promote


def test_a_promotion_that_is_refused_says_why():
    asked = Question("The loss will be 5 records.", 5)
    assert not why_refused(asked, most=5)
    assert why_refused(asked, most=4) == "5 records would be lost, 4 may be (maxLostRecords)"
    unknown = Question("How much will be lost is unknown.", 0, loss_known=False)
    assert "is not known; a person may accept it: How much" in why_refused(unknown, most=5)
    living = Question("", 0, old_side_answers=True)
    assert "answers again" in why_refused(living, most=5)
