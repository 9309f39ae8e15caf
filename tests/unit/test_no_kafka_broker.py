"""What answers at an address is no Kafka broker: that is said, whatever it sends."""

import contextlib
import socket
import struct
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replicator.errors import ReplicatorError, UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection

CLUSTER = ClusterPlan("east", ("unused:1",))


class Stranger:
    """Sends the same to everybody who asks, and hangs up."""

    def __init__(self) -> None:
        self.says = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                asked, _ = self._listener.accept()
                with asked, contextlib.suppress(OSError):
                    asked.recv(10_000)
                    asked.sendall(self.says)

    def close(self) -> None:
        self._listener.close()

    def asked(self) -> BrokerConnection:
        return BrokerConnection(
            CLUSTER, self.address, client_id="test", deadline=time.monotonic() + 10
        )


@pytest.fixture(scope="module")
def stranger():
    made = Stranger()
    yield made
    made.close()


@pytest.mark.parametrize(
    "says",
    [
        b"HTTP/1.1 503 Service Unavailable\r\n\r\n",
        b"\x15\x03\x03\x00\x02\x02\x46",  # a listener with TLS
        b"SSH-2.0-OpenSSH_9\r\n",
        struct.pack(">i", 0),
        struct.pack(">i", 2) + b"ab",
        b"\xff\xff\xff\xff1234",
    ],
)
def test_other_services_are_no_kafka_brokers(stranger, says):
    stranger.says = says
    with pytest.raises(UnreachableError, match="does not answer as a Kafka broker") as raised:
        stranger.asked()
    assert raised.value.subject == "cluster:east"
    assert raised.value.remedy


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=64))
def test_an_answer_of_any_bytes_is_a_broker_or_an_error_of_ours(stranger, body):
    framed = struct.pack(">i", 1) + body  # behind the number of our first question
    stranger.says = struct.pack(">i", len(framed)) + framed
    with contextlib.suppress(ReplicatorError), stranger.asked() as taken:
        assert taken.versions is not None
