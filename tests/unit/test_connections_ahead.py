"""The connections of the next session with whole batches are there before the present one ends."""

import time

import pytest
from tiny_broker import TinyBroker

from replicator.batches.network.brokers import Brokers, connection_to
from replicator.batches.network.io_loop import IoLoop
from replicator.batches.network.leaders import LeadersSeen
from replicator.clock import SystemClock
from replicator.errors import AuthenticationFailedError, UnreachableError
from replicator.topology.plan import ClusterPlan, SecretRef, SecurityPlan

NAME, PASSWORD = SecretRef(literal="me"), SecretRef(literal="literal-of-tests")
SECURITY = SecurityPlan("SASL_PLAINTEXT", "PLAIN", username=NAME, password=PASSWORD)
NOBODY = ("127.0.0.1", 1)


@pytest.fixture
def brokers():
    found = TinyBroker(session_seconds=60.0), TinyBroker(session_seconds=60.0)
    yield found
    for each in found:
        each.stop()


class Side:
    """A loop with the connections to one cluster, whose brokers 0, 1, ... lead a partition each of ``t``."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self.loop = IoLoop(SystemClock())
        servers = tuple(f"{host}:{port}" for host, port in addresses)
        self.brokers: Brokers = self.loop.brokers(
            ClusterPlan("east", servers, SECURITY), client_id="test",
            on_frame=lambda node, frame: None, on_lost=lambda node: None,
        )  # fmt: skip
        self.brokers.leaders.seen = LeadersSeen(
            {("t", number): (number, 1) for number in range(len(addresses))},
            dict(enumerate(addresses)),
        )

    def connect(self, *, connections: int = 1, seconds: float = 20.0) -> None:
        self.loop.connect(((self.brokers, {"t"}, connections),), seconds)


def test_every_leader_has_its_connections_before_anything_is_asked(brokers):
    side = Side(*(each.address for each in brokers))
    side.connect(connections=2)
    assert min(len(each.logins) for each in brokers) >= 2  # one more asks who leads
    now = time.monotonic()
    for node in (0, 1):
        for number in (0, 1):
            assert side.brokers.channel(connection_to(node, number), now) is not None
    side.loop.close()


def test_a_broker_that_is_down_does_not_keep_clients_from_the_others(brokers):
    side = Side(brokers[0].address, NOBODY)
    side.connect()
    assert side.brokers.channel(0, time.monotonic()) is not None
    side.loop.close()


def test_a_broker_that_refuses_us_ends_the_attempt(brokers):
    brokers[1].refuses = True
    side = Side(*(each.address for each in brokers))
    with pytest.raises(AuthenticationFailedError):
        side.connect()
    side.loop.close()


def test_a_cluster_that_says_nothing_ends_it_in_time():
    side = Side(NOBODY)
    side.brokers.leaders.seen = LeadersSeen()
    with pytest.raises(UnreachableError):
        side.connect(seconds=0.5)
    side.loop.close()
