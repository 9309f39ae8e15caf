"""Control topics against a real broker."""

import contextlib
import threading
import time

import pytest
from confluent_kafka import KafkaError

from replicator.errors import (
    FencedError,
    NotFoundError,
    ReplicatorError,
    UnknownOutcomeError,
    UnreachableError,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import open_producer
from replicator.kafka.clients.settings import producer_config
from replicator.kafka.logs.compacted_log import LogTail
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.testing import wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.known_leaders import known_leaders
from replicator.wire.requests.produce_one import end_by_a_write

UNKNOWN_TOPIC_OR_PARTITION = 3


@pytest.fixture
def cluster(east) -> ClusterPlan:
    return ClusterPlan("east", tuple(east.bootstrap_servers))


@pytest.fixture
def log(cluster, unique) -> str:
    with ClusterAdmin(cluster, client_id="test") as admin:
        ensure_compacted_topic(admin, unique, partitions=3)
    return unique


def test_a_control_topic_is_made_once_by_many(cluster, unique):
    seen = []

    def ensure(partitions: int) -> None:
        with ClusterAdmin(cluster, client_id="test") as admin:
            seen.append(ensure_compacted_topic(admin, unique, partitions=partitions))

    threads = [threading.Thread(target=ensure, args=(1 + number % 3,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(seen) == 6
    assert len({each.topic_id for each in seen}) == 1
    with ClusterAdmin(cluster, client_id="test") as admin:
        assert ensure_compacted_topic(admin, unique, partitions=1).partitions == 3
        assert admin.topic_configs([unique])[unique]["cleanup.policy"].value == "compact"


def test_the_last_value_of_each_key_is_read(cluster, log):
    with LogWriter(cluster, log, client_id="test") as writer:
        writer.write([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"gone", b"x"), (b"gone", None)])
        writer.write([(b"c", b"")], partition=2)

    assert read_compacted(cluster, log, (0, 1, 2), client_id="test") == {
        0: {b"a": b"3", b"b": b"2"},
        1: {},
        2: {b"c": b""},
    }


def test_reading_ends_though_the_last_offset_is_a_marker(cluster, log):
    with LogWriter(cluster, log, client_id="test", transactional_id=log) as writer:
        for number in range(5):
            writer.write([(b"a", b"%d" % number)])

    assert read_compacted(cluster, log, client_id="test", past_open_transactions=True) == {
        0: {b"a": b"4"}
    }


def with_an_open_transaction(cluster, log):
    producer = open_producer(producer_config(cluster, client_id="test", transactional_id=log))
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(log, b"open", b"a", 0)
    producer.flush(10)
    return producer


def test_what_was_not_committed_is_not_read(cluster, log):
    producer = with_an_open_transaction(cluster, log)

    assert read_compacted(cluster, log, client_id="test") == {0: {}}
    producer.abort_transaction(10)
    assert read_compacted(cluster, log, client_id="test") == {0: {}}


def test_an_open_transaction_that_hides_the_end_is_named(cluster, log):
    producer = with_an_open_transaction(cluster, log)

    whose = f"a transaction has been open by transactional id '{log}' at offset 0 "
    with pytest.raises(UnreachableError, match=f"{log}/0 to its end: {whose}"):
        read_compacted(
            cluster, log, client_id="test", timeout_seconds=2, past_open_transactions=True
        )
    producer.abort_transaction(10)


def test_who_waits_for_an_end_is_told_of_a_transaction_and_of_a_dead_broker(
    cluster, log, monkeypatch
):
    monkeypatch.setattr("replicator.kafka.logs.compacted_log.TOLD_SECONDS", 0.5)
    producer = with_an_open_transaction(cluster, log)
    told = []
    with LogTail(cluster, log, client_id="test") as tail:
        # What the library says of a broker that leads nothing of the topic.
        tail._trouble(KafkaError(KafkaError._TRANSPORT, "b:9092/7: Connection refused"))

        def hears(error):
            told.append(error.message)
            if len(told) == 2:
                producer.abort_transaction(10)

        tail.load(timeout_seconds=20, past_open_transactions=True, on_wait=hears)
    assert len(told) >= 2
    assert f"transactional id '{log}'" in told[0]
    assert "broker 7 at b:9092 does not answer" in told[0]


def test_a_log_is_read_as_far_as_a_write_shows_that_it_goes(cluster, log):
    with LogWriter(cluster, log, client_id="test") as writer:
        writer.write([(b"a", b"1"), (b"end", b"of an older release")])
    end = end_by_a_write(cluster, log, 0, key=b"end", timeout_seconds=10.0)
    with LogTail(cluster, log, client_id="test") as tail:
        assert tail.load(timeout_seconds=10.0, reaches={0: end}) == {0: {b"a": b"1"}}
        assert tail.position == end


def test_a_leader_that_shows_less_than_is_there_is_not_believed(cluster, log):
    end = end_by_a_write(cluster, log, 0, key=b"end", timeout_seconds=10.0)
    said = []
    with (
        LogTail(cluster, log, client_id="test") as tail,
        pytest.raises(UnreachableError) as refused,
    ):
        tail.load(timeout_seconds=7.0, reaches={0: end + 5}, on_wait=said.append)
    assert f"{log}/0 ends at {end} by broker 0, and was written to up to {end + 5}" in str(
        refused.value
    )
    assert said, "who waits is told before the time is over"


def leads(cluster, log):
    """Whether the leader of a new topic has heard that it is one: the metadata name it a moment earlier."""
    with ClusterAdmin(cluster, client_id="test") as admin:
        return not isinstance(admin.log_ends([(log, 0)])[log, 0], ReplicatorError)


def test_every_broker_is_asked_who_leads(cluster, log):
    wait_until(
        lambda: leads(cluster, log), timeout_seconds=30.0, describe="a broker that knows it leads"
    )
    dead = ClusterPlan("east", ("127.0.0.1:1", *cluster.bootstrap_servers))
    for asked in (cluster, dead):
        found = known_leaders(asked, [(log, 0), (log, 2), (log, 7)], client_id="test")
        with ClusterAdmin(cluster, client_id="test") as admin:
            topic = admin.describe_topics([log])[log]
            ends = admin.log_ends([(log, 0)])
        assert found.leaders.keys() == {(log, 0), (log, 2)}
        assert found.topic_ids((log, 0)) == {topic.topic_id}
        assert found.newest((log, 0), topic.topic_id) == ends[log, 0].leader_epoch == 0
        # A bootstrap server that no broker names is none that could know more.
        assert found.silent == {}
    with pytest.raises(UnreachableError):
        known_leaders(ClusterPlan("east", ("127.0.0.1:1",)), [(log, 0)], client_id="test")


def test_a_replaced_owner_is_fenced_and_writes_nothing(cluster, log):
    old = LogWriter(cluster, log, client_id="old", transactional_id=log)
    old.write([(b"owner", b"old")])
    new = LogWriter(cluster, log, client_id="new", transactional_id=log)
    new.open()

    for _ in range(2):
        with pytest.raises(FencedError):
            old.write([(b"owner", b"zombie")])
    new.write([(b"owner", b"new")])

    assert read_compacted(cluster, log, client_id="test", past_open_transactions=True) == {
        0: {b"owner": b"new"}
    }
    old.close()
    new.close()


def test_a_tail_goes_on_where_the_load_ended(cluster, log):
    with (
        LogWriter(cluster, log, client_id="test") as writer,
        LogTail(cluster, log, (0,), client_id="test") as tail,
    ):
        writer.write([(b"a", b"1"), (b"b", b"1")])
        assert tail.load(timeout_seconds=10) == {0: {b"a": b"1", b"b": b"1"}}
        assert tail.poll(0.01) == []

        writer.write([(b"a", b"2"), (b"b", None)])
        got = []
        wait_until(
            lambda: got.extend(tail.poll(0.5)) or len(got) >= 2,
            timeout_seconds=10,
            describe="both entries",
        )

        assert got == [(b"a", b"2"), (b"b", None)]


def test_a_log_that_is_loaded_again_is_read_on_to_its_end_of_then(cluster, log):
    with (
        LogWriter(cluster, log, client_id="test", transactional_id=log) as writer,
        LogTail(cluster, log, (0,), client_id="test") as tail,
    ):
        writer.write([(b"a", b"1"), (b"b", b"1")])
        assert tail.load(timeout_seconds=10) == {0: {b"a": b"1", b"b": b"1"}}
        writer.write([(b"a", b"2"), (b"b", None)])
        again = tail.load(timeout_seconds=10, past_open_transactions=True)
        assert again == {0: {b"a": b"2"}}
        # Where nothing came, too.
        assert tail.load(timeout_seconds=10, past_open_transactions=True) == again


def test_a_patient_tail_goes_on_in_every_partition_where_its_load_ended(cluster, log, monkeypatch):
    monkeypatch.setattr("replicator.kafka.logs.compacted_log.AWAKE_SECONDS", 0.0)
    with LogWriter(cluster, log, client_id="test", transactional_id=f"{log}-w") as writer:
        writer.write([(b"k%d" % number, b"first") for number in range(30)])
        with LogTail(cluster, log, (0, 1, 2), client_id="test", fetch_wait_seconds=2.0) as tail:
            loaded = tail.load(timeout_seconds=10)
            assert sum(map(len, loaded.values())) == 30
            loaded_by = tail._opened
            got = tail.poll(0.0)
            assert tail._opened is not loaded_by, "it waits with another consumer now"
            writer.write([(b"k%d" % number, b"second") for number in range(30)])
            wait_until(
                lambda: got.extend(tail.poll(0.5)) or len(got) >= 30,
                timeout_seconds=10,
                describe="what was written after the load",
            )

    assert sorted(got) == sorted((b"k%d" % number, b"second") for number in range(30))


def test_a_tail_that_was_never_loaded_gives_everything(cluster, log):
    with LogWriter(cluster, log, client_id="test") as writer:
        writer.write([(b"a", b"%d" % number) for number in range(3000)])

    with LogTail(cluster, log, client_id="test") as tail:
        got = []
        wait_until(
            lambda: got.extend(tail.poll(0.5)) or len(got) >= 3000,
            timeout_seconds=10,
            describe="all entries",
        )

    assert got == [(b"a", b"%d" % number) for number in range(3000)]


def test_a_missing_log_is_named(cluster, unique):
    with pytest.raises(NotFoundError, match=unique):
        read_compacted(cluster, unique, client_id="test")
    with (
        pytest.raises(NotFoundError, match=unique),
        LogWriter(cluster, unique, client_id="t") as writer,
    ):
        writer.write([(b"a", b"1")])


@pytest.mark.parametrize("first", [1, 2], ids=["the first broker", "another one"])
def test_a_topic_that_a_broker_has_not_heard_of_is_waited_for_where_it_is_known_to_exist(
    east, cluster, log, first
):
    with LogWriter(cluster, log, client_id="t") as writer:
        writer.write([(b"a", b"1")])
    unheard = Answer(UNKNOWN_TOPIC_OR_PARTITION, forwarded=True)
    rule = Rule(Match(Api.METADATA, topic=log, nth=first, times=12), unheard)
    with ProtocolProxy(east.bootstrap_servers, (rule,)) as proxy:
        behind = ClusterPlan("east", tuple(proxy.bootstrap_servers))
        found = read_compacted(behind, log, client_id="t", known_to_exist=True)
        assert (found, proxy.applied(rule) >= 2 - first) == ({0: {b"a": b"1"}}, True)


def test_an_absence_that_is_an_answer_is_told_at_once_and_a_writer_waits_for_the_topic(
    east, cluster, log
):
    unheard = Answer(UNKNOWN_TOPIC_OR_PARTITION, forwarded=True)
    rule = Rule(Match(Api.METADATA, topic=log, times=12), unheard)
    with ProtocolProxy(east.bootstrap_servers, (rule,)) as proxy:
        behind = ClusterPlan("east", tuple(proxy.bootstrap_servers))
        began = time.monotonic()
        with pytest.raises(NotFoundError, match=log):
            read_compacted(behind, log, client_id="t", timeout_seconds=60)
        assert time.monotonic() - began < 20, "nobody waits for what an answer denies"
        with LogWriter(behind, log, client_id="t") as writer:
            writer.write([(b"a", b"1")])
        assert proxy.applied(rule) == 12
    assert read_compacted(cluster, log, client_id="t") == {0: {b"a": b"1"}}


@pytest.mark.parametrize("transactional_id", [None, "owner"])
def test_a_write_without_an_answer_is_unknown_and_the_writer_goes_on(
    proxied, unique, transactional_id
):
    cluster = ClusterPlan("west", tuple(proxied.bootstrap_servers))
    with ClusterAdmin(cluster, client_id="test") as admin:
        ensure_compacted_topic(admin, unique, partitions=1)
    writer = LogWriter(
        cluster, unique, client_id="t", transactional_id=transactional_id, timeout_seconds=15
    )
    writer.write([(b"a", b"before")])

    proxied.proxy.black_hole()
    begun = time.monotonic()
    with pytest.raises((UnknownOutcomeError, UnreachableError)) as told:
        writer.write([(b"a", b"lost?"), (b"b", b"lost?")])
    assert time.monotonic() - begun < 40

    proxied.proxy.heal()
    state = read_compacted(cluster, unique, client_id="test", timeout_seconds=30)[0]
    possible = [{b"a": b"before"}]
    if told.type is UnknownOutcomeError:
        possible.append({b"a": b"lost?", b"b": b"lost?"})
    else:
        # The records timed out before the commit was asked for: then it is certain.
        assert transactional_id is not None
    assert state in possible
    writer.write([(b"a", b"after")])
    assert (
        read_compacted(cluster, unique, client_id="test", past_open_transactions=True)[0][b"a"]
        == b"after"
    )
    writer.close()


def test_a_tail_and_an_admin_live_through_a_restart(clusters):
    (solo,) = clusters("solo")
    cluster = ClusterPlan("solo", tuple(solo.bootstrap_servers))
    admin = ClusterAdmin(cluster, client_id="test", timeout_seconds=15)
    ensure_compacted_topic(admin, "log", partitions=1)
    writer = LogWriter(cluster, "log", client_id="t", timeout_seconds=40)
    writer.write([(b"a", b"1")])
    tail = LogTail(cluster, "log", client_id="t")
    assert tail.load(timeout_seconds=20) == {0: {b"a": b"1"}}
    admin.commit_offsets({"group": {("log", 0): (1, "")}})

    solo.kill()
    assert isinstance(admin.committed_offsets(["group"])["group"], UnreachableError)
    solo.restart()

    writer.write([(b"a", b"2")])
    got = []

    def heard() -> bool:
        with contextlib.suppress(ReplicatorError):
            got.extend(tail.poll(0.5))
        return got == [(b"a", b"2")]

    wait_until(heard, timeout_seconds=30, describe="the entry written after the restart")
    assert admin.committed_offsets(["group"])["group"]["log", 0].offset == 1
    admin.close()
    tail.close()
    writer.close()


@pytest.mark.parametrize("transactional_id", [None, "any"])
def test_a_log_on_a_cluster_that_is_not_there_is_unreachable(transactional_id):
    nowhere = ClusterPlan("nowhere", ("127.0.0.1:1",))
    with pytest.raises(UnreachableError):
        read_compacted(nowhere, "log", client_id="test", timeout_seconds=1)
    writer = LogWriter(
        nowhere, "log", client_id="t", transactional_id=transactional_id, timeout_seconds=1
    )
    with pytest.raises(UnreachableError):
        writer.write([(b"a", b"1")])
    writer.close()
