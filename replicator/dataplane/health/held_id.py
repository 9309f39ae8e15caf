"""A take-over that waits for the lane's transactional id: an open transaction may hold it, which cannot end.

The last owner's transaction ends only when every partition in it can be written, so the target is asked
which of the lane's partitions take no writes, and that is reported while the lane goes on waiting. Where it
names none, that the lane waits is reported all the same; where it does not answer, why.
"""

from collections.abc import Callable, Iterable

from replicator.clock import Clock
from replicator.dataplane.health.stuck_writes import (
    AGAIN_SECONDS,
    PATIENCE_SECONDS,
    StuckWrites,
)
from replicator.errors import PartitionsRefusedError, ReplicatorError, UnreachableError
from replicator.identifiers import TopicPartition

TOLD_SECONDS = 5.0
"""A coordinator that moves, or ends a transaction on a busy cluster, is back within less."""


class HeldId:
    """Of one lane, across its sessions; for the lane's thread."""

    def __init__(
        self,
        writes: StuckWrites,
        *,
        target: str,
        places: Callable[[], Iterable[TopicPartition]],
        on_held: Callable[[ReplicatorError], None],
        clock: Clock,
    ) -> None:
        """``places`` gives the lane's target partitions; ``on_held`` gets why the lane waits, where that is known.

        That is a PartitionsRefusedError for those that take no writes. ``target`` is the cluster's alias.
        """
        self._writes = writes
        self._target = target
        self._places = places
        self._on_held = on_held
        self._clock = clock
        self._ask_at = 0.0
        self._began = 0.0

    def takeover_begins(self) -> None:
        """An id is often free within a second: nothing is asked at first."""
        self._began = self._clock.monotonic()
        self._ask_at = self._began + PATIENCE_SECONDS

    def waits(self) -> None:
        """Called again and again while the id is not free; asks the target when it is time."""
        if self._clock.monotonic() < self._ask_at:
            return
        refusals = self._writes.refusals_of_all(self._places())
        if refusals:
            self._on_held(PartitionsRefusedError(refusals))
        elif self._clock.monotonic() - self._began >= TOLD_SECONDS:
            self._on_held(
                self._writes.unanswered
                or UnreachableError(
                    "the lane's transactional id is not free: its coordinator does not answer, or has "
                    "not ended the transaction of the last owner",
                    subject=f"cluster:{self._target}",
                    remedy="Check that the target's brokers run and that all partitions of "
                    "__transaction_state have a leader. The lane goes on waiting.",
                )
            )
        self._ask_at = self._clock.monotonic() + AGAIN_SECONDS
