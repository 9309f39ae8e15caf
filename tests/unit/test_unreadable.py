"""Where reading goes on behind damaged offsets, found with few looks."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.batches.registry.unreadable import first_whole


@given(st.integers(0, 1000), st.integers(1, 5000), st.integers(0, 5000))
def test_nothing_that_can_be_read_is_given_up_behind_one_damaged_stretch(start, damaged, behind):
    end, asked = start + damaged + behind, []

    def whole(offset):
        asked.append(offset)
        return offset >= start + damaged

    assert first_whole(start, end, whole) == start + damaged
    assert len(asked) < 30


@given(st.integers(0, 50), st.integers(1, 200), st.sets(st.integers(0, 300)))
def test_after_any_damage_reading_resumes_at_a_readable_place_or_the_end(start, more, wholes):
    end = start + more
    found = first_whole(start, end, lambda offset: offset in wholes)
    assert start < found <= end
    assert found == end or found in wholes
