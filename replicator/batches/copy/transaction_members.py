"""Which partitions belong to the open transaction, and who tells its coordinator.

With transaction version 2 a broker does, before it takes the first batch of a partition. Of several brokers only one
is heard at a time: the coordinator refuses the others until it has stored that, and each of them asks again after
20 ms (``add.partitions.to.txn.retry.backoff.ms``), up to five times, before it refuses the batch. So where several
brokers are written to, and the coordinator is near, it is told of all partitions at once before anything is sent.
"""

from collections.abc import Callable, Iterable

from replicator.batches.copy.marker_wait import MarkerWait
from replicator.batches.copy.outgoing import Key

AHEAD_SECONDS = 1.0
"""Markers that are missing for longer wait for a broker that is gone: what the others say tells the lane more."""
PATIENCE_SECONDS = 10.0
"""Below transaction version 2 nothing can be written before; then the lane has to be told of it."""


class TransactionMembers:
    """Of one producer, for one thread."""

    def __init__(
        self, tell: Callable[[list[Key], bool], bool], *, ahead: bool, always: Key
    ) -> None:
        """``tell`` adds partitions to the open transaction; False: not yet, which it says only where it may.

        ``ahead``: it is told even where the brokers would do it. ``always`` is written to in every transaction.
        """
        self._tell = tell
        self._ahead = ahead
        self._always = always
        self._by_themselves = True
        self._told: set[Key] = set()
        self._refused = 0
        self._refused_since = 0.0

    def begin(self, *, joins_by_itself: bool) -> None:
        """A new transaction; ``joins_by_itself``: a partition belongs to it as soon as it is written to."""
        self._by_themselves = joins_by_itself
        self._told = set()
        self._refused = 0

    def may_write(
        self, keys: Iterable[Key], *, brokers: int, now: float, markers: MarkerWait
    ) -> bool:
        """Whether these may be written to; otherwise when to ask again is in ``markers``.

        ``brokers``: how many lead what is written to in this transaction.

        Raises:
            ReplicatorError: the transaction cannot go on.
        """
        if self._by_themselves and not (self._ahead and brokers > 1):
            return True
        told = self._told
        fresh = [key for key in keys if key not in told]
        if not fresh:
            return True
        if not told and self._always not in fresh:
            fresh.append(self._always)
        waited = now - self._refused_since if self._refused else 0.0
        if self._tell(fresh, self._by_themselves or waited <= PATIENCE_SECONDS):
            markers.told(early=False)
        elif not self._by_themselves or waited <= AHEAD_SECONDS:
            self._refused_since = now - waited
            self._refused += 1
            markers.refused(now, self._refused)
            return False
        self._refused = 0
        told.update(fresh)
        return True
