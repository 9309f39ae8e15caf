"""How much a unit of progress holds, over lines of any rate."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.policy.capacity.unit_bytes import (
    AIM_SECONDS,
    FIRST_BYTES,
    LEAST_BYTES,
    MOST_BYTES,
    UnitBytes,
)

SECONDS_OPEN = 60.0
"""How long a transaction may be open."""


@given(rate=st.integers(20_000, 1_000_000_000), far=st.floats(0.0, 0.3))
def test_over_any_line_a_unit_is_stored_in_time_and_is_no_smaller_than_it_must_be(rate, far):
    unit, seconds = UnitBytes(), 0.0
    for _ in range(20):
        seconds = unit.most_bytes / rate + 4 * far
        assert seconds < SECONDS_OPEN, "it would be aborted, and written again"
        unit.stored(unit.most_bytes, seconds)
    assert not unit.bounded or seconds >= AIM_SECONDS / 4


@given(st.lists(st.tuples(st.integers(0, 2 * MOST_BYTES), st.floats(0.0, 100.0))))
def test_it_is_never_nothing(stored):
    unit = UnitBytes()
    for size, seconds in stored:
        unit.stored(size, seconds)
        assert unit.most_bytes >= LEAST_BYTES


def test_units_that_were_not_full_say_nothing_of_the_line():
    unit = UnitBytes()
    unit.stored(FIRST_BYTES // 10, 0.001)
    assert unit.most_bytes == FIRST_BYTES
    unit.stored(FIRST_BYTES // 2, 0.001)
    assert unit.most_bytes == 4 * FIRST_BYTES
    unit.stored(FIRST_BYTES, 2 * AIM_SECONDS)
    assert unit.most_bytes == FIRST_BYTES // 2


def test_a_fast_line_is_not_bounded_after_three_units():
    unit = UnitBytes()
    for _ in range(3):
        assert unit.bounded
        unit.stored(unit.most_bytes, 0.05)
    assert not unit.bounded
