"""How long a transaction's first batches are kept back: until the markers of the last one are written. Pure.

A coordinator says that a transaction is committed before its markers are. A partition that is written to in between
has to wait: the broker asks the coordinator again after 20 ms (``add.partitions.to.txn.retry.backoff.ms``). So a batch
that is sent a few milliseconds later is taken sooner. Nothing says when the markers are there, so what the first
answers take is looked at.
"""

from replicator.backoff import Backoff

BACKED_OFF_SECONDS = 0.018
"""A first answer that took so long was one that came too early, most likely."""

FIRST_SECONDS, LEAST_SECONDS, MOST_SECONDS = 0.003, 0.001, 0.01
LONGER_SECONDS = 0.001
SHORTER_SECONDS = LONGER_SECONDS / 200
"""So at most one transaction in two hundred comes too early to find out that it may come earlier."""

REFUSED_AGAIN = Backoff(0.002, 0.02)
"""Markers of few partitions take a few milliseconds, and nothing can be written meanwhile."""


class MarkerWait:
    """Of one writer; times are monotonic seconds.

    Attributes:
        seconds: from the end of a transaction until the next one may be written to.
        until: when it may be.
    """

    def __init__(self) -> None:
        self.seconds = FIRST_SECONDS
        self.until = 0.0
        self._sent_at: float | None = None
        self._watching = self._answered = False

    def ended(self, now: float) -> None:
        """The coordinator has just said that a transaction is over."""
        self.until = now + self.seconds
        self._sent_at, self._watching, self._answered = None, True, False

    def sent(self, now: float) -> None:
        """Batches are sent."""
        if self._sent_at is None:
            self._sent_at = now

    def answered(self) -> None:
        """Batches were acknowledged."""
        self._answered = True

    def look(self, now: float) -> None:
        """Learns from the first answer of a transaction."""
        if not (self._watching and self._answered) or self._sent_at is None:
            return
        self.told(early=now - self._sent_at >= BACKED_OFF_SECONDS)

    def refused(self, now: float, times: int) -> None:
        """The coordinator takes no partition yet, for so many times: it is asked again a little later."""
        self.told(early=True)
        self.until = now + REFUSED_AGAIN.seconds(times)

    def told(self, *, early: bool) -> None:
        """Whether the first partition of a transaction came before the markers of the last one."""
        if not self._watching:
            return
        self._watching = False
        if early:
            self.seconds = min(self.seconds + LONGER_SECONDS, MOST_SECONDS)
        else:
            self.seconds = max(self.seconds - SHORTER_SECONDS, LEAST_SECONDS)
