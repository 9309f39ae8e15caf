"""The committed copies of one flow in a stretch of its target's log, whatever others have open there.

Committed reading ends at the first open transaction, whose ever it is. But what a lane wrote is judged by
the lane's own markers alone, so the log is read to its end and each copy is given its outcome here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from replicator.batches.codec.found_batches import FoundBatch
from replicator.batches.codec.header import TRANSACTIONAL
from replicator.batches.codec.stretch import Stretch, clipped
from replicator.batches.registry.batch_bounds import (
    FETCH_BYTES,
    MOST_BYTES,
    Hole,
    LogQuery,
    StretchesOfLog,
    records_of,
)
from replicator.batches.registry.marked_copies import MarkedCopies, Place
from replicator.errors import SourceDataLostError


@dataclass(frozen=True, slots=True)
class OwnCopies:
    """The committed copies, as ``StretchesOfLog`` has them, and whether others of ours have no outcome.

    ``undecided``: their marker is missing, as where an unclean election took it. The next transaction of
    their producer in this partition decides them, one way or the other. ``pairs`` are those copies that
    name their place on the source, which are not among the others. ``silent`` are records that may be
    copies and do not say so, whatever became of them.
    """

    copies: StretchesOfLog
    undecided: bool
    pairs: tuple[Place, ...] = ()
    silent: tuple[Stretch, ...] = ()


def own_copies(query: LogQuery, marks: MarkedCopies | None = None) -> OwnCopies | None:
    """The copies between two offsets, in order; None where the log cannot be read from one to the other.

    The query's ``counts`` says whether a batch of records is of one of the flow's producers. With ``marks``
    copies that name their place in a header are recognised too, whichever producer wrote them.

    Raises:
        ReplicatorError: the cluster does not answer, or refuses us.
    """
    start, stop = query.bounds
    outcomes = Outcomes(start, query.counts, marks)
    read = 0
    with query.log() as log:
        _, end = log.bounds()  # markers may stand behind what is asked about
        if end < stop:
            return None
        while outcomes.position < end:
            if read > MOST_BYTES or not query.in_time():
                return None
            before = outcomes.position
            try:
                data = log.everything(before, most_bytes=FETCH_BYTES)
            except SourceDataLostError:
                return None
            read += len(data)
            outcomes.take(query.batches(data, before))
            if outcomes.position == before:
                return None  # it ends before, or what stands there is larger than was asked for
    return outcomes.found(start, stop)


class Outcomes:
    """Gives each batch of ours the outcome that its producer's next marker tells. Pure.

    ``position`` is the offset behind the last batch that was taken in.
    """

    def __init__(
        self,
        position: int,
        counts: Callable[[FoundBatch], bool],
        marks: MarkedCopies | None = None,
    ) -> None:
        self.position = position
        self._counts = counts
        self._marks = marks
        self._open: dict[int, _Written] = {}
        self._committed = _Written()
        self._silent: list[Stretch] = []
        self._holes: list[Hole] = []

    def take(self, batches: Iterable[FoundBatch]) -> None:
        """Takes in the next batches of the log, in order."""
        for batch in batches:
            if batch.skip == "control":
                written = self._open.pop(batch.producer_id, _Written())
                if not batch.ends_aborted:
                    self._committed.add(written)
            found, holes = self._copies(batch)
            self._holes += holes
            if batch.attributes & TRANSACTIONAL:
                self._open.setdefault(batch.producer_id, _Written()).add(found)
            else:
                self._committed.add(found)

    def found(self, start: int, end: int) -> OwnCopies:
        """What is known of the stretch between two offsets, half open."""
        open_ = [each.within(start, end) for each in self._open.values()]
        settled = self._committed.within(start, end)
        holes = tuple(self._holes)
        return OwnCopies(
            StretchesOfLog(settled.copies, not holes, holes).between(start, end),
            any(each.copies or each.pairs for each in open_),
            tuple(settled.pairs),
            tuple(clipped(self._silent, start, end)),
        )

    def _copies(self, batch: FoundBatch) -> tuple["_Written", list[Hole]]:
        """The copies in the next batch, and where something may have been compacted away up to its end."""
        if self._marks is None or batch.skip:
            part, self.position = records_of([batch], position=self.position, counts=self._counts)
            return _Written(part.records), list(part.holes)
        holes: list[Hole] = []
        if batch.base_offset > self.position:
            holes.append((self.position, batch.base_offset))
        self.position = batch.last_offset + 1
        marked = self._marks.found(batch, registered=self._counts(batch))
        self._silent += marked.silent
        return _Written(list(marked.counted), list(marked.pairs)), [*holes, *marked.holes]


@dataclass(slots=True)
class _Written:
    copies: list[Stretch] = field(default_factory=list)
    pairs: list[Place] = field(default_factory=list)

    def add(self, other: "_Written") -> None:
        self.copies += other.copies
        self.pairs += other.pairs

    def within(self, start: int, end: int) -> "_Written":
        """What of it stands between two offsets, half open, in the order of the log."""
        copies = sorted(self.copies, key=lambda each: each.first)
        pairs = sorted(self.pairs, key=lambda each: each[1])
        return _Written(
            clipped(copies, start, end), [each for each in pairs if start <= each[1] < end]
        )
