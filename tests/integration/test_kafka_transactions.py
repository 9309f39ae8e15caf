"""The one writer of transactions on real brokers: fenced, unknown, aborted, and a full queue."""

import threading

import pytest

from replicator.errors import FencedError, RecordRefusedError, ReplicatorError, UnknownOutcomeError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.transactions import TransactionWriter
from replicator.topology.plan import ClusterPlan


@pytest.fixture
def cluster(proxied):
    return ClusterPlan("west", tuple(proxied.bootstrap_servers))


@pytest.fixture
def owner(unique):
    return unique


@pytest.fixture
def one(cluster, unique):
    return made(cluster, f"one.{unique}")


@pytest.fixture
def two(cluster, unique):
    return made(cluster, f"two.{unique}")


def made(cluster, topic):
    with ClusterAdmin(cluster, client_id="test") as admin:
        ensure_compacted_topic(admin, topic, partitions=1)
    return topic


def stored(cluster, topic):
    return read_compacted(
        cluster, topic, client_id="test", timeout_seconds=30, past_open_transactions=True
    )[0]


def test_records_of_several_topics_hold_together_with_their_times_and_headers(
    cluster, one, two, owner
):
    with TransactionWriter(cluster, owner, client_id="test") as writer:
        writer.open()
        writer.begin("write two")
        writer.add(one, 0, b"k", b"v", timestamp_ms=1_000, headers=[("h", b"x")])
        writer.add(two, 0, b"k", None)
        writer.add(two, 0, b"l", b"w")
        writer.commit()
        writer.commit()  # nothing is open: nothing happens

    assert (stored(cluster, one), stored(cluster, two)) == ({b"k": b"v"}, {b"l": b"w"})


def test_an_owner_that_was_replaced_is_fenced_and_never_takes_over_again(cluster, one, two, owner):
    old = TransactionWriter(cluster, owner, client_id="old")
    old.open()
    old.begin("write as the old one")
    old.add(one, 0, b"k", b"old")
    with TransactionWriter(cluster, owner, client_id="new") as new:
        new.open()
        with pytest.raises(FencedError):
            old.commit()
        with pytest.raises(FencedError):
            old.open()
        new.begin("write as the new one")
        new.add(two, 0, b"k", b"new")
        new.commit()
    old.close()

    assert (stored(cluster, one), stored(cluster, two)) == ({}, {b"k": b"new"})


def test_a_commit_without_an_answer_is_unknown_and_is_never_aborted(
    proxied, cluster, one, two, owner
):
    writer = TransactionWriter(cluster, owner, client_id="test", timeout_seconds=5)
    writer.open()
    writer.begin("write without an answer")
    writer.add(one, 0, b"k", b"v")
    writer._producer.flush(10)  # stored, not committed
    proxied.proxy.black_hole()
    with pytest.raises(UnknownOutcomeError):
        writer.commit()
    assert not writer.is_open
    with pytest.raises(ReplicatorError):
        writer.begin("go on as if nothing had been")
    writer.close()

    proxied.proxy.heal()
    writer.open()
    before = stored(cluster, one)
    assert before in ({}, {b"k": b"v"})
    writer.begin("go on")
    writer.add(two, 0, b"k", b"after")
    writer.commit()
    writer.close()
    assert (stored(cluster, one), stored(cluster, two)) == (before, {b"k": b"after"})


def test_a_refused_record_aborts_the_whole_transaction_at_once(cluster, one, two, owner):
    with ClusterAdmin(cluster, client_id="test") as admin:
        assert admin.alter_topic_configs({two: {"max.message.bytes": "1000"}}) == {two: None}
    with TransactionWriter(cluster, owner, client_id="test", timeout_seconds=60) as writer:
        writer.open()
        writer.begin("write too much")
        writer.add(one, 0, b"k", b"good")
        writer.add(two, 0, b"k", b"x" * 5_000)
        with pytest.raises(RecordRefusedError):
            writer.commit()
        # Far sooner than the broker would end it: readers wait for no open transaction.
        assert read_compacted(
            cluster, one, client_id="test", timeout_seconds=10, past_open_transactions=True
        ) == {0: {}}
        writer.open()
        writer.begin("write less")
        writer.add(one, 0, b"k", b"again")
        writer.commit()
    assert stored(cluster, one) == {b"k": b"again"}


def test_what_was_not_committed_is_aborted_by_closing(cluster, one, owner):
    writer = TransactionWriter(cluster, owner, client_id="test", timeout_seconds=60)
    writer.open()
    writer.begin("give up")
    writer.add(one, 0, b"k", b"v")
    writer._producer.flush(10)
    writer.close()

    assert read_compacted(
        cluster, one, client_id="test", timeout_seconds=10, past_open_transactions=True
    ) == {0: {}}


RECORDS, LARGE = 90, b"x" * 900_000
"""More than the 64 MB that a producer holds back."""


def write_much(writer, topic):
    for number in range(RECORDS):
        writer.add(topic, 0, b"%d" % number, LARGE)


def test_a_full_queue_is_waited_out(proxied, cluster, one, owner):
    with TransactionWriter(cluster, owner, client_id="test", timeout_seconds=60) as writer:
        writer.open()
        proxied.proxy.black_hole()
        full = threading.Timer(3.0, proxied.proxy.heal)
        full.start()
        writer.begin("write much")
        write_much(writer, one)
        full.join()
        writer.commit()
    assert len(stored(cluster, one)) == RECORDS


def test_a_queue_that_stays_full_fails_in_time_and_writes_nothing(proxied, cluster, one, owner):
    with TransactionWriter(cluster, owner, client_id="test", timeout_seconds=6) as writer:
        writer.open()
        proxied.proxy.black_hole()
        writer.begin("write much")
        with pytest.raises(ReplicatorError):
            write_much(writer, one)
        assert not writer.is_open
    proxied.proxy.heal()
    assert stored(cluster, one) == {}
