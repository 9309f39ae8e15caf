"""Looks come ever less often while nothing moves, and at the first pace again once something does."""

import pytest

from replicator.control.tasks.watch.adaptive_interval import AdaptiveInterval

PACE, SLOWEST = 2.0, 10.0


@pytest.fixture
def easing():
    return AdaptiveInterval(pace_seconds=PACE, slowest_seconds=SLOWEST)


def looks(easing, *, turns, quiet):
    """At which turns of the pace a look was taken."""
    taken = []
    for turn in range(turns):
        now = turn * PACE
        if easing.due(now):
            taken.append(turn)
            easing.looked(now, quiet=quiet(turn))
    return taken


def test_the_first_look_is_taken_at_once(easing):
    assert easing.due(0.0)
    assert easing.due(1e9)


def test_what_moves_is_looked_at_every_turn(easing):
    assert looks(easing, turns=6, quiet=lambda _: False) == [0, 1, 2, 3, 4, 5]


def test_what_rests_is_looked_at_ever_less_often_down_to_the_slowest_pace(easing):
    # Pauses of 4, 8 and then 10 s at turns of 2 s.
    assert looks(easing, turns=25, quiet=lambda _: True) == [0, 2, 6, 11, 16, 21]


def test_a_move_brings_the_first_pace_back(easing):
    assert looks(easing, turns=12, quiet=lambda turn: turn < 6) == [0, 2, 6, 7, 8, 9, 10, 11]


def test_a_turn_that_comes_a_moment_early_is_not_passed_over(easing):
    easing.looked(0.0, quiet=True)
    assert not easing.due(2.9)
    assert easing.due(3.9)
