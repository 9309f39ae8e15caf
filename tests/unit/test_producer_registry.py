"""What is stored of producer ids, and which records of a batch they keep from going back."""

import pytest

from replicator.batches.codec.found_batches import DamagedBatchError, found_batches
from replicator.batches.registry.returning import ReturnGuard
from replicator.errors import StoredFormatError
from replicator.formats.producer_registry import (
    RegisteredProducer,
    RegistryMemory,
    decode_memory,
    decode_producer,
)
from replicator.identifiers import HOPS_HEADER, checkpoints_topic, topologies_from
from replicator.policy.copies.provenance import Arrivals, path_hop
from replicator.policy.values import Naming
from replicator.wire.records.codecs import CODECS
from replicator.wire.records.record_batch import RawRecord, encode_batch

OURS = RegisteredProducer(7, "west", "east", "orders", 3, 1_700_000_000_000)
NAME = HOPS_HEADER.encode()


def test_a_registration_is_read_as_it_was_written_and_other_kinds_are_passed_over():
    assert decode_producer(OURS.key, OURS.value) == OURS
    assert decode_producer(OURS.key, None) is None
    assert decode_producer(b'{"kind":"pause","v":1}', b"{}") is None
    for value in (b"{}", b"no json", OURS.value.replace(b'"v":1', b'"v":2')):
        with pytest.raises(StoredFormatError):
            decode_producer(OURS.key, value)


def test_what_a_lane_has_seen_is_kept_beside_its_checkpoints():
    memory = RegistryMemory(frozenset({7, 9}))
    key, value = memory.stored()
    assert decode_memory({b"other": b"x", key: value}) == memory
    assert decode_memory({}) == RegistryMemory()
    with pytest.raises(StoredFormatError):
        decode_memory({key: b"{}"})


def test_topologies_that_copy_from_a_cluster_are_told_by_their_topics_on_the_target():
    topics = [
        checkpoints_topic("shop", "west"), checkpoints_topic("a.b", "west"),
        checkpoints_topic("shop", "north"), "__replicator.shop.control", "west.checkpoints", "t",
    ]  # fmt: skip
    assert topologies_from(["west"], topics) == {"shop", "a.b"}
    assert topologies_from(["west", "north"], topics) == {"shop", "a.b"}
    assert topologies_from([], topics) == set()


def guard(source_of=lambda _: None):
    arrivals = Arrivals((("west", Naming("identity")),))
    return ReturnGuard(source_of, blocked=("west",), arrivals=arrivals)


def batch(*headers, producer=-1, codec="none"):
    records = [
        RawRecord(at, 1_000, "CreateTime", None, b"v" * 50, each) for at, each in enumerate(headers)
    ]
    data = encode_batch(records, base_offset=0, codec=codec, producer_id=producer)
    (found,) = found_batches(memoryview(bytearray(data)), position=0, place="t/0")
    return found


def test_a_registered_batch_is_never_sent_back_and_others_are_not_opened():
    def source_of(producer):
        return {7: "west", 8: "north"}.get(producer)

    copies, onward, own = (batch((), (), producer=each) for each in (7, 8, 9))
    assert list(guard(source_of).returning(copies, "t", 0)) == [0, 1]
    assert not guard(source_of).returning(onward, "t", 0)
    own.data[61:] = b"\xff" * (len(own.data) - 61)  # nobody looks
    assert not guard(source_of).returning(own, "t", 0)


@pytest.mark.parametrize("codec", CODECS)
def test_records_with_a_header_of_the_other_side_stay_and_their_neighbours_go(codec):
    returning = ((NAME, path_hop("west", "t")),)
    forwarded = ((NAME, path_hop("west", "other")),)
    found = batch((), returning, forwarded, returning, codec=codec)
    assert sorted(guard().returning(found, "t", 0)) == [1, 3]


def test_a_batch_that_must_be_opened_and_cannot_be_is_damaged_and_not_passed():
    found = batch((), codec="zstd")
    found.data[61:] = b"\xff" * (len(found.data) - 61)
    with pytest.raises(DamagedBatchError):
        guard().returning(found, "t", 0)
