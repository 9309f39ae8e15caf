"""Why a topic was not read to its end: one cause does not hide another."""

import pytest

from replicator.errors import AuthenticationFailedError, UnreachableError
from replicator.kafka.logs.unread_end import UnreadPart, unread_error

DEAD = UnreachableError(
    "cannot read log: broker 1 at b:9092 does not answer", remedy="Check that the brokers run."
)
HELD = UnreadPart(3, 17, end=25, leader=2, held_at=17, held_by="transactional id 'writer'")


def told(*unread, beside=None):
    return unread_error("log", list(unread), seconds=30, subject="cluster:west", beside=beside)


def test_an_open_transaction_and_a_broker_that_does_not_answer_are_both_said():
    error = told(HELD, beside=DEAD)
    assert error.message == (
        "cannot read log/3 to its end: a transaction has been open by transactional id 'writer' at offset 17 for "
        "30 seconds, and hides what was written behind it up to 25; beside that, cannot read log: broker 1 at "
        "b:9092 does not answer"
    )
    assert "kafka-transactions.sh abort" in error.remedy
    assert error.remedy.endswith("Check that the brokers run.")
    assert (error.code, error.subject) == ("UNREACHABLE", "cluster:west")
    assert "beside" not in told(HELD).message


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (UnreadPart(0, 3, end=9, leader=2), "log/0, which broker 2 leads, was read to 3 of 9"),
        (UnreadPart(0, 3, end=9), "log/0 was read to 3 of 9"),
        (UnreadPart(0, 0, leader=2), "the end of log/0, which broker 2 leads, was not told"),
        (UnreadPart(0, 0, leader=-1), "log/0 has no leader"),
    ],
)
def test_how_far_it_was_read_is_said_with_and_without_another_error(part, says):
    assert told(part).message == f"cannot read log to its end within 30 seconds: {says}"
    both = told(part, beside=DEAD)
    assert both.message == f"{DEAD.message}; {says}"
    assert both.remedy == DEAD.remedy


def test_the_kind_of_an_error_is_kept_where_nothing_is_hidden():
    refused = AuthenticationFailedError("cannot read log: wrong password", remedy="Correct it.")
    assert isinstance(told(UnreadPart(0, 0), beside=refused), AuthenticationFailedError)
    assert told(beside=refused) is refused
