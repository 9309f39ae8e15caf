"""A moment in the queue of a writer: whether everything that was queued then is acknowledged."""

from collections.abc import Callable, Iterable

from replicator.batches.copy.outgoing import Outgoing


class Barrier:
    """Stands behind batches that are queued or on their way; what is queued later does not matter to it.

    A batch that is sent again, or joined with others while it waits, counts once it is acknowledged.
    """

    def __init__(self, batches: Iterable[Outgoing]) -> None:
        self._left = 0
        for batch in batches:
            self._left += 1
            batch.on_written = self._counted(batch.on_written)

    @property
    def passed(self) -> bool:
        """Whether all of them are acknowledged."""
        return not self._left

    def _counted(self, told: Callable[[int], None] | None) -> Callable[[int], None]:
        def written(base_offset: int) -> None:
            self._left -= 1
            if told is not None:
                told(base_offset)

        return written
