"""Pauses between attempts grow, end at their limit and are never all the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.backoff import JITTER, Backoff


def test_a_pause_doubles_with_every_failure_up_to_its_limit():
    backoff = Backoff(0.5, 10.0)
    assert [backoff.seconds(failures) for failures in range(1, 8)] == [
        0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0,
    ]  # fmt: skip


def test_a_first_pause_is_never_longer_than_the_limit():
    assert Backoff(60.0, 30.0).seconds(1) == 30.0


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_chance_takes_off_a_quarter_at_most(failures, chance):
    backoff = Backoff(0.2, 5.0)
    whole = backoff.seconds(failures)
    assert whole * (1 - JITTER) <= backoff.seconds(failures, lambda: chance) <= whole


def test_any_number_of_failures_has_a_pause():
    assert Backoff(0.2, 5.0).seconds(10**9, lambda: 1.0) == pytest.approx(3.75)
