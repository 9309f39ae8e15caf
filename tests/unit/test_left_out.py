"""Records that were passed without a copy: kept with the checkpoint, in a bounded number, never guessed."""

from dataclasses import replace

import orjson

from replicator.batches.codec.stretch import Stretch, cut_out
from replicator.batches.registry.batch_bounds import StretchesOfLog
from replicator.dataplane.takeover.target_loss import TargetLossFound, moved_back
from replicator.formats.checkpoint import Checkpoint, decode_checkpoint
from replicator.formats.left_out import MOST, LeftOut
from replicator.offsets.translation.counted_copies import comparable

HELD = Checkpoint("orders", 3, 42, topic_id="A", quarantined=2, left_out=LeftOut((7, 30), 5))


def decoded(value: dict[str, object]) -> Checkpoint:
    found = decode_checkpoint(HELD.key(), orjson.dumps(value))
    assert found is not None
    return found


def test_they_are_stored_with_the_checkpoint_and_take_no_room_where_there_are_none():
    assert decode_checkpoint(HELD.key(), HELD.value()) == HELD
    assert b"leftOut" not in replace(HELD, left_out=LeftOut()).value()


def test_of_what_an_older_release_stored_or_handed_on_nothing_is_known():
    value = orjson.loads(HELD.value())
    assert decoded({**value, "offset": 50}).left_out == LeftOut((), 50)
    del value["leftOut"]
    assert decoded(value).left_out == LeftOut((), 42)
    assert decoded({**value, "quarantined": 0}).left_out == LeftOut()


def test_the_newest_are_kept_and_below_them_nothing_is_known():
    held = LeftOut()
    for offset in range(0, 10 * (MOST + 2), 10):
        held = held.with_offset(offset)
    assert held.offsets == tuple(range(20, 10 * (MOST + 2), 10))
    assert held.known_from == 11
    assert held.with_offset(20) == held  # copied again, and refused again
    assert LeftOut((7, 30)).behind(8) == LeftOut((30,), 8)


def test_what_is_read_again_is_left_out_again_or_not():
    found = TargetLossFound(30, "cut", 29)
    assert moved_back(HELD, found, at_ms=1).left_out == LeftOut((7,), 5)
    assert LeftOut((30,), 20).below(10) == LeftOut((), 10)


def test_single_offsets_are_cut_out_of_stretches():
    rows = [Stretch(0, 3), Stretch(5, 1), Stretch(8, 4)]
    assert cut_out(rows, ()) == rows
    assert cut_out(rows, {1, 5, 8, 11, 40}) == [Stretch(0, 1), Stretch(2, 1), Stretch(9, 2)]


def test_as_many_records_as_copies_say_nothing_where_one_may_have_no_copy_and_another_is_gone():
    whole, thinned = StretchesOfLog([], True), StretchesOfLog([], False)
    assert comparable(thinned, whole, known=True)
    assert not comparable(thinned, whole, known=False)
    assert comparable(whole, whole, known=False)
    assert not comparable(thinned, thinned, known=True)
