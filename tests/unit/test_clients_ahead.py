"""The next session's clients are opened beside the present one, and never left open."""

import threading

import pytest

from replicator.dataplane.session.clients_ahead import ClientsAhead
from replicator.errors import UnreachableError
from replicator.testing import wait_until


class Clients:
    """As far as opening ahead goes."""

    def __init__(self, *, refused: bool = False) -> None:
        self.go_on = threading.Event()
        self.refused = refused
        self.connected = self.closed = False

    def connect_ahead(self) -> None:
        assert self.go_on.wait(20)
        if self.refused:
            raise UnreachableError("nobody is there")
        self.connected = True

    def close(self) -> None:
        self.closed = True


def ahead_of(clients: Clients) -> ClientsAhead:
    return ClientsAhead(lambda: clients, name="lane")


def over(ahead: ClientsAhead) -> None:
    wait_until(lambda: ahead.over, timeout_seconds=20, describe="the attempt to end")


def test_clients_are_there_once_they_are_connected():
    clients = Clients()
    ahead = ahead_of(clients)
    assert not ahead.over
    clients.go_on.set()
    over(ahead)
    assert ahead.take() is clients
    assert (clients.connected, clients.closed) == (True, False)
    assert ahead.take() is None


@pytest.mark.parametrize("give_up", [ClientsAhead.give_up, ClientsAhead.take])
def test_clients_that_nobody_takes_are_closed_also_when_they_are_ready_later(give_up):
    clients = Clients()
    ahead = ahead_of(clients)
    assert give_up(ahead) is None
    clients.go_on.set()
    over(ahead)
    assert clients.closed


def test_clients_that_were_ready_and_are_given_up_are_closed():
    clients = Clients()
    ahead = ahead_of(clients)
    clients.go_on.set()
    over(ahead)
    ahead.give_up()
    assert clients.closed


def test_clients_that_cannot_connect_are_closed_and_the_reason_is_kept():
    clients = Clients(refused=True)
    ahead = ahead_of(clients)
    clients.go_on.set()
    over(ahead)
    assert "nobody is there" in str(ahead.failure)
    assert clients.closed
    assert ahead.take() is None


def test_what_cannot_even_be_opened_is_a_failure_too():
    def fails() -> Clients:
        raise RuntimeError("by mistake")

    ahead = ClientsAhead(fails, name="lane")
    over(ahead)
    assert "by mistake" in str(ahead.failure)
