"""Asking again until a deadline: which of several failures is told at the end."""

import time

import pytest

from replicator.errors import TransientBrokerError, UnreachableError
from replicator.wire.connection.leader import until_answered


def asks(*failures, lasting):
    """Attempts that fail one after the other, the last one again and again; each takes so many seconds."""
    waiting = list(failures)

    def attempt():
        time.sleep(lasting)
        raise waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return attempt


def test_what_a_broker_said_outlasts_an_attempt_that_the_deadline_cut_short():
    attempt = asks(TransientBrokerError("no broker lives"), UnreachableError("late"), lasting=0.3)
    with pytest.raises(TransientBrokerError, match="no broker lives"):
        until_answered(attempt, deadline=time.monotonic() + 0.6)


def test_a_broker_that_has_been_silent_for_longer_is_told_as_silent():
    attempt = asks(TransientBrokerError("no broker lives"), UnreachableError("gone"), lasting=0.1)
    with pytest.raises(UnreachableError, match="gone"):
        until_answered(attempt, deadline=time.monotonic() + 3.0)
