"""A stretch of a target's log in which both engines may have written: which copies say what they are.

Read batch by batch and once, whichever engine wrote: what stands there decides how its copies are told.
"""

from collections.abc import Callable, Iterable

from replicator.batches.codec.found_batches import FoundBatch
from replicator.batches.codec.stretch import Stretch, clipped
from replicator.batches.registry.batch_bounds import (
    FETCH_BYTES,
    MOST_BYTES,
    Hole,
    LogQuery,
    StretchesOfLog,
)
from replicator.batches.registry.marked_copies import MarkedCopies, Place
from replicator.errors import SourceDataLostError

MOST_DECODED = 100_000
"""Records of one stretch that are looked at one by one: a second of work, and as many as the longest look."""


class MixedLog:
    """What stands in a stretch, as far as its batches were taken in. Pure.

    Attributes:
        position: the offset behind the last batch.
        pairs: copies that name their place, in the order of the log.
        counted: copies that do not.
        silent: records that say nothing of where they come from, of producers that are no flow's.
        own: copies of either kind whose producer is registered.
        holes: where something may have been compacted away.
        records: how many records were taken in.
        decoded: how many of them were looked at one by one.
    """

    def __init__(
        self, position: int, marks: MarkedCopies, registered: Callable[[FoundBatch], bool]
    ) -> None:
        """``registered`` says of a batch of records whether a producer of its flows wrote it."""
        self.position = position
        self.pairs: list[Place] = []
        self.counted: list[Stretch] = []
        self.silent: list[Stretch] = []
        self.own: list[Stretch] = []
        self.holes: list[Hole] = []
        self.records = 0
        self.decoded = 0
        self._start = position
        self._marks = marks
        self._registered = registered

    def take(self, batch: FoundBatch) -> None:
        """Takes in the next batch of the log.

        Raises:
            ReplicatorError: the batch or the registry cannot be read.
        """
        if batch.base_offset > self.position:
            self.skip_to(batch.base_offset)
        self.position = batch.last_offset + 1
        if batch.skip == "empty":
            self.holes.append((batch.base_offset, self.position))  # compaction took all of it
        if batch.skip:
            return
        found = self._marks.found(batch, registered=self._registered(batch))
        self.pairs += [each for each in found.pairs if each[1] >= self._start]
        self.counted += clipped(found.counted, self._start, self.position)
        self.silent += clipped(found.silent, self._start, self.position)
        self.own += clipped(found.own, self._start, self.position)
        self.holes += found.holes
        self.records += found.records
        self.decoded += found.decoded

    def skip_to(self, position: int) -> None:
        """Nothing stands in the log before a position."""
        self.holes.append((self.position, position))
        self.position = position

    def copies(self, start: int, end: int) -> StretchesOfLog:
        """The copies without a mark between two offsets, and whether nothing of ours was compacted away there."""
        holes = tuple(self.holes)
        return StretchesOfLog(self.counted, not holes, holes).between(start, end)


def read_mixed(
    query: LogQuery,
    marks: MarkedCopies,
    *,
    enough: Callable[[MixedLog], bool] = lambda _: False,
    fetch_bytes: int = FETCH_BYTES,
) -> MixedLog | None:
    """The committed records between two offsets; None where the log lacks the first one, or ends before.

    It may end before the last offset (see ``position``): where ``enough`` says so of what was taken in, where the
    stretch is too long to be read, and out of time. The query's ``counts`` says which batches are of
    registered producers.

    Raises:
        ReplicatorError: the cluster does not answer, or refuses us.
    """
    start, end = query.bounds
    found = MixedLog(start, marks, query.counts)
    read = 0

    def done() -> bool:
        if found.position >= end or read > MOST_BYTES or found.decoded > MOST_DECODED:
            return True
        return enough(found)

    with query.log() as log:
        while not done() and query.in_time():
            try:
                data, aborted, stable = log.committed(found.position, most_bytes=fetch_bytes)
            except SourceDataLostError:
                return None
            read += len(data)
            before = found.position
            _take(found, query.batches(data, before, aborted), end, enough)
            if found.position == before:
                if stable < end:
                    return None  # a transaction is open there
                found.skip_to(min(stable, end))
    return found


def _take(
    found: MixedLog, batches: Iterable[FoundBatch], end: int, enough: Callable[[MixedLog], bool]
) -> None:
    for batch in batches:
        if batch.base_offset >= end > found.position:
            found.skip_to(end)
        if found.position >= end or enough(found):
            return
        found.take(batch)
