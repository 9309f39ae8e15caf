"""The one search for cycles against a naive one."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.policy.copies.routes import leads_to

PLACES = st.sampled_from("abcdef")
ARROWS = st.lists(st.tuples(PLACES, PLACES), max_size=14)


@given(ARROWS, PLACES, PLACES)
def test_a_way_is_found_where_and_only_where_there_is_one(arrows, start, goal):
    reached = {start}
    for _ in "abcdef":  # no way without repetition is longer than there are places
        reached |= {there for here, there in arrows if here in reached}
    assert leads_to(iter(arrows), start, goal) == (goal in reached)


def test_a_place_leads_to_itself():
    assert leads_to([], "a", "a")
