"""Waiting for a condition with a deadline: the only way tests and the kit itself pass time."""

import time
from collections.abc import Callable
from typing import TypeVar

from replicator.errors import ReplicatorError

T = TypeVar("T")


class NotInTimeError(ReplicatorError):
    """A condition that was waited for did not come true before its deadline."""

    code = "NOT_IN_TIME"


def wait_until(
    condition: Callable[[], T],
    *,
    timeout_seconds: float,
    describe: str | Callable[[], str],
    interval_seconds: float = 0.05,
) -> T:
    """Checks ``condition`` until it is true, and returns what it returned.

    Args:
        condition: checked at once, then every ``interval_seconds``, and a last time at the deadline.
        timeout_seconds: the deadline, from now.
        describe: what is waited for; a callable is called only on failure, so it may look at logs.
        interval_seconds: pause between two checks.

    Raises:
        NotInTimeError: when the deadline passes; the message carries ``describe``.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        last_chance = time.monotonic() >= deadline
        answer = condition()
        if answer:
            return answer
        if last_chance:
            what = describe if isinstance(describe, str) else describe()
            raise NotInTimeError(f"not within {timeout_seconds:g} s: {what}")
        time.sleep(interval_seconds)  # a condition gives no signal when it becomes true
