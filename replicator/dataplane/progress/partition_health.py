"""Why one partition does not move, since when, and when it is tried again.

Invariant: a failure of a partition ends with that partition's own progress, or where there is none left to
make with the cluster's word on that very partition, and with nothing else; that the cluster answers other
questions, or that other partitions move, says nothing about it.
"""

import re
from typing import Literal

from replicator.errors import ReplicatorError
from replicator.formats.partition_failure import PartitionFailure

Side = Literal["source", "target"]

RETRY_FIRST_SECONDS = 1.0
RETRY_MOST_SECONDS = 15.0
"""A partition that was mended moves again after this long at most."""

TOLD_AGAIN_SECONDS = 30.0
TOLD_AGAIN_MOST_SECONDS = 300.0
"""A cause that comes back after another one is told again after so long; twice as long each time."""

_MOST_CAUSES = 8
"""So many causes of one failure are told as soon as they are met."""

_NUMBERS = re.compile(r"\d+")


class PartitionHealth:
    """Of one partition in one lane; for the lane's thread. Everybody who meets an error reports it here.

    Attributes:
        failure: what is wrong now; None while the partition moves.
        retry_at: monotonic seconds; before it the partition is not tried again.
    """

    __slots__ = (
        "_attempts",
        "_ended",
        "_position",
        "_takes_writes",
        "_told",
        "failure",
        "retry_at",
    )

    def __init__(self) -> None:
        self.failure: PartitionFailure | None = None
        self.retry_at = 0.0
        self._attempts = 0
        self._position = -1
        self._ended = False
        self._takes_writes = False
        self._told: _CausesTold | None = None

    def failed(
        self, side: Side, error: ReplicatorError, *, position: int, now: float, at_ms: int
    ) -> bool:
        """Takes in that the partition could not be read or written; whether that is to be told.

        Each cause is, when it is met first; a retry that fails for the same is not, and causes that take
        turns are told less and less often.

        Args:
            side: where it failed.
            error: why; its code, message and remedy are what people read.
            position: where the partition stands: the next offset to read of the ``source``, the
                position that is committed on the ``target``.
            now: monotonic seconds.
            at_ms: milliseconds since the epoch.
        """
        before = self.failure
        self._ended = self._takes_writes = False
        self.put_off(now)
        self._position = position
        self.failure = PartitionFailure(
            code=error.code,
            side=side,
            detail=error.message,
            remedy=error.remedy or "It is tried again by itself.",
            since_ms=at_ms if before is None else before.since_ms,
        )
        if before is None or self._told is None:
            self._told = _CausesTold()
        # Offsets and counts in a text make no other cause.
        return self._told.is_news((side, error.code, _NUMBERS.sub("0", error.message)), now=now)

    def put_off(self, now: float) -> None:
        """It was tried ``now`` (monotonic seconds), and nothing is known but what was: later again."""
        self._attempts += 1
        pause = min(RETRY_FIRST_SECONDS * 2 ** min(self._attempts - 1, 10), RETRY_MOST_SECONDS)
        self.retry_at = now + pause

    def takes_writes(self) -> None:
        """The target, asked about this very partition, had no reason to refuse a write."""
        self._takes_writes = True

    def at_end(self) -> None:
        """The source has just said that there is nothing more to read."""
        failure = self.failure
        self._ended = failure is not None and (failure.side == "source" or self._takes_writes)

    def recovered(self, *, position: int, committed: int) -> PartitionFailure | None:
        """Ends the failure if the partition made progress since, and returns what ended.

        Args:
            position: the next offset to read.
            committed: the position of the newest checkpoint that is stored.
        """
        failure = self.failure
        if failure is None:
            return None
        moved = position if failure.side == "source" else committed
        ended = self._ended and (failure.side == "source" or committed >= position)
        if not ended and moved <= self._position:
            return None
        self.failure = None
        self.retry_at = 0.0
        self._attempts = 0
        self._ended = self._takes_writes = False
        return failure


class _CausesTold:
    """Which causes of one failure were told, and when one that comes back is told again."""

    __slots__ = ("_again_at", "_known", "_last", "_pause")

    def __init__(self) -> None:
        self._known: set[tuple[str, str, str]] = set()
        self._last: tuple[str, str, str] | None = None
        self._pause = TOLD_AGAIN_SECONDS
        self._again_at = 0.0

    def is_news(self, cause: tuple[str, str, str], *, now: float) -> bool:
        """Whether to tell this cause ``now`` (monotonic seconds); it counts as told then."""
        if cause == self._last:
            return False
        if cause not in self._known and len(self._known) < _MOST_CAUSES:
            self._known.add(cause)
        elif now < self._again_at:
            return False
        else:
            self._pause = min(2 * self._pause, TOLD_AGAIN_MOST_SECONDS)
        self._last, self._again_at = cause, now + self._pause
        return True
