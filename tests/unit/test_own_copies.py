"""Copies are judged by their own lane's markers, whatever others have open in the same partition."""

import struct

from replicator.batches.codec.found_batches import found_batches
from replicator.batches.codec.header import CONTROL, CRC_FROM, TRANSACTIONAL
from replicator.batches.codec.stretch import Stretch
from replicator.batches.registry.marked_copies import MarkedCopies
from replicator.batches.registry.own_copies import Outcomes
from replicator.identifiers import HOPS_HEADER
from replicator.wire.records.record_batch import RawRecord, encode_batch

OURS, OLDER, OTHER, STRANGER = 7, 8, 9, 10


def copies(
    first: int, count: int, producer: int = OURS, *, transactional: bool = True, source: int = -1
) -> bytes:
    """A batch of copies; from ``source`` on, they name their place."""
    hops = [f"east/t/0/{source + at}".encode() for at in range(count)] if source >= 0 else ()
    records = [
        RawRecord(
            first + at, 1, "CreateTime", b"k", b"v",
            ((HOPS_HEADER.encode(), hops[at]),) if hops else (),
        )
        for at in range(count)
    ]  # fmt: skip
    return encode_batch(records, producer_id=producer, transactional=transactional)


def marker(at: int, producer: int = OURS, *, abort: bool = False) -> bytes:
    from crc32c import crc32c

    key = struct.pack(">hh", 0, 0 if abort else 1)
    batch = bytearray(
        encode_batch([RawRecord(at, 1, "CreateTime", key, b"")], producer_id=producer)
    )
    struct.pack_into(">h", batch, 21, CONTROL | TRANSACTIONAL)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[CRC_FROM:])))
    return bytes(batch)


def seen(*batches: bytes, start: int = 0, end: int = 100, marks: MarkedCopies | None = None):
    outcomes = Outcomes(start, lambda batch: batch.producer_id in {OURS, OLDER}, marks)
    data = memoryview(bytearray(b"".join(batches)))
    outcomes.take(found_batches(data, position=start, place="t/0"))
    return outcomes.found(start, end)


def test_another_writers_open_transaction_hides_no_copy_behind_it():
    found = seen(copies(0, 3, OTHER), copies(3, 2), marker(5), copies(6, 1, OTHER))
    assert found.copies.records == [Stretch(3, 2)]
    assert found.copies.complete
    assert not found.undecided


def test_an_aborted_copy_is_none_and_the_next_one_of_its_producer_is():
    found = seen(copies(0, 3), marker(3, abort=True), copies(4, 2), marker(6))
    assert found.copies.records == [Stretch(4, 2)]
    assert not found.undecided


def test_a_copy_whose_marker_is_missing_is_undecided_until_one_of_its_own_producer_stands_behind_it():
    assert seen(copies(0, 2), marker(2), copies(3, 4)).undecided
    assert seen(copies(0, 2), copies(2, 1, OLDER), marker(3, OLDER)).undecided
    found = seen(copies(0, 2), marker(2), copies(3, 4), marker(7, abort=True))
    assert found.copies.records == [Stretch(0, 2)]
    assert not found.undecided


def test_a_marker_behind_the_stretch_decides_what_is_in_it_and_what_is_undecided_there_does_not_matter():
    found = seen(copies(0, 4), marker(4), copies(5, 1), end=3)
    assert found.copies.records == [Stretch(0, 3)]
    assert not found.undecided


def test_copies_of_two_owners_are_in_the_order_of_the_log():
    found = seen(
        copies(0, 1), copies(1, 2, OLDER), marker(3, OLDER), marker(4),
        copies(5, 1, transactional=False),
    )  # fmt: skip
    assert found.copies.records == [Stretch(0, 1), Stretch(1, 2), Stretch(5, 1)]


def test_what_was_compacted_away_is_noticed():
    assert not seen(copies(0, 1), copies(3, 1), marker(4)).copies.complete


def test_copies_that_name_their_place_are_told_apart_and_have_an_outcome_too():
    marks = MarkedCopies(("east", "t", 0))
    found = seen(
        copies(0, 2, OTHER, source=40), marker(2, OTHER), copies(3, 1, OTHER, source=42),
        marker(4, OTHER, abort=True), copies(5, 2), marker(7), copies(8, 1, STRANGER), marks=marks,
    )  # fmt: skip
    assert found.pairs == ((40, 0), (41, 1))
    assert found.copies.records == [Stretch(5, 2)]
    assert found.silent == (Stretch(8, 1),)
    assert not found.undecided
    assert seen(copies(0, 1, OTHER, source=40), marks=marks).undecided
    assert not seen(copies(0, 1, STRANGER), marks=marks).undecided
    thinned = seen(copies(0, 1, source=40), marker(1), copies(3, 1), marker(4), marks=marks)
    assert not thinned.copies.complete
    assert thinned.copies.between(3, 4).complete
