"""What stands in a stretch of a log, and whether anything was compacted away there."""

from replicator.batches.codec.found_batches import found_batches
from replicator.batches.codec.stretch import Stretch
from replicator.batches.registry.batch_bounds import records_of
from replicator.wire.records.record_batch import RawRecord, encode_batch


def batch(*offsets: int) -> bytes:
    """A batch with records at these offsets."""
    return encode_batch([RawRecord(at, 1, "CreateTime", b"k", b"v") for at in offsets])


def read(*batches: bytes, position: int):
    found = found_batches(memoryview(bytearray(b"".join(batches))), position=position, place="t/0")
    return records_of(found, position=position, counts=lambda _: True)


def test_batches_without_holes_are_complete():
    part, behind = read(batch(5, 6), batch(7, 8, 9), position=5)
    assert part.complete
    assert sum(one.count for one in part.records) == 5
    assert behind == 10


def test_a_stretch_that_begins_inside_a_batch_is_complete():
    assert read(batch(5, 6), batch(7), position=6)[0].complete


def test_a_batch_that_was_thinned_is_not():
    part, behind = read(batch(5, 6), batch(7, 9), position=5)
    assert not part.complete
    assert part.records[-2:] == [Stretch(7, 1), Stretch(9, 1)]
    assert behind == 10


def test_a_batch_that_is_gone_leaves_a_hole():
    part, _ = read(batch(5, 6), batch(9), position=5)
    assert not part.complete
    assert not read(batch(5, 6), position=4)[0].complete
