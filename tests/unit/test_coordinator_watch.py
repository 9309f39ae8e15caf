"""When a producer may end no further transaction: its last end may come once more."""

import logging

import pytest

from replicator.kafka.clients.settings import LOGGER
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch, end_in_doubt, is_loss

LOST = "[thrd:TxnCoordinator]: TxnCoordinator: kafka-1:9092: Disconnected (after 7ms in state UP)"
LINE = "%s [%s] %s"


class Library:
    """Plays the library: its log is served in ``poll``, as the real one does it."""

    def __init__(self, watch):
        self._watch = watch
        self.queued = []

    def poll(self, _timeout):
        while self.queued:
            self._watch.log(logging.INFO, LINE, "FAIL", "producer", self.queued.pop())
        return 0


@pytest.fixture
def times():
    return [0.0]


@pytest.fixture
def watch(times):
    return CoordinatorWatch(monotonic=lambda: times[0])


@pytest.mark.parametrize(
    ("meanwhile", "lately", "seconds", "doubt"),
    [
        (False, False, 60.0, False),
        (True, False, 0.001, True),
        (False, True, 0.079, False),
        (False, True, 0.08, True),
    ],
)
def test_an_end_is_in_doubt_where_a_request_may_have_been_sent_twice(
    meanwhile, lately, seconds, doubt
):
    found = end_in_doubt(lost_meanwhile=meanwhile, lost_lately=lately, seconds=seconds)
    assert found is doubt


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        (LOST, True),
        ("TxnCoordinator: Timed out EndTxnRequest in flight (after 60000ms)", True),
        (
            "TxnCoordinator: kafka-1:9092: Connect failed: refused (after 0ms in state CONNECT)",
            False,
        ),
        ("kafka-1:9092/1: Disconnected (after 7ms in state UP)", False),
    ],
)
def test_only_an_established_connection_to_the_coordinator_can_be_lost(text, loss):
    assert is_loss(text) is loss


def test_a_connection_that_is_lost_while_a_transaction_ends_ends_the_producer(watch):
    library = Library(watch)
    with watch.ending(library):
        library.queued.append(LOST)
    assert watch.in_doubt
    with watch.ending(library):
        pass
    assert watch.in_doubt


def test_a_connection_that_was_lost_before_is_no_doubt_unless_another_loss_is_not_logged(
    watch, times
):
    library = Library(watch)
    library.queued.append(LOST)
    with watch.ending(library):
        times[0] += 0.05
    assert not watch.in_doubt
    times[0] += 29
    with watch.ending(library):
        times[0] += 0.1
    assert watch.in_doubt


def test_a_loss_of_long_ago_hides_no_other(watch, times):
    library = Library(watch)
    library.queued.append(LOST)
    library.poll(0)
    times[0] += 31
    with watch.ending(library):
        times[0] += 5
    assert not watch.in_doubt


def test_a_failed_end_is_watched_too(watch):
    library = Library(watch)

    def fails():
        with watch.ending(library):
            library.queued.append(LOST)
            raise TimeoutError

    with pytest.raises(TimeoutError):
        fails()
    assert watch.in_doubt


def test_warnings_of_the_library_are_passed_on_and_losses_are_not(watch, caplog):
    with caplog.at_level(logging.DEBUG, LOGGER.name):
        watch.log(logging.INFO, LINE, "FAIL", "producer", LOST)
        watch.log(logging.WARNING, LINE, "CONFWARN", "producer", "told")
    assert [record.getMessage() for record in caplog.records] == ["CONFWARN [producer] told"]
