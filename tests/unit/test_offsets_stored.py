"""What the checkpoints topic says, folded in whatever order its partitions are read."""

import pytest

from replicator.errors import StoredFormatError
from replicator.formats.checkpoint import Checkpoint
from replicator.offsets.index.index import OffsetIndex, index_pairs
from replicator.offsets.index.runs import Pair
from replicator.offsets.index.stored import StoredPartitions


def checkpoint(offset, at_ms, *, topic_id="one"):
    stored = Checkpoint("orders", 0, offset, topic_id=topic_id, at_ms=at_ms)
    return stored.key(), stored.value()


def test_the_newest_checkpoint_counts_for_any_order_of_partitions():
    stored = StoredPartitions()
    stored.fold(1, [checkpoint(20, 200, topic_id="two")])
    stored.fold(0, [checkpoint(10, 100)])
    assert (stored.of("orders", 0).copied_to, stored.of("orders", 0).topic_id) == (20, "two")
    assert stored.of("orders", 1).copied_to is None


def test_a_tombstone_after_a_lane_change_takes_nothing_away():
    stored = StoredPartitions()
    key, value = checkpoint(10, 100)
    stored.fold(0, [(key, value), (key, None)])
    assert stored.of("orders", 0).copied_to == 10


def test_after_a_lane_change_an_owner_whose_clock_is_behind_is_believed():
    stored = StoredPartitions()
    key, value = checkpoint(10, 500)
    stored.fold(0, [(key, value)])
    stored.fold(1, [(key, value)])
    stored.fold(0, [(key, None)])
    stored.fold(1, [checkpoint(30, 300)])
    assert stored.of("orders", 0).copied_to == 30


def test_index_entries_are_folded_and_outdated_ones_passed_over():
    stored, index = StoredPartitions(), OffsetIndex("orders", 0)
    for number in range(40):
        stored.fold(0, index.note(number * 10, number * 10, now=float(number), at_ms=0))
    stored.fold(0, index.note(200, 1_000, now=100.0, at_ms=0))
    pairs = index_pairs(stored.of("orders", 0).entries.values())
    assert pairs[-1] == Pair(200, 1_000)
    assert all(pair.source < 200 for pair in pairs[:-1])


@pytest.mark.parametrize("value", [b"nonsense", b'{"v":9}', b"{}"])
def test_a_checkpoint_that_cannot_be_read_is_refused(value):
    with pytest.raises(StoredFormatError):
        StoredPartitions().fold(0, [(checkpoint(1, 1)[0], value)])
