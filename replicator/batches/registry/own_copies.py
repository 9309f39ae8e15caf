"""The committed copies of one flow in a stretch of its target's log, whatever others have open there.

Committed reading ends at the first open transaction, whose ever it is. But what a lane wrote is judged by
the lane's own markers alone, so the log is read to its end and each copy is given its outcome here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from replicator.batches.codec.found_batches import FoundBatch
from replicator.batches.codec.header import TRANSACTIONAL
from replicator.batches.codec.stretch import Stretch, clipped
from replicator.batches.registry.batch_bounds import (
    FETCH_BYTES,
    MOST_BYTES,
    LogQuery,
    StretchesOfLog,
    records_of,
)
from replicator.errors import SourceDataLostError


@dataclass(frozen=True, slots=True)
class OwnCopies:
    """The committed copies, as ``StretchesOfLog`` has them, and whether others of ours have no outcome.

    ``undecided``: their marker is missing, as where an unclean election took it. The next transaction of
    their producer in this partition decides them, one way or the other.
    """

    copies: StretchesOfLog
    undecided: bool


def own_copies(query: LogQuery) -> OwnCopies | None:
    """The copies between two offsets, in order; None where the log cannot be read from one to the other.

    The query's ``counts`` says whether a batch of records is the flow's.

    Raises:
        ReplicatorError: the cluster does not answer, or refuses us.
    """
    start, stop = query.bounds
    outcomes = Outcomes(start, query.counts)
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

    def __init__(self, position: int, counts: Callable[[FoundBatch], bool]) -> None:
        self.position = position
        self._counts = counts
        self._open: dict[int, list[Stretch]] = {}
        self._committed: list[Stretch] = []
        self._complete = True

    def take(self, batches: Iterable[FoundBatch]) -> None:
        """Takes in the next batches of the log, in order."""
        for batch in batches:
            if batch.skip == "control":
                written = self._open.pop(batch.producer_id, [])
                if not batch.ends_aborted:
                    self._committed += written
            part, self.position = records_of([batch], position=self.position, counts=self._counts)
            self._complete = self._complete and part.complete
            if not part.records:
                continue
            if batch.attributes & TRANSACTIONAL:
                self._open.setdefault(batch.producer_id, []).extend(part.records)
            else:
                self._committed += part.records

    def found(self, start: int, end: int) -> OwnCopies:
        """What is known of the stretch between two offsets, half open."""
        undecided = any(clipped(each, start, end) for each in self._open.values())
        in_order = sorted(self._committed, key=lambda each: each.first)
        return OwnCopies(StretchesOfLog(clipped(in_order, start, end), self._complete), undecided)
