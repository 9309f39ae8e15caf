"""Small batches that wait one behind the other become one; their records stay what they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.batches.codec.header import checksum_holds, claim
from replicator.batches.codec.joined import joined
from replicator.batches.copy.outgoing import Outgoing, PartitionOut
from replicator.batches.copy.transactions import ProducerIdentity
from replicator.batches.network.buffers import Buffer
from replicator.errors import StoredFormatError
from replicator.wire.records.codecs import CODECS
from replicator.wire.records.record_batch import RawRecord, decode_batch, encode_batch

BYTES = st.none() | st.binary(max_size=200)
RECORD = st.tuples(
    st.integers(-1, 2**45),
    BYTES,
    BYTES,
    st.lists(st.tuples(st.binary(max_size=9), BYTES), max_size=3),
)


def batch_of(rows, codec="none"):
    records = [
        RawRecord(at, ms, "CreateTime", key, value, tuple(headers))
        for at, (ms, key, value, headers) in enumerate(rows)
    ]
    return memoryview(bytearray(encode_batch(records, codec=codec)))


def of_ours(data):
    claim(memoryview(data), producer_id=7, producer_epoch=1, base_sequence=3, transactional=True)
    return data


@given(
    st.lists(st.lists(RECORD, min_size=1, max_size=4), min_size=2, max_size=5),
    st.sampled_from(CODECS),
)
def test_every_record_is_there_byte_for_byte_and_in_order(parts, codec):
    data = of_ours(joined([batch_of(part, codec) for part in parts]))
    assert checksum_holds(memoryview(data))
    found = decode_batch(bytes(data))
    wanted = [row for part in parts for row in part]
    assert [(each.timestamp, each.key, each.value, list(each.headers)) for each in found] == wanted
    assert [each.offset for each in found] == list(range(len(wanted)))


def test_records_that_cannot_be_read_are_not_joined():
    damaged = batch_of([(1, b"k", b"v", [])])
    damaged[61] = 0x7E  # the record is said to be longer than its batch
    with pytest.raises(StoredFormatError):
        joined([batch_of([(1, b"k", b"v", [])]), damaged])


def waiting(*batches):
    partition = PartitionOut(("orders", 0))
    partition.pending.extend(batches)
    return partition


def small(value, told, *, joins=1000, codec="none", count=1):
    rows = [(5, None, value, [])] * count
    return Outgoing(
        batch_of(rows, codec),
        count,
        joins=joins,
        buffer=Buffer(bytearray(1), None),
        on_written=told,
    )


def test_each_part_of_a_joined_batch_hears_where_it_was_written():
    told = []
    batches = [
        small(b"a", told.append),
        small(b"b", told.append, count=3),
        small(b"c", told.append),
    ]
    before = sum(len(each.data) for each in batches)
    partition = waiting(*batches)
    changed = partition.join_first()
    (one,) = partition.pending
    assert (one.count, len(one.data)) == (5, before + changed)
    assert all(each.buffer._users == 0 for each in batches)
    partition.sent(one, ProducerIdentity(7, 1), transactional=True)
    assert (one.sequence, partition.sequence) == (0, 5)
    one.on_written(100)
    assert told == [100, 101, 104]
    one.on_written(-1)
    assert told[3:] == [-1, -1, -1]


def test_no_more_than_the_target_takes_is_joined_and_nothing_that_must_stay():
    one = small(b"a", None)
    partition = waiting(one, *(small(b"x" * 300, None) for _ in range(9)))
    partition.join_first()
    assert (
        len(partition.pending[0].data) <= 1000 < sum(len(each.data) for each in partition.pending)
    )
    stays = waiting(small(b"a", None), small(b"b", None, joins=0), small(b"c", None))
    assert stays.join_first() == 0
    assert [each.count for each in stays.pending] == [1, 1, 1]


def test_batches_of_different_codecs_stay_apart():
    mixed = waiting(*(small(b"a", None, codec=codec) for codec in ("none", "none", "gzip", "gzip")))
    mixed.join_first()
    assert [each.count for each in mixed.pending] == [2, 1, 1]
    mixed.pending.popleft()
    mixed.join_first()
    assert [each.count for each in mixed.pending] == [2]


def test_batches_that_cannot_be_read_go_as_they_are():
    damaged = small(b"b", None)
    damaged.data[61] = 0x7E
    stays = waiting(damaged, small(b"c", None))
    assert stays.join_first() == 0
    assert [(each.count, each.joins) for each in stays.pending] == [(1, 0), (1, 1000)]
    assert stays.pending[0] is damaged
