"""Brokers end the sessions of those who do not log in again: our own connections outlive them."""

import selectors
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from tiny_broker import TinyBroker

from replicator.backoff import Backoff
from replicator.batches.network.brokers import Brokers
from replicator.batches.network.buffers import BufferPool
from replicator.batches.network.leaders import LeadersSeen
from replicator.errors import AuthenticationFailedError
from replicator.logins import cluster_login
from replicator.logins.cluster_login import login_of
from replicator.testing import wait_until
from replicator.topology.file.secrets import resolve_security
from replicator.topology.plan import ClusterPlan, SecretRef, SecurityPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.protocol import ApiVersionsRequest

NODE, FETCH = 7, 1


@pytest.fixture
def broker() -> Iterator[TinyBroker]:
    found = TinyBroker(session_seconds=2.0)
    yield found
    found.stop()


def cluster_of(broker: TinyBroker) -> ClusterPlan:
    host, port = broker.address
    name, password = SecretRef(literal="me"), SecretRef(literal="literal-of-tests")
    security = SecurityPlan("SASL_PLAINTEXT", "PLAIN", username=name, password=password)
    return ClusterPlan("east", (f"{host}:{port}",), security)


def test_a_connection_logs_in_again_before_its_session_ends(broker):
    connection = BrokerConnection(
        cluster_of(broker), broker.address, client_id="test", deadline=time.monotonic() + 10
    )
    until = time.monotonic() + 3.5

    def asked_long_enough() -> bool:
        connection.call(ApiVersionsRequest(), newest=0, deadline=time.monotonic() + 10)
        return time.monotonic() > until

    wait_until(asked_long_enough, timeout_seconds=30, describe="questions past the session")
    connection.close()
    assert broker.cut == 0
    assert len(broker.logins) >= 2


def test_a_connection_waits_for_what_brokers_say_of_a_changed_login(broker, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_login, "_TRIAL", None)  # the verdict comes when this test says so
    broker.session_seconds = 6.0
    file = tmp_path / "password"
    file.write_text("before")
    security = replace(cluster_of(broker).security, password=SecretRef(file=str(file)))
    cluster = replace(cluster_of(broker), security=security)
    login = login_of(cluster)
    with BrokerConnection(
        cluster, broker.address, client_id="test", deadline=time.monotonic() + 10
    ) as connection:
        file.write_text("after")
        login.look()
        connection.renew_at = time.monotonic()

        def ask() -> None:
            connection.call(ApiVersionsRequest(), newest=0, deadline=time.monotonic() + 10)

        ask()
        assert len(broker.logins) == 1
        assert login.undecided
        changed = resolve_security(cluster)
        login.taken(changed)
        ask()
        assert login.security() == changed
    assert len(broker.logins) == 2


@pytest.mark.parametrize("again", [True, False], ids=["logs in again", "connects anew"])
def test_a_connection_that_is_refused_has_a_changed_login_tried_soon(
    broker, tmp_path, monkeypatch, again
):
    tried = []

    def refused_by_brokers(_cluster, security):
        tried.append(security.password)
        raise AuthenticationFailedError("not that one", remedy="Another.")

    monkeypatch.setattr(cluster_login, "_TRIAL", refused_by_brokers)
    monkeypatch.setattr(cluster_login, "REFUSED_AGAIN", Backoff(600.0, 600.0))
    broker.session_seconds = 6.0
    file = tmp_path / "password"
    file.write_text("before")
    security = replace(cluster_of(broker).security, password=SecretRef(file=str(file)))
    cluster = replace(cluster_of(broker), security=security)
    deadline = time.monotonic() + 30

    def connected() -> BrokerConnection:
        return BrokerConnection(cluster, broker.address, client_id="test", deadline=deadline)

    with connected() as connection:
        file.write_text("after")
        wait_until(lambda: tried == ["after"], timeout_seconds=20, describe="the first trial")
        broker.refuses = True
        connection.renew_at = connection._renew_latest = time.monotonic()
        logs_in = (
            partial(connection.call, ApiVersionsRequest(), newest=0, deadline=deadline)
            if again
            else connected
        )
        with pytest.raises(AuthenticationFailedError):
            logs_in()
        wait_until(lambda: len(tried) > 1, timeout_seconds=20, describe="the second trial")


def test_without_a_limit_no_client_logs_in_again(broker):
    broker.session_seconds = 0.0
    with BrokerConnection(
        cluster_of(broker), broker.address, client_id="test", deadline=time.monotonic() + 10
    ) as connection:
        assert connection.renew_at == float("inf")


class Asker:
    """Keeps one request under way, as the readers and writers of whole batches do."""

    def __init__(self, broker: TinyBroker) -> None:
        self.answers = self.lost = 0
        self.waiting = False
        self._selector = selectors.DefaultSelector()
        self.brokers = Brokers(
            cluster_of(broker), client_id="test", selector=self._selector, pool=BufferPool(),
            on_frame=lambda node, frame: self._answered(),
            on_lost=lambda node: setattr(self, "lost", self.lost + 1),
        )  # fmt: skip
        self.brokers.leaders.seen = LeadersSeen(addresses={NODE: broker.address})

    def _answered(self) -> None:
        self.answers += 1
        self.waiting = False

    def turn(self) -> None:
        now = time.monotonic()
        self.brokers.look(now)
        channel = self.brokers.channel(NODE, now)
        if channel is not None and not self.waiting:
            self.waiting = True
            self.brokers.send(NODE, channel, [struct.pack(">ihhih", 10, FETCH, 0, 1, -1)])
        for key, events in self._selector.select(0.01):
            key.data[0].serve(key.data[1], events, time.monotonic())


def test_channels_are_exchanged_when_nothing_is_under_way_before_their_session_ends(broker):
    asker = Asker(broker)
    until = time.monotonic() + 5
    wait_until(
        lambda: asker.turn() or time.monotonic() > until,
        timeout_seconds=30, interval_seconds=0.0, describe="five seconds of questions",
    )  # fmt: skip
    asker.brokers.close()
    assert asker.answers > 20
    assert (asker.lost, broker.cut) == (0, 0)
    assert len(broker.logins) >= 3


def test_a_channel_with_a_request_under_way_is_not_exchanged(broker):
    asker = Asker(broker)
    wait_until(lambda: asker.turn() or asker.answers > 3, timeout_seconds=20, describe="answers")
    broker.free.clear()
    wait_until(
        lambda: asker.turn() or (len(broker.logins) >= 2 and asker.waiting),
        timeout_seconds=20, describe="the next connection",
    )  # fmt: skip
    before = asker.answers
    broker.free.set()
    wait_until(
        lambda: asker.turn() or asker.answers > before + 3,
        timeout_seconds=20, describe="answers on the next connection",
    )  # fmt: skip
    asker.brokers.close()
    assert (asker.lost, broker.cut) == (0, 0)
