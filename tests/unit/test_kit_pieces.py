"""The small parts of the test kit, without any broker."""

import pytest

from replicator.errors import InputError
from replicator.testing import ManualClock, NotInTimeError, wait_until
from replicator.testing.cluster.brokers.backends import choose_backend
from replicator.testing.cluster.brokers.broker import BrokerSpec
from replicator.testing.cluster.brokers.broker_settings import (
    BrokerPorts,
    broker_properties,
    properties_text,
)
from replicator.testing.cluster.brokers.containers import ContainerBroker
from replicator.testing.cluster.brokers.jars import find_java
from replicator.testing.kit.ports import free_ports, is_free

PORTS = [BrokerPorts(1, 2, 3, 4), BrokerPorts(5, 6, 7, 8), BrokerPorts(9, 10, 11, 12)]


def test_one_broker_keeps_one_copy_and_three_keep_three(tmp_path):
    alone = broker_properties(node_id=0, ports=PORTS[:1], data=tmp_path)
    assert alone["offsets.topic.replication.factor"] == alone["min.insync.replicas"] == "1"
    third = broker_properties(node_id=2, ports=PORTS, data=tmp_path)
    assert third["offsets.topic.replication.factor"] == "3"
    assert third["min.insync.replicas"] == "2"
    assert third["controller.quorum.voters"] == "0@127.0.0.1:3,1@127.0.0.1:7,2@127.0.0.1:11"


def test_clients_are_told_the_proxy_and_brokers_each_other(tmp_path):
    advertised = broker_properties(node_id=1, ports=PORTS, data=tmp_path)["advertised.listeners"]
    assert advertised == "CLIENT://127.0.0.1:8,INTERNAL://127.0.0.1:6"


def test_what_the_user_asks_for_wins(tmp_path):
    overrides = {"num.io.threads": "9"}
    settings = broker_properties(node_id=0, ports=PORTS, data=tmp_path, overrides=overrides)
    assert settings["num.io.threads"] == "9"


def test_backslashes_survive_a_properties_file():
    assert properties_text({"a": "b\\c\nd"}) == "a=b\\\\c\\nd\n"


def test_free_ports_are_different_free_and_below_the_ephemeral_range():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(is_free(port) and 10_240 <= port < 32_768 for port in ports)


def test_waiting_returns_the_answer_and_says_what_was_waited_for():
    answers = iter([0, None, "here"])
    got = wait_until(
        lambda: next(answers), timeout_seconds=5, describe="an answer", interval_seconds=0
    )
    assert got == "here"
    with pytest.raises(NotInTimeError, match="not within 0 s: nothing"):
        wait_until(lambda: False, timeout_seconds=0, describe=lambda: "nothing")


def test_a_manual_clock_moves_only_when_told():
    clock = ManualClock(now=100.0)
    clock.sleep(2.5)
    assert (clock.now(), clock.monotonic(), clock.slept_seconds) == (102.5, 2.5, [2.5])
    clock.jump_wall(-50)
    assert (clock.now(), clock.monotonic()) == (52.5, 2.5)
    with pytest.raises(ValueError, match="go back"):
        clock.advance(-1)


def test_a_missing_java_is_named_with_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match="no Java") as caught:
        find_java()
    assert "openjdk-17" in caught.value.remedy


def test_an_old_java_is_named(monkeypatch, tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match="is Java 8, local Kafka needs 17"):
        find_java()


def test_an_unknown_backend_is_refused(monkeypatch):
    monkeypatch.setenv("REPLICATOR_TEST_BACKEND", "clouds")
    with pytest.raises(InputError, match="no backend"):
        choose_backend()


def test_containers_without_an_engine_say_so(monkeypatch, tmp_path):
    monkeypatch.setenv("REPLICATOR_TEST_BACKEND", "containers")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    with pytest.raises(InputError, match="no Docker engine answers"):
        choose_backend()


def test_a_container_formats_its_directory_and_becomes_the_broker(tmp_path):
    spec = BrokerSpec(node_id=0, directory=tmp_path / "broker-0", ports=PORTS[0])
    broker = ContainerBroker(spec, image="apache/kafka:4.3.1")
    broker.format(cluster_id="some-id")
    assert not broker.running
    shell = broker.command()[-1]
    assert "kafka-storage.sh format --ignore-formatted -t some-id" in shell
    assert (
        f"exec /opt/kafka/bin/kafka-server-start.sh {tmp_path}/broker-0/server.properties" in shell
    )
