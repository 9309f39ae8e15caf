"""What stands in a log that both engines wrote: copies by their marks, and copies by their producer."""

import pytest

from replicator.batches.codec.found_batches import found_batches
from replicator.batches.codec.header import HEADER
from replicator.batches.codec.stretch import Stretch
from replicator.batches.registry.marked_copies import MarkedCopies
from replicator.batches.registry.mixed_log import MixedLog
from replicator.identifiers import HOPS_HEADER
from replicator.wire.records.record_batch import RawRecord, encode_batch

OURS, STRANGER = 7, 9
HERE = ("east", "orders", 0)


def batch(first: int, producer: int, *hops: str, codec="none", thinned: bool = False) -> bytes:
    """A batch with a record for each hop list, without a header for an empty one."""
    records = [
        RawRecord(
            first + at * (1 + thinned), 1, "CreateTime", None, b"v",
            ((HOPS_HEADER.encode(), hop.encode()),) if hop else (),
        )
        for at, hop in enumerate(hops)
    ]  # fmt: skip
    return encode_batch(records, producer_id=producer, codec=codec)


def seen(*batches: bytes, start: int = 0, replayed: frozenset[int] = frozenset()) -> MixedLog:
    log = MixedLog(
        start, MarkedCopies(HERE, replayed=replayed), lambda batch: batch.producer_id == OURS
    )
    data = memoryview(bytearray(b"".join(batches)))
    for each in found_batches(data, position=start, place="orders/0"):
        log.take(each)
    return log


def hops(*offsets: int) -> list[str]:
    return [f"east/orders/0/{offset}" for offset in offsets]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_both_kinds_of_copies_are_told_whatever_the_codec(codec):
    log = seen(
        batch(0, STRANGER, *hops(5, 6), codec=codec), batch(2, OURS, "", "", "", codec=codec),
        batch(5, OURS, *hops(11), codec=codec),
    )  # fmt: skip
    assert log.pairs == [(5, 0), (6, 1), (11, 5)]
    assert log.counted == [Stretch(2, 3)]
    assert log.own == [Stretch(2, 3), Stretch(5, 1)]
    assert (log.silent, log.holes, log.records, log.decoded) == ([], [], 6, 3)


def test_records_of_others_are_no_copies():
    log = seen(
        batch(0, STRANGER, "", "north/orders/0/3", "east/orders/1/4", "east", "not ours!"),
        batch(5, STRANGER, ""),
    )
    assert (log.pairs, log.counted, log.own) == ([], [], [])
    assert log.silent == [Stretch(at, 1) for at in (0, 3, 4, 5)]


def test_a_whole_batch_whose_writer_handed_headers_on_is_counted():
    log = seen(batch(0, OURS, "", "east/orders/0/1", "north/orders/0/2"))
    assert (log.pairs, log.counted) == ([], [Stretch(0, 3)])


def test_what_was_put_back_from_quarantine_says_nothing_of_its_place():
    log = seen(batch(0, STRANGER, *hops(5, 6)), replayed=frozenset({5}))
    assert log.pairs == [(6, 1)]
    assert log.silent == []


def test_a_stretch_that_begins_inside_a_batch_has_what_follows():
    log = seen(batch(0, OURS, "", "", ""), batch(3, STRANGER, *hops(8)), start=2)
    assert (log.counted, log.pairs, log.holes) == ([Stretch(2, 1)], [(8, 3)], [])
    assert seen(batch(0, STRANGER, *hops(1, 2, 3)), start=1).pairs == [(2, 1), (3, 2)]


def test_what_was_compacted_away_is_a_hole_where_it_stood():
    log = seen(
        batch(0, OURS, ""), batch(3, OURS, "", "", thinned=True), batch(6, OURS, ""),
        batch(7, STRANGER, *hops(9, 11), thinned=True),
    )  # fmt: skip
    assert log.holes == [(1, 3), (3, 6), (7, 10)]
    assert log.copies(6, 7).complete
    assert log.copies(0, 1).complete
    assert not log.copies(0, 4).complete


def test_a_batch_that_compaction_emptied_is_a_hole():
    empty = bytearray(batch(0, OURS, "", ""))[: HEADER.size]
    fields = list(HEADER.unpack(empty))
    fields[1], fields[12] = HEADER.size - 12, 0
    HEADER.pack_into(empty, 0, *fields)
    from crc32c import crc32c

    empty[17:21] = crc32c(bytes(empty[21:])).to_bytes(4, "big")
    assert seen(bytes(empty), batch(2, OURS, "")).holes == [(0, 2)]
