"""How much a stream has copied: finished ranges, and what is committed of those that still run."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from replicator.dataplane.session.bounded_copy import TOTALS
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition

Moved = tuple[int, int]
"""Records and bytes."""


class MovedCounts:
    """Counts by link; written by Spark's callback and by the driver, which reads checkpoints.

    A range is in its checkpoint's totals while it runs, and in a row of the micro-batch once that has ended:
    it counts once, also in between.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._finished: dict[str, Moved] = {}
        self._running: dict[TopicPartition, tuple[str, Moved]] = {}
        self._reached: dict[TopicPartition, int] = {}
        self._found_before: dict[TopicPartition, tuple[int, Moved]] = {}
        self._taken: dict[str, Moved] = {}

    @property
    def total(self) -> Moved:
        """Records and bytes of all links."""
        with self._lock:
            return _sum(self._by_link().values())

    def begin(self, checkpoints: Mapping[TopicPartition, Checkpoint]) -> None:
        """What others left unfinished before this stream began is not its own."""
        with self._lock:
            for key, start, moved in _unfinished(checkpoints):
                self._found_before[key] = start, moved

    def finish(self, link: str, key: TopicPartition, position: int, moved: Moved) -> None:
        """A range has ended at ``position``; its row says what it copied."""
        with self._lock:
            self._finished[link] = _sum((self._finished.get(link, (0, 0)), moved))
            self._running.pop(key, None)
            self._reached[key] = position

    def look(
        self, checkpoints: Mapping[TopicPartition, Checkpoint], links: Mapping[TopicPartition, str]
    ) -> None:
        """Takes in the totals of ranges that have not ended.

        Args:
            checkpoints: as they are on the target.
            links: of the partitions that the stream holds.
        """
        with self._lock:
            for key, start, moved in _unfinished(checkpoints):
                if key not in links or start < self._reached.get(key, 0):
                    continue  # its row has been counted since
                before, others = self._found_before.get(key, (-1, (0, 0)))
                self._running[key] = links[key], _more(moved, others if before == start else (0, 0))

    def take(self) -> dict[str, Moved]:
        """What came in since the last call, by link."""
        with self._lock:
            now = self._by_link()
            taken, self._taken = self._taken, now
        return {link: _more(moved, taken.get(link, (0, 0))) for link, moved in now.items()}

    def _by_link(self) -> dict[str, Moved]:
        found = dict(self._finished)
        for link, moved in self._running.values():
            found[link] = _sum((found.get(link, (0, 0)), moved))
        return found


def _unfinished(
    checkpoints: Mapping[TopicPartition, Checkpoint],
) -> Iterable[tuple[TopicPartition, int, Moved]]:
    """Partition, first offset, and records and bytes so far of each range whose end is not committed."""
    for key, checkpoint in checkpoints.items():
        stored: Any = checkpoint.extra.get(TOTALS)
        if isinstance(stored, dict):
            yield key, stored["start"], (stored["records"], stored["bytes"])


def _sum(parts: Iterable[Moved]) -> Moved:
    listed = list(parts)
    return sum(each[0] for each in listed), sum(each[1] for each in listed)


def _more(now: Moved, before: Moved) -> Moved:
    return max(0, now[0] - before[0]), max(0, now[1] - before[1])
