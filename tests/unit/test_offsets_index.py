"""The sparse index: bounded, densest at the new end, first and last never lost."""

import itertools

import pytest

from replicator.errors import StoredFormatError
from replicator.formats.checkpoint import decode_checkpoint
from replicator.offsets.index.index import (
    FIRST_SLOT,
    RING,
    SLOTS,
    LaneIndex,
    OffsetIndex,
    decode_index,
    encode_key,
    index_pairs,
    slot_of,
)
from replicator.offsets.index.runs import Pair


def store(stored, entries):
    for key, value in entries:
        if value is None:
            stored.pop(key, None)
        else:
            stored[key] = value


def filled(count, *, step=20_000):
    index, stored = OffsetIndex("orders", 3), {}
    for number in range(count):
        store(stored, index.note(number * step, number * step * 2, now=float(number), at_ms=number))
    return index, stored


def pairs(stored):
    return index_pairs(decode_index(stored).get(("orders", 3), []))


def test_the_number_of_keys_is_bounded_and_the_first_and_last_entry_stay():
    _, stored = filled(50_000)
    assert len(stored) <= SLOTS
    kept = pairs(stored)
    assert kept[0] == Pair(0, 0)
    assert kept[-1] == Pair(49_999 * 20_000, 49_999 * 40_000)


def test_the_distance_between_entries_grows_with_their_age_only():
    count = 20_000
    _, stored = filled(count, step=10_000)
    numbers = [pair.source // 10_000 for pair in pairs(stored)]
    for before, after in itertools.pairwise(numbers[1:]):
        age = count - before
        assert after - before <= max(2, 2 * age // RING + 1)


def test_an_entry_is_due_after_a_second_or_ten_thousand_records_and_never_without_progress():
    index = OffsetIndex("orders", 0)
    assert index.due(0, 0.0)
    index.note(0, 0, now=0.0, at_ms=0)
    assert not index.due(0, 100.0)
    assert not index.due(9_999, 0.9)
    assert index.due(1, 1.0)
    assert index.due(10_000, 0.1)
    assert index.note(5, 5, now=0.5, at_ms=0) == []


def test_a_stored_index_goes_on_where_it_was():
    first, stored = filled(100)
    again = OffsetIndex("orders", 3, decode_index(stored)["orders", 3])
    for index in (first, again):
        assert not index.due(99 * 20_000, 1e9)
    one = first.note(3_000_000, 1, now=1e6, at_ms=7)
    assert again.note(3_000_000, 1, now=1e6, at_ms=7) == one


def test_records_that_are_copied_again_take_the_entries_above_them_away():
    index, stored = filled(10)
    store(stored, index.note(5 * 20_000, 10_000_000, now=50.0, at_ms=0))
    assert [pair.source for pair in pairs(stored)] == [0, 20_000, 40_000, 60_000, 80_000, 100_000]
    assert pairs(stored)[-1].target == 10_000_000


def test_a_new_life_of_the_source_topic_starts_from_nothing():
    index, stored = filled(10)
    store(stored, index.restart())
    assert stored == {}
    store(stored, index.note(7, 900, now=100.0, at_ms=0))
    assert pairs(stored) == [Pair(7, 900)]
    assert encode_key("orders", 3, FIRST_SLOT) in stored


def test_entries_of_an_older_life_are_passed_over_where_their_tombstones_were_not_seen():
    index, stored = filled(10)
    index.restart()
    for number in range(3):
        store(stored, index.note(number, 900 + number, now=100.0 + number, at_ms=0))
    assert pairs(stored)[-3:] == [Pair(0, 900), Pair(1, 901), Pair(2, 902)]
    assert len(pairs(stored)) == 3


def test_a_lane_keeps_one_index_per_partition():
    lane = LaneIndex({})
    stored = {}
    store(stored, lane.note("orders", 0, 5, 6, now=0.0, at_ms=0))
    store(stored, lane.note("orders", 1, 7, 8, now=0.0, at_ms=0))
    store(stored, lane.restart("orders", 1))
    assert set(decode_index(stored)) == {("orders", 0)}
    assert not LaneIndex(stored).due("orders", 0, 5, 1e9)
    assert LaneIndex(stored).due("orders", 1, 0, 0.0)


def test_a_lane_finds_the_newest_pair_below_two_offsets():
    lane, stored = LaneIndex({}), {}
    for number in range(20):
        noted = lane.note("orders", 0, 10 * number, 11 * number, now=float(number), at_ms=0)
        store(stored, noted)
    for each in (lane, LaneIndex(stored)):
        assert each.newest_below("orders", 0, 191, 210) == (190, 209)
        assert each.newest_below("orders", 0, 191, 209) == (180, 198)
        assert each.newest_below("orders", 0, 180, 999) == (170, 187)
        assert each.newest_below("orders", 0, 0, 999) is None
        assert each.newest_below("orders", 1, 999, 999) is None


def test_checkpoint_readers_pass_over_index_entries():
    _, stored = filled(3)
    assert [decode_checkpoint(key, value) for key, value in stored.items()] == [None] * len(stored)


def test_slots_fall_on_levels_by_their_trailing_zeros():
    assert [slot_of(number) for number in (1, 2, 3, 4)] == [1, 1 + RING, 2, 1 + 2 * RING]
    assert max(slot_of(1 << shift) for shift in range(60)) < SLOTS


@pytest.mark.parametrize("value", [b"{}", b"[]", b"nonsense", b'{"v":2,"source":1}'])
def test_what_is_not_ours_is_refused_and_not_guessed_at(value):
    with pytest.raises(StoredFormatError):
        decode_index({encode_key("orders", 0, 1): value})
