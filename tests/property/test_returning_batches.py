"""Copies in whole batches between two clusters that write the same topic, against a naive model."""

from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.batches.codec.found_batches import found_batches
from replicator.batches.codec.header import claim
from replicator.batches.codec.repack import packed_anew
from replicator.batches.registry.returning import ReturnGuard
from replicator.formats.producer_registry import RegisteredProducer, decode_producer
from replicator.identifiers import HOPS_HEADER
from replicator.policy.copies.provenance import Arrivals, append, find_hops, path_hop
from replicator.policy.values import Naming
from replicator.wire.records.codecs import CODECS
from replicator.wire.records.record_batch import RawRecord, decode_batch, encode_batch

TOPIC = "orders"
SIDES = ("east", "west")
NAME = HOPS_HEADER.encode()
ELSEWHERE = b"west/other/0/7"
"""A hop list of another topic, as applications forward it with records of their own."""


class Side:
    """A cluster with one partition: batches by their first offset, and a registry."""

    def __init__(self, alias):
        self.alias = alias
        self.log = bytearray()
        self.end = 0
        self.control = []
        self.producers = 100 if alias == "east" else 200

    def append(self, batch, count):
        written = bytearray(batch)
        written[0:8] = self.end.to_bytes(8, "big")
        self.log += written
        self.end += count

    def new_producer(self):
        self.producers += 1
        return self.producers

    def source_of(self, producer_id):
        found = [decode_producer(key, value) for key, value in self.control]
        return next((one.source for one in found if one.producer_id == producer_id), None)

    def values(self):
        return [
            record.value
            for batch in found_batches(memoryview(self.log), position=0, place=TOPIC)
            for record in decode_batch(bytes(batch.data))
        ]


class Way:
    """One direction: reads a side from its position on, in either engine."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        self.position = 0
        self.producer = None
        naming = ((target.alias, Naming("identity")),)
        self.guard = ReturnGuard(
            source.source_of, blocked=(target.alias,), arrivals=Arrivals(naming)
        )

    def restart(self):
        self.producer = self.target.new_producer()
        registered = RegisteredProducer(self.producer, self.source.alias, self.target.alias)
        self.target.control.append((registered.key, registered.value))

    def copy(self, *, engine, most):
        batches = found_batches(
            memoryview(bytearray(self.source.log)), position=self.position, place=TOPIC
        )
        for found in list(batches)[:most]:
            without = self.guard.returning(found, TOPIC, 0)
            if engine == "batches":
                self._whole(found, without)
            else:
                self._records(found, without)
            self.position = found.last_offset + 1

    def _whole(self, found, without):
        if self.producer is None:
            self.restart()
        if not without:
            parts = [(memoryview(bytearray(found.data)), found.count)]
        else:
            packed = packed_anew(
                found, position=self.position, most_bytes=10_000, place=TOPIC, without=without
            )
            parts = [(part.data, part.count) for part in packed]
        for data, count in parts:
            claim(
                data, producer_id=self.producer, producer_epoch=0, base_sequence=0,
                transactional=False,
            )  # fmt: skip
            self.target.append(data, count)

    def _records(self, found, without):
        kept = [one for one in decode_batch(bytes(found.data)) if one.offset not in without]
        records = [self._marked(at, record) for at, record in enumerate(kept)]
        if records:
            self.target.append(encode_batch(records), len(records))

    def _marked(self, at, record):
        headers = [(name.decode(), value) for name, value in record.headers]
        there = find_hops(headers)
        ours = there.value is not None and self.guard._arrivals.wrote(there.value, TOPIC, 0)
        value = append(there.value if ours else None, path_hop(self.source.alias, TOPIC))
        kept = tuple(one for one in record.headers if not (ours and one[0] == NAME))
        return RawRecord(
            at, record.timestamp, "CreateTime", record.key, record.value, (*kept, (NAME, value))
        )


WRITES = st.tuples(
    st.just("write"), st.sampled_from(SIDES), st.integers(1, 5), st.sampled_from(CODECS),
    st.booleans(), st.booleans(),
)  # fmt: skip
COPIES = st.tuples(
    st.just("copy"),
    st.sampled_from((0, 1)),
    st.sampled_from(("batches", "records")),
    st.integers(1, 4),
)
RESTARTS = st.tuples(st.just("restart"), st.sampled_from((0, 1)))


@settings(max_examples=200)
@given(st.lists(st.one_of(WRITES, COPIES, RESTARTS), max_size=30))
def test_every_record_is_on_both_sides_once_with_any_engines_and_producers(steps):
    east, west = Side("east"), Side("west")
    sides = {"east": east, "west": west}
    ways = (Way(east, west), Way(west, east))
    wrote = {"east": [], "west": []}
    for step in steps:
        match step:
            case ("write", alias, count, codec, forwards, idempotent):
                side = sides[alias]
                values = [
                    b"%b-%d" % (alias.encode(), len(wrote[alias]) + at) for at in range(count)
                ]
                headers = ((NAME, ELSEWHERE),) if forwards else ((b"note", b"x"),)
                records = [
                    RawRecord(at, 1_000 + at, "CreateTime", None, value, headers)
                    for at, value in enumerate(values)
                ]
                producer = side.new_producer() if idempotent else -1
                side.append(encode_batch(records, codec=codec, producer_id=producer), count)
                wrote[alias] += values
            case ("copy", way, engine, most):
                ways[way].copy(engine=engine, most=most)
            case ("restart", way):
                ways[way].restart()
    for _ in range(2):
        for way in ways:
            way.copy(engine="batches", most=10_000)
    for side in sides.values():
        values = side.values()
        assert sorted(values) == sorted(wrote["east"] + wrote["west"])
        for alias in SIDES:
            own = [value for value in values if value.startswith(alias.encode())]
            assert own == wrote[alias]
