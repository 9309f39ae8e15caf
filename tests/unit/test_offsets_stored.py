"""What the checkpoints topic says, folded in whatever order its partitions are read."""

import pytest

from replicator.errors import StoredFormatError
from replicator.formats.checkpoint import Checkpoint
from replicator.offsets.index import OffsetIndex, index_pairs
from replicator.offsets.runs import Pair
from replicator.offsets.stored import StoredPartitions


def checkpoint(offset, at_ms, *, topic_id="one"):
    stored = Checkpoint("orders", 0, offset, topic_id=topic_id, at_ms=at_ms)
    return stored.key(), stored.value()


def test_the_newest_checkpoint_counts_whatever_partition_is_read_last():
    lines = StoredPartitions()
    lines.fold([checkpoint(20, 200, topic_id="two"), checkpoint(10, 100)])
    assert (lines.of("orders", 0).copied_to, lines.of("orders", 0).topic_id) == (20, "two")
    assert lines.of("orders", 1).copied_to is None


def test_a_tombstone_after_a_lane_change_takes_nothing_away():
    lines = StoredPartitions()
    key, value = checkpoint(10, 100)
    lines.fold([(key, value), (key, None)])
    assert lines.of("orders", 0).copied_to == 10


def test_index_entries_are_folded_and_outdated_ones_passed_over():
    lines, index = StoredPartitions(), OffsetIndex("orders", 0)
    for number in range(40):
        lines.fold(index.note(number * 10, number * 10, now=float(number), at_ms=0))
    lines.fold(index.note(200, 1_000, now=100.0, at_ms=0))
    pairs = index_pairs(lines.of("orders", 0).entries.values())
    assert pairs[-1] == Pair(200, 1_000)
    assert all(pair.source < 200 for pair in pairs[:-1])


@pytest.mark.parametrize("value", [b"nonsense", b'{"v":9}', b"{}"])
def test_a_checkpoint_that_cannot_be_read_is_refused(value):
    with pytest.raises(StoredFormatError):
        StoredPartitions().fold([(checkpoint(1, 1)[0], value)])
