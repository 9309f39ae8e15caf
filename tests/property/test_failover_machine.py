"""The order of role changes: every interrupted prefix, with each fact good, bad, missing or late."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.failover.rules.machine import (
    STATE_AFTER,
    STATE_OF,
    Action,
    Step,
    TransitionFacts,
    TransitionProgress,
    decide,
    promoted,
    steps_of,
)
from replicator.topology.roles import COPYING

SEQUENCES = {
    "switchover": steps_of("switchover"),
    "failover": steps_of("failover"),
    "failback": steps_of("failback"),
    "failback to mirroring": steps_of("failback", and_switch=False),
}
GOOD = TransitionFacts(lag_records=0, fence_holds=True, groups_ready=True)
LOOKS = [
    TransitionFacts(
        lag_records=lag,
        fence_holds=fence,
        groups_ready=groups,
        waited_seconds=waited,
        patience_seconds=10.0,
    )
    for lag, fence, groups, waited in itertools.product(
        (None, 0, 7), (None, True, False), (None, True, False), (0.0, 11.0)
    )
]


def prefixes():
    for name, steps in SEQUENCES.items():
        for done in range(len(steps) + 1):
            for rolling_back in (False, True):
                yield pytest.param(
                    TransitionProgress(steps, frozenset(steps[:done]), rolling_back),
                    id=f"{name} after {done}{' rolled back' if rolling_back else ''}",
                )


def promotes_safely(progress: TransitionProgress, facts: TransitionFacts, action: Action) -> bool:
    """Invariant 1: a switchover promotes only on fresh and good facts."""
    if action.step is not Step.PROMOTE or Step.FENCE not in progress.steps:
        return True
    before = {Step.FENCE, Step.DRAIN, Step.VERIFY} <= progress.done
    return before and facts.fence_holds is True and facts.lag_records == 0


def keeps_what_was_promoted(progress: TransitionProgress, action: Action) -> bool:
    """Invariant 2: nothing is taken back once the new side was promoted."""
    return not (promoted(progress) and action.do == "roll-back")


def repeats_nothing(progress: TransitionProgress, action: Action) -> bool:
    """Invariant 3: a step that was done is not done again, and none is left out."""
    return action.do != "run" or action.step is progress.next


@pytest.mark.parametrize("progress", list(prefixes()))
def test_no_interrupted_prefix_with_any_fact_missing_or_late_breaks_an_invariant(progress):
    for facts in LOOKS:
        action = decide(progress, facts)
        assert promotes_safely(progress, facts, action), (facts, action)
        assert keeps_what_was_promoted(progress, action), (facts, action)
        assert repeats_nothing(progress, action), (facts, action)
        assert action.reason


@pytest.mark.parametrize("progress", list(prefixes()))
def test_every_prefix_comes_to_its_end_once_facts_are_good(progress):
    for _ in range(len(progress.steps) + 1):
        action = decide(progress, GOOD)
        if action.do != "run":
            break
        progress = replace(progress, done=progress.done | {action.step})
    if not progress.rolling_back:
        assert action.do == "finish"
    else:
        assert action.do == ("stop" if promoted(progress) else "roll-back")


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(SEQUENCES)),
    st.lists(st.sampled_from(LOOKS), max_size=60),
    st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_no_history_of_looks_and_crashes_promotes_on_stale_facts(name, looks, crashes):
    progress = TransitionProgress(SEQUENCES[name])
    for facts, crashed in zip(looks, crashes, strict=False):
        action = decide(progress, facts)
        assert promotes_safely(progress, facts, action)
        assert keeps_what_was_promoted(progress, action)
        if action.do == "run" and not crashed:  # a crash before the journal: the step is not done
            progress = replace(progress, done=progress.done | {action.step})
        if action.do == "roll-back":
            assert not promoted(progress)
            return


def test_a_write_past_the_fence_takes_everything_back_until_the_promotion():
    steps = SEQUENCES["switchover"]
    for done in (2, 3, 4):
        progress = TransitionProgress(steps, frozenset(steps[:done]))
        assert decide(progress, replace(GOOD, fence_holds=False)).do == "roll-back"


def test_groups_that_do_not_finish_reading_are_waited_for_and_then_left_behind():
    steps = SEQUENCES["switchover"]
    progress = TransitionProgress(steps, frozenset(steps[:3]))
    assert progress.next is Step.VERIFY
    reading = replace(GOOD, groups_ready=False, patience_seconds=10.0)
    assert decide(progress, reading).do == "wait"
    assert decide(progress, replace(reading, waited_seconds=10.0)).do == "run"


def test_copying_stops_before_an_epoch_begins_and_goes_on_only_when_starts_are_placed():
    assert STATE_OF[Step.DRAIN] in COPYING
    assert STATE_OF[Step.PROMOTE] not in COPYING
    assert STATE_OF[Step.DECLARE] not in COPYING
    assert STATE_AFTER[Step.COMPLETE] not in COPYING
    assert STATE_AFTER[Step.TURN] in COPYING
    assert STATE_AFTER[Step.REALIGN] in COPYING


@pytest.mark.parametrize(
    ("judge", "progress", "facts", "action"),
    [
        (
            promotes_safely,
            TransitionProgress(SEQUENCES["switchover"], frozenset(SEQUENCES["switchover"][:4])),
            replace(GOOD, lag_records=1),
            Action("run", "planted", Step.PROMOTE),
        ),
        (
            lambda progress, _facts, action: keeps_what_was_promoted(progress, action),
            TransitionProgress(SEQUENCES["failover"], frozenset(SEQUENCES["failover"][:2])),
            GOOD,
            Action("roll-back", "planted"),
        ),
        (
            lambda progress, _facts, action: repeats_nothing(progress, action),
            TransitionProgress(SEQUENCES["failover"], frozenset({Step.DECLARE})),
            GOOD,
            Action("run", "planted", Step.DECLARE),
        ),
    ],
)
def test_each_invariant_notices_when_it_is_broken_on_purpose(judge, progress, facts, action):
    assert not judge(progress, facts, action)
