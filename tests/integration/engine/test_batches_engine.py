"""Lanes that carry whole batches: what arrives is what was written, once, compression included."""

import contextlib
import os
from dataclasses import replace

import pytest
from batch_headers import batch_headers
from confluent_kafka import Producer
from lane_lab import LaneLab

from replicator.batches.copy.transaction_members import TransactionMembers
from replicator.batches.copy.transactions import Transactions
from replicator.batches.registry import producer_registry
from replicator.batches.registry.producer_registry import ProducerRegistry, register
from replicator.dataplane.takeover.lane_records import read_lane_records
from replicator.dataplane.whole_batches import batch_clients, session_size
from replicator.errors import FencedError
from replicator.formats.producer_registry import RegisteredProducer
from replicator.identifiers import control_topic, lane_transactional_id
from replicator.offsets.index import index
from replicator.policy.values import Throttle
from replicator.testing.cluster.topics import delete_topic
from replicator.wire.records.record_batch import RawRecord
from replicator.wire.requests.fetch_one import fetch_record
from replicator.wire.requests.produce_one import produce_record

BATCHES = {"engine": "batches", "provenance": "path"}
DELIVERIES = pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@DELIVERIES
def test_every_codec_arrives_as_it_was_written_batch_by_batch(lab, delivery):
    topic = lab.topic()
    for codec in CODECS:
        lab.produce(
            topic,
            *({"value": b"%s-%d" % (codec.encode(), n) * 20, "key": b"%d" % n} for n in range(300)),
            **{"compression.type": codec, "linger.ms": 60_000},  # one batch, however slowly it fills: a flush sends it
        )  # fmt: skip

    running = lab.copied(topic, delivery=delivery, **BATCHES)

    before, after = lab.on_source(topic), lab.on_target(topic)
    assert len(before) == 1500
    assert [seen.content for seen in after] == [seen.content for seen in before]
    written, copied = (
        batch_headers(lab.plan(cluster, "read"), topic) for cluster in (lab.source, lab.target)
    )
    assert [(b.codec, b.count, b.size) for b in copied] == [
        (b.codec, b.count, b.size) for b in written
    ]
    assert {b.codec for b in copied} == set(CODECS)
    assert all(b.is_transactional == (delivery == "exactly-once") for b in copied)
    assert (running.stats.records, running.stats.quarantined) == (1500, 0)


@DELIVERIES
def test_batches_of_single_records_are_joined_and_every_record_stays_what_it_was(lab, delivery):
    topic = lab.topic()
    for codec in CODECS:
        lab.produce(
            topic,
            *({"value": b"%d" % n * 20, "key": b"%d" % n, "headers": [("n", b"%d" % n)]} for n in range(100)),
            **{"compression.type": codec, "batch.num.messages": 1, "linger.ms": 0},
        )  # fmt: skip

    running = lab.copied(topic, delivery=delivery, **BATCHES)

    before, after = lab.on_source(topic), lab.on_target(topic)
    assert [seen.content for seen in after] == [seen.content for seen in before]
    written, copied = (
        batch_headers(lab.plan(cluster, "read"), topic) for cluster in (lab.source, lab.target)
    )
    assert len(written) == 500
    assert len(copied) < 100
    assert sum(each.count for each in copied) == 500
    assert {each.codec for each in copied} == set(CODECS)
    assert running.stats.records == 500


def test_what_the_client_library_cannot_carry_arrives_unchanged(lab):
    topic = lab.topic()
    odd = (
        RawRecord(0, 0, "CreateTime", b"create time zero", b"v"),
        RawRecord(0, 5, "CreateTime", None, b"not text", ((b"\xff\xfe", b"x"), (b"", None))),
        RawRecord(0, 6, "CreateTime", b"", b"nul in a name", ((b"a\x00b", b"\x00"),)),
        RawRecord(0, -1, "CreateTime", b"no time", None),
    )
    east, west = lab.plan(lab.source, "east"), lab.plan(lab.target, "west")
    for record in odd:
        produce_record(east, topic, 0, record)

    running = lab.copied(topic, **BATCHES)

    assert running.stats.quarantined == 0
    copied = [fetch_record(west, topic, 0, offset) for offset in range(len(odd))]
    assert [(r.timestamp, r.key, r.value, r.headers) for r in copied] == [
        (r.timestamp, r.key, r.value, r.headers) for r in odd
    ]


def test_append_times_stay_the_records_times(lab):
    topic = lab.topic(source={"message.timestamp.type": "LogAppendTime"})
    lab.numbered(topic, range(100))

    lab.copied(topic, **BATCHES)

    before, after = lab.on_source(topic), lab.on_target(topic)
    assert [seen.content for seen in after] == [seen.content for seen in before]


def test_aborted_transactions_of_the_source_never_arrive(lab):
    topic = lab.topic()
    producer = Producer({**lab.source.client_settings(), "transactional.id": lab.name})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for each in range(50):
            producer.produce(topic, b"%d-%d" % (number, each), partition=0)
        producer.flush(30)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)

    lab.copied(topic, **BATCHES)

    assert lab.values(topic) == [b"%d-%d" % (n, each) for n in (0, 2, 4) for each in range(50)]


@DELIVERIES
def test_a_lane_goes_on_where_another_engine_stopped(lab, delivery, monkeypatch):
    monkeypatch.setattr(batch_clients, "SEEN_SECONDS", 2.0)  # nobody else reads what it copies
    topic = lab.topic(partitions=2)

    def write(first: int) -> None:
        for partition in (0, 1):
            lab.numbered(topic, range(first, first + 200), partition=partition)

    for round_, engine in enumerate(("records", "batches", "batches", "records", "batches")):
        write(round_ * 400)
        provenance = "full" if engine == "records" else "path"
        lane = lab.lane(topic, delivery=delivery, engine=engine, provenance=provenance)
        lab.caught_up(lane)
        if engine == "batches":
            lane.until_whole()  # under exactly-once it goes on record by record at first
        write(round_ * 400 + 200)
        lab.caught_up(lane)
        lane.stop()

    after = lab.on_target(topic)
    for partition in (0, 1):
        assert [s.value for s in after if s.partition == partition] == numbers(2000)


def test_a_batch_larger_than_the_target_takes_is_split(lab):
    topic = lab.topic(target={"max.message.bytes": "20000"})
    lab.produce(topic, *({"value": os.urandom(900)} for _ in range(200)), **{"linger.ms": 60_000})
    work = lab.work(topic, max_message_bytes=20_000)

    running = lab.lane(work=work, **BATCHES)
    lab.caught_up(running)
    running.stop()

    before, after = lab.on_source(topic), lab.on_target(topic)
    assert [seen.content for seen in after] == [seen.content for seen in before]
    assert running.stats.aborts == 0


def test_a_record_the_target_never_takes_goes_to_quarantine_and_the_lane_goes_on(lab):
    topic = lab.topic(target={"max.message.bytes": "20000"})
    lab.numbered(topic, range(100))
    lab.produce(topic, {"value": os.urandom(50_000), "key": b"large"})
    lab.numbered(topic, range(100, 300))

    running = lab.lane(work=lab.work(topic, max_message_bytes=20_000), **BATCHES)
    lab.caught_up(running)
    lab.numbered(topic, range(300, 400))
    lab.caught_up(running)
    running.stop()

    assert lab.values(topic) == numbers(400)
    assert [seen.value and len(seen.value) for seen, _ in lab.quarantined()] == [50_000]


def test_the_older_of_two_owners_is_fenced_and_writes_nothing_more(lab):
    topic = lab.topic()
    lab.numbered(topic, range(2000))
    older = lab.lane(topic, **BATCHES)
    lab.caught_up(older)
    newer = lab.lane(topic, **BATCHES)
    lab.caught_up(newer)
    lab.numbered(topic, range(2000, 4000))
    lab.caught_up(newer)

    lab.until(lambda: older.ended is not None, "the older one to end", older)
    assert older.ended.fenced
    newer.stop()
    assert lab.values(topic) == numbers(4000)


def test_a_producer_id_that_is_no_longer_the_lanes_is_a_fence(lab):
    topic, west = lab.topic(), lab.plan(lab.target, "west")
    with contextlib.closing(
        Transactions(west, client_id="lab", transactional_id=lab.name, timeout_seconds=60.0)
    ) as older:
        older.take_over(20)
        # As if another owner had used up the epochs, and was given another id.
        older.identity = replace(older.identity, producer_id=older.identity.producer_id + 1)
        with pytest.raises(FencedError):
            older.join([(topic, 0)], 20)
        with pytest.raises(FencedError):
            older.end(20)


def test_commits_cut_off_at_any_instant_lose_nothing_and_repeat_nothing(lab, proxied, unique):
    cut = LaneLab(lab.source, proxied, name=unique)
    cut.survives_cuts_of(proxied.proxy, **BATCHES)


def test_a_budget_in_bytes_is_kept(lab):
    topic = lab.topic()
    lab.produce(topic, *({"value": os.urandom(1000)} for _ in range(600)), **{"batch.size": 20_000})
    lane = lab.lane(topic, throttle=Throttle(200_000, None), **BATCHES)

    lab.caught_up(lane)
    lane.stop()

    assert len(lab.values(topic)) == 600
    assert lane.stats.throttle_wait_seconds > 0.5


def test_the_index_notes_where_batches_are_on_the_target(lab):
    topic = lab.topic()
    lab.numbered(topic, range(500))
    running = lab.copied(topic, **BATCHES)
    lab.numbered(topic, range(500, 700))
    running = lab.copied(topic, **BATCHES)

    entries = index.decode_index(read_lane_records(running.spec, client_id="lab"))[topic, 0]
    source = {seen.offset: seen.value for seen in lab.on_source(topic)}
    target = {seen.offset: seen.value for seen in lab.on_target(topic)}
    assert len({entry.number for entry in entries}) >= 2
    for entry in entries:
        assert source[entry.pair.source] == target[entry.pair.target]


def test_a_lane_that_ends_while_it_is_behind_stores_the_entries_of_its_last_batches(
    lab, monkeypatch
):
    """Where another commit follows they wait for that one; after this one there is none."""
    monkeypatch.setattr(index, "NOTE_RECORDS", 1)
    for slowly in ("FETCH_BYTES", "PARTITION_BYTES"):
        monkeypatch.setattr(session_size, slowly, 20_000)
    topic = lab.topic()
    lab.produce(topic, *({"value": os.urandom(1000)} for _ in range(20_000)), **{"batch.size": 20_000})  # fmt: skip
    lane = lab.lane(topic, **BATCHES)
    lab.until(lambda: lab._position(lane, topic, 0) > 0, "a commit", lane)
    lane.stop()

    end = lab.checkpoints()[topic, 0].offset
    entries = index.decode_index(read_lane_records(lane.spec, client_id="lab"))[topic, 0]
    assert end < 20_000, "it was behind"
    assert 0 < end - max(entry.pair.source for entry in entries) <= 20


def test_a_registry_that_lacks_what_was_there_stops_its_readers_until_it_is_whole(lab):
    topic, control = lab.topic(), control_topic(lab.name)
    registered = RegisteredProducer(77, "west", "east")
    east = lab.plan(lab.source, "east")
    lab.source.create_topic(control, config={"cleanup.policy": "compact"})
    register(east, lab.name, registered)
    lab.numbered(topic, range(50))
    lab.copied(topic, returns=True, **BATCHES)

    delete_topic(lab.source.admin(), name=control)
    lab.numbered(topic, range(50, 100))
    lane = lab.lane(topic, returns=True, **BATCHES)
    lab.until(lambda: lane.stats.source_problem.startswith("REGISTRY_LOST "), "the alarm", lane)
    assert lab.values(topic) == numbers(50)

    lab.source.create_topic(control, config={"cleanup.policy": "compact"})
    register(east, lab.name, registered)
    lab.caught_up(lane)
    lane.stop()
    assert lab.values(topic) == numbers(100)


@pytest.mark.slow
@pytest.mark.timeout(540)
@pytest.mark.parametrize("other_brokers", [0, 2])
def test_a_producer_whose_epochs_run_out_goes_on_under_an_id_that_is_registered_first(
    lab, monkeypatch, other_brokers
):
    """With more brokers the coordinator is told of partitions before they are written to."""
    may_write = TransactionMembers.may_write
    monkeypatch.setattr(
        TransactionMembers,
        "may_write",
        lambda *given, brokers, **how: may_write(*given, brokers=brokers + other_brokers, **how),
    )
    topic = lab.topic()
    lab.prepare()
    west = lab.plan(lab.target, "west")
    writer = lane_transactional_id(lab.name, "east", "west", 0)
    transactions = Transactions(
        west, client_id="lab", transactional_id=writer, timeout_seconds=60.0
    )
    transactions.take_over(20)
    first = transactions.identity.producer_id
    while transactions.identity.epoch < 32_755:
        transactions.take_over(20)
    transactions.close()
    assert transactions.identity.producer_id == first

    lane = lab.lane(topic, commit_interval_seconds=0.05, **BATCHES)
    for start in range(0, 3_000, 100):  # a commit each
        lab.numbered(topic, range(start, start + 100))
        lab.caught_up(lane)
    lane.stop()

    assert lab.values(topic) == numbers(3_000)
    used = {header.producer_id for header in batch_headers(lab.plan(lab.target, "west"), topic)}
    assert first in used
    assert len(used) == 2
    registry = ProducerRegistry(west, lab.name, client_id="lab")
    registry.read()
    registry.close()
    assert used <= registry.registered.keys()
    assert lane.stats.aborts == 0


def test_applications_with_a_producer_for_each_call_fill_no_memory(lab, monkeypatch):
    monkeypatch.setattr(producer_registry, "MOST_STRANGERS", 10)
    registry = ProducerRegistry(lab.plan(lab.target, "west"), lab.name, client_id="lab")
    known = set()
    for stranger in range(1_000, 1_025):
        assert registry.source_of(stranger) is None
        known.add(len(registry._strangers))
    registry.close()
    assert max(known) == 10
