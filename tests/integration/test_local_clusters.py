"""The kit's clusters are real: they keep data over a kill, take roles apart and forget nothing."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from replicator.demo.reading import all_committed
from replicator.errors import InputError
from replicator.testing import (
    GroupReader,
    LocalCluster,
    Recorder,
    RecordStyle,
    SecuritySetup,
    Writer,
    check,
    scan,
    wait_until,
)
from replicator.topology.plan import ClusterPlan

QUIET = {"log_level": 0}


def send(cluster, topic, *values, user=None, timeout_seconds=10):
    """Sends values and returns the errors of those that were not acknowledged."""
    errors = []
    timeout = {"message.timeout.ms": timeout_seconds * 1000}
    producer = Producer({**cluster.client_settings(user), **QUIET, **timeout, "acks": "all"})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and errors.append(error))
    producer.flush(timeout_seconds + 5)
    return [error.code() for error in errors]


def receive(cluster, topic, count, *, user=None):
    settings = {"group.id": f"{topic}-reader", "auto.offset.reset": "earliest"}
    consumer = Consumer({**cluster.client_settings(user), **QUIET, **settings})
    consumer.subscribe([topic])
    values = [message.value() for message in consumer.consume(count, 60)]
    consumer.close()
    return values


def test_two_shared_clusters_are_two_clusters(east, west, unique):
    assert east.admin().list_topics(timeout=10).cluster_id == east.cluster_id
    assert east.cluster_id != west.cluster_id
    for cluster in (east, west):
        cluster.create_topic(unique, partitions=2)
        assert send(cluster, unique, cluster.name.encode()) == []
    assert receive(east, unique, 1) == [b"east"]
    assert receive(west, unique, 1) == [b"west"]


def test_features_are_those_of_a_cluster_in_production(east, unique):
    """Without its bootstrap file a broker would run with old transactions and old groups."""
    east.create_topic(unique)
    settings = {"group.id": unique, "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer({**east.client_settings(), **QUIET, **settings})
    consumer.subscribe([unique])
    send(east, unique, b"1")
    assert [message.value() for message in consumer.consume(1, 60)] == [b"1"]
    consumer.close()


def test_a_topic_can_be_deleted_and_created_again(east, unique):
    east.create_topic(unique, config={"cleanup.policy": "compact"})
    east.delete_topic(unique)
    east.create_topic(unique, partitions=3)
    assert len(east.admin().list_topics(unique, 10).topics[unique].partitions) == 3


def test_a_killed_broker_comes_back_on_its_ports_with_its_data(clusters, unique):
    (cluster,) = clusters("alone")
    before = cluster.bootstrap_servers
    cluster.create_topic(unique)
    assert send(cluster, unique, b"1") == []
    cluster.kill()
    assert send(cluster, unique, b"lost", timeout_seconds=1) == [KafkaError._MSG_TIMED_OUT]
    cluster.restart()
    assert cluster.bootstrap_servers == before
    assert receive(cluster, unique, 1) == [b"1"]


def test_a_running_broker_restarts_in_order(clusters, unique):
    (cluster,) = clusters("alone")
    cluster.create_topic(unique)
    assert send(cluster, unique, b"1") == []
    cluster.restart()
    assert receive(cluster, unique, 1) == [b"1"]


def test_a_paused_broker_is_silent_and_goes_on_when_resumed(clusters, unique):
    (cluster,) = clusters("alone")
    cluster.create_topic(unique)
    cluster.pause()
    assert send(cluster, unique, b"1", timeout_seconds=1) == [KafkaError._MSG_TIMED_OUT]
    cluster.resume()
    assert send(cluster, unique, b"2") == []


def test_three_brokers_lose_one_and_keep_writing(clusters, unique):
    (cluster,) = clusters("three", brokers=3)
    cluster.create_topic(unique, partitions=3)
    described = cluster.admin().list_topics(unique, 10).topics[unique].partitions
    assert all(len(each.replicas) == 3 for each in described.values())
    cluster.kill(1)
    assert send(cluster, unique, *[b"x"] * 30, timeout_seconds=40) == []
    cluster.restart(1)
    wait_until(
        lambda: len(cluster.admin().list_topics(timeout=10).brokers) == 3,
        timeout_seconds=30,
        describe="three brokers that every broker knows of",
    )


SETUPS = {
    "tls": SecuritySetup.tls(),
    "mutual-tls": SecuritySetup.mutual_tls(authorizer=True),
    "plain": SecuritySetup.sasl("PLAIN"),
    "scram-256": SecuritySetup.sasl("SCRAM-SHA-256"),
    "scram-512-tls": SecuritySetup.sasl("SCRAM-SHA-512", tls=True, authorizer=True),
}


@pytest.mark.parametrize("kind", SETUPS)
def test_a_secured_cluster_serves_its_users_and_nobody_else(clusters, kind, unique):
    setup = SETUPS[kind]
    (cluster,) = clusters("secured", security=setup)
    cluster.create_topic(unique)
    assert send(cluster, unique, b"1") == []
    assert receive(cluster, unique, 1) == [b"1"]
    stranger = Producer({"bootstrap.servers": cluster.bootstrap_servers[0], **QUIET})
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=2)
    block = cluster.topology_entry()["security"]
    assert block["protocol"] == setup.protocol
    for reference in (block.get("password"), block.get("ca"), block.get("key")):
        assert reference is None or Path(reference["file"]).read_text()


def test_rights_are_given_denied_and_revoked(clusters, unique):
    (cluster,) = clusters("guarded", security=SecuritySetup.sasl(authorizer=True))
    cluster.create_topic(unique)
    denied = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert send(cluster, unique, b"1", user="replicator") == denied
    cluster.allow("replicator", ["WRITE", "DESCRIBE"], name=unique[:5], prefixed=True)
    assert send(cluster, unique, b"1", user="replicator") == []
    cluster.deny("replicator", ["WRITE"], name=unique)
    assert send(cluster, unique, b"1", user="replicator") == denied
    assert cluster.revoke_all("replicator") == 3


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_rotated_password_works_and_the_old_one_does_not(clusters, mechanism, unique):
    (cluster,) = clusters("rotated", security=SecuritySetup.sasl(mechanism))
    cluster.create_topic(unique)
    cluster.add_user("bob", "first")
    old = cluster.client_settings("bob")
    assert send(cluster, unique, b"1", user="bob") == []
    cluster.rotate_password("bob", "second")
    assert send(cluster, unique, b"1", user="bob") == []
    assert Path(cluster.topology_security("bob")["password"]["file"]).read_text() == "second"
    with pytest.raises(KafkaException):
        Producer({**old, **QUIET}).list_topics(timeout=2)


def test_an_authorizer_without_users_is_refused():
    with pytest.raises(InputError, match="users to distinguish"):
        SecuritySetup(protocol="SSL", authorizer=True)


def test_brokers_die_with_a_parent_that_is_killed():
    script = (
        "from replicator.testing import LocalCluster; import threading, sys;"
        "c = LocalCluster('orphan');"
        "t = threading.Thread(target=c.start); t.start(); t.join();"  # its thread is long gone
        "print(c.brokers[0].pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as parent:
        broker = int(parent.stdout.readline())
        assert Path(f"/proc/{broker}").exists()
        parent.kill()
    wait_until(
        lambda: _is_gone(broker), timeout_seconds=30, describe=f"broker process {broker} to be gone"
    )


def _is_gone(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return status == "Z"


def test_a_broker_that_can_not_start_shows_its_log():
    cluster = LocalCluster("broken", config={"log.segment.bytes": "not a number"})
    with pytest.raises(Exception, match=r"log\.segment\.bytes"):
        cluster.start()
    assert not cluster.brokers


def test_a_workload_through_a_kill_is_recorded_truthfully(clusters, unique):
    (cluster,) = clusters("shaken")
    cluster.create_topic(unique, partitions=2)
    history = Recorder()
    plain = Writer(cluster, [unique], history=history, rate_per_second=300, seed=1).start()
    whole = Writer(
        cluster,
        [unique],
        history=history,
        rate_per_second=300,
        seed=2,
        transactional=True,
        abort_ratio=0.3,
        style=RecordStyle(value_bytes=400),
    ).start()
    reader = GroupReader(cluster, [unique], group=unique, history=history).start()
    plain.wait_acked(200)
    whole.wait_acked(200)
    cluster.kill()
    cluster.restart()
    plain.wait_acked(100)
    whole.wait_acked(100)
    plain.stop()
    whole.stop()
    plan = ClusterPlan("shaken", tuple(cluster.bootstrap_servers))
    wait_until(
        lambda: all_committed(plan, [unique]),
        timeout_seconds=30,
        describe="the markers of the last transaction",
    )
    scan(cluster, [unique], history=history)
    reader.wait_delivered(plain.acked)
    reader.stop()
    report = check(history.events())
    # One cluster, no flow: nothing is expected elsewhere, and nothing here may be wrong.
    assert report.clean, report.paragraph()
    assert report.counts["acknowledged"] > 500
    assert report.counts["seen"] > 500


def test_a_scan_looks_behind_a_fault_and_reads_what_was_written(clusters, unique):
    (cluster,) = clusters("hidden", proxied=True)
    cluster.create_topic(unique)
    history = Recorder()
    writer = Writer(cluster, [unique], history=history, max_records=500, rate_per_second=None)
    writer.start().join()
    cluster.proxy.cut()
    begun = time.monotonic()
    found = scan(cluster, [unique, "absent"], history=history)
    assert time.monotonic() - begun < 30
    assert len(found) == writer.acked == 500
    assert [each.offset for each in found] == list(range(500))
    assert check(history.events()).clean
