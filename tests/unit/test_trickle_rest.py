"""A lane rests behind records that come quickly, not behind a few, and not behind a backlog."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.dataplane.session.trickle_rest import (
    BACKLOG_BYTES,
    BACKLOG_RECORDS,
    FEW_RECORDS,
    LONGEST_REST_SECONDS,
    REST_SECONDS,
    TrickleRest,
)


def rests(*, per_second: float, at_once: int, step_seconds: float = 0.0005, size: int = 100):
    """What a lane rests behind each of its steps over a second in which records come evenly, ``at_once`` of them at a time."""
    rest, found, now, taken = TrickleRest(0.0), [], 0.0, 0
    while now < 1.0:
        there = int(now * per_second) // at_once * at_once - taken
        if there:
            taken += there
            found.append(rest.seconds(there, there * size, began=now, now=now + step_seconds))
            now += found[-1]
        now += step_seconds
    return found


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_a_thousand_a_second_are_copied_as_they_come(at_once):
    assert not any(rests(per_second=1_000, at_once=at_once))


@pytest.mark.parametrize("at_once", [1, 3, 10, 40])
def test_ten_thousand_a_second_are_rested_behind_however_few_each_step_finds(at_once):
    found = rests(per_second=10_000, at_once=at_once)
    assert found.count(REST_SECONDS) > 0.9 * len(found) > 100


def test_a_machine_that_is_slow_gets_longer_rests_up_to_a_bound():
    found = rests(per_second=10_000, at_once=10, step_seconds=0.003)[2:]
    assert found == [pytest.approx(0.006)] * len(found)
    assert max(rests(per_second=10_000, at_once=10, step_seconds=0.02)) <= LONGEST_REST_SECONDS


@pytest.mark.parametrize(("found", "size"), [(BACKLOG_RECORDS, 1), (FEW_RECORDS, BACKLOG_BYTES)])
def test_behind_a_backlog_of_many_or_of_large_records_there_is_no_rest(found, size):
    assert TrickleRest(0.0).seconds(found, size, began=0.0, now=0.001) == 0.0


@given(
    st.lists(
        st.tuples(st.integers(0, 750), st.integers(0, 10**8), st.floats(0, 1), st.floats(0, 1))
    )
)
def test_a_rest_is_none_or_within_its_bounds(steps):
    rest, now = TrickleRest(0.0), 0.0
    for found, size, waited, took in steps:
        began, now = now + waited, now + waited + took
        seconds = rest.seconds(found, size, began=began, now=now)
        assert seconds == 0.0 or REST_SECONDS <= seconds <= LONGEST_REST_SECONDS
        now += seconds
