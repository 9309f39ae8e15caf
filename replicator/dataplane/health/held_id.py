"""A take-over that waits for the lane's transactional id: an open transaction may hold it, which cannot end.

The last owner's transaction ends only when every partition in it can be written, so the target is asked
which of the lane's partitions take no writes, and that is reported while the lane goes on waiting.
"""

from collections.abc import Callable, Iterable

from replicator.clock import Clock
from replicator.dataplane.health.stuck_writes import (
    AGAIN_SECONDS,
    PATIENCE_SECONDS,
    StuckWrites,
)
from replicator.errors import PartitionsRefusedError
from replicator.identifiers import TopicPartition


class HeldId:
    """Of one lane, across its sessions; for the lane's thread."""

    def __init__(
        self,
        writes: StuckWrites,
        *,
        places: Callable[[], Iterable[TopicPartition]],
        on_refused: Callable[[PartitionsRefusedError], None],
        clock: Clock,
    ) -> None:
        """``places`` gives the lane's target partitions; ``on_refused`` gets those that take no writes."""
        self._writes = writes
        self._places = places
        self._on_refused = on_refused
        self._clock = clock
        self._ask_at = 0.0

    def takeover_begins(self) -> None:
        """An id is often free within a second: nothing is asked at first."""
        self._ask_at = self._clock.monotonic() + PATIENCE_SECONDS

    def waits(self) -> None:
        """Called again and again while the id is not free; asks the target when it is time."""
        if self._clock.monotonic() < self._ask_at:
            return
        refusals = self._writes.refusals(self._places())
        if refusals:
            self._on_refused(PartitionsRefusedError(refusals))
        self._ask_at = self._clock.monotonic() + AGAIN_SECONDS
