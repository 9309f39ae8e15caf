"""Host names that can be none: Python refuses to look them up with an error of their encoding."""

import socket
import time

import pytest

from replicator.batches.network import brokers
from replicator.errors import ReplicatorError, UnreachableError
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan
from replicator.topology.spec.cluster_spec import ClusterSpec
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.probes.line import round_trip_seconds

NONE = ["kafka..internal", ".internal", "x" * 64 + ".internal"]


@pytest.mark.parametrize("name", NONE)
def test_a_broker_of_such_a_name_cannot_be_reached(name):
    cluster = ClusterPlan("east", (f"{name}:9092",))
    with pytest.raises(UnreachableError, match="is no host name") as raised:
        BrokerConnection(
            cluster, (name, 9092), client_id="test", deadline=time.monotonic() + 5
        ).close()
    assert raised.value.subject == "cluster:east"
    assert round_trip_seconds(cluster) == 0.0


@pytest.mark.parametrize("name", NONE)
def test_a_topology_file_may_not_name_it(name):
    with pytest.raises(ValueError, match="is not a host name"):
        ClusterSpec.model_validate({"bootstrapServers": [f"{name}:9092"]})


@pytest.mark.parametrize(
    "address", ["kafka:9092", "kafka.internal.:9092", "[::1]:9092", "127.0.0.1:1", "b-1_a.x:9092"]
)
def test_names_of_hosts_and_addresses_are_taken(address):
    (server,) = ClusterSpec.model_validate({"bootstrapServers": [address]}).bootstrap_servers
    assert server == address


def test_whatever_goes_wrong_while_a_broker_is_dialled_is_an_answer(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("of a library")

    monkeypatch.setattr(socket, "create_connection", broken)
    dial = brokers._Dial(ClusterPlan("east", ("east:9092",)), ("east", 9092), "test")
    wait_until(lambda: dial.answer is not None, timeout_seconds=10, describe="an answer")
    assert isinstance(dial.answer, ReplicatorError)
    assert "ZeroDivisionError" in dial.answer.message
