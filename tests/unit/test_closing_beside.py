"""A client is closed beside the lane's thread, and what it says meanwhile is not heard."""

import threading

import pytest

from replicator.dataplane.session.closing_beside import close_beside, unless_closing
from replicator.kafka.clients.client import KafkaException


class Client:
    """Says something while it closes, which takes until it may go on."""

    def __init__(self, say, *, error=None):
        self.say, self.error = say, error
        self.may_go_on, self.closed = threading.Event(), threading.Event()

    def close(self):
        assert self.may_go_on.wait(20)
        self.say("orders", topic_id="late")
        self.closed.set()
        if self.error is not None:
            raise self.error


def test_nobody_waits_for_a_client_that_closes_nor_hears_it():
    heard = []

    def told(topic, *, topic_id):
        heard.append((topic, topic_id))

    client = Client(unless_closing(told))
    close_beside(client)
    assert not client.closed.is_set()
    unless_closing(told)("orders", topic_id="of another client")
    client.may_go_on.set()
    assert client.closed.wait(20)
    assert heard == [("orders", "of another client")]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [KafkaException(), RuntimeError("Consumer closed")])
def test_one_that_cannot_be_closed_ends_its_thread_only(error):
    client = Client(unless_closing(lambda *_, **__: None), error=error)
    client.may_go_on.set()
    close_beside(client)
    assert client.closed.wait(20)
    for thread in threading.enumerate():
        if thread.name == "client-close":
            thread.join(20)
