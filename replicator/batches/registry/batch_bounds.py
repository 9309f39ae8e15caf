"""Where committed records stand in a stretch of a log, from its batches: their bounds, not their content."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from replicator.batches.codec.found_batches import FoundBatch, found_batches
from replicator.batches.codec.stretch import Stretch, clipped, cut_out
from replicator.errors import SourceDataLostError
from replicator.topology.plan import ClusterPlan
from replicator.wire.records.record_batch import decode_batch
from replicator.wire.requests.raw_log import RawLog

MOST_BYTES = 64 * 1024 * 1024
"""Longer stretches are not worth their reading: they are answered less exactly."""

FETCH_BYTES = 4 * 1024 * 1024


Hole = tuple[int, int]
"""First and last offset, half open, between which something may have been compacted away."""


@dataclass(frozen=True, slots=True)
class StretchesOfLog:
    """The records that were asked for, and whether they are all that ever stood there.

    Attributes:
        records: where they stand, in order.
        complete: no offset is without a batch, and no batch of ours without one of its records: nothing was
            compacted away.
        holes: where that is not so.
    """

    records: list[Stretch]
    complete: bool
    holes: tuple[Hole, ...] = ()

    def between(self, start: int, end: int) -> "StretchesOfLog":
        """The part between two offsets, half open."""
        holes = tuple(each for each in self.holes if each[0] < end and each[1] > start)
        return StretchesOfLog(clipped(self.records, start, end), not holes, holes)


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which records of a partition are asked for, and for how long.

    Attributes:
        cluster: where.
        place: topic and partition.
        bounds: first and last offset, half open.
        counts: whether the records of a batch are asked for.
        client_id: how the brokers know us.
        in_time: asked before each fetch.
    """

    cluster: ClusterPlan
    place: tuple[str, int]
    bounds: tuple[int, int]
    counts: Callable[[FoundBatch], bool]
    client_id: str
    in_time: Callable[[], bool]

    def log(self) -> RawLog:
        """The partition's log, to be closed."""
        return RawLog(self.cluster, *self.place, client_id=self.client_id)

    def batches(
        self, data: bytes, position: int, aborted: Sequence[tuple[int, int]] = ()
    ) -> Iterable[FoundBatch]:
        """The batches in what was fetched from ``position`` on; ``aborted`` came with it."""
        copied = memoryview(bytearray(data))
        return found_batches(copied, position=position, aborted=aborted, place=self.place[0])


def stretches(
    query: LogQuery, *, without: Callable[[FoundBatch], Collection[int]] = lambda _: ()
) -> StretchesOfLog | None:
    """The committed records of producers that count, in order; None where that cannot be said.

    Args:
        query: what is asked.
        without: offsets of a batch whose records are not asked for.

    Raises:
        ReplicatorError: the cluster does not answer, or refuses us.
    """
    start, end = query.bounds
    found: list[Stretch] = []
    holes: list[Hole] = []
    read = 0
    with query.log() as log:
        while start < end:
            if read > MOST_BYTES or not query.in_time():
                return None
            try:
                data, aborted, stable = log.committed(start, most_bytes=FETCH_BYTES)
            except SourceDataLostError:
                return None
            read += len(data)
            before = start
            part, start = records_of(
                query.batches(data, start, aborted),
                position=start, counts=query.counts, without=without,
            )  # fmt: skip
            found += part.records
            holes += part.holes
            if start == before:
                if stable < end:
                    return None  # a transaction is open there
                holes.append((start, stable))  # nothing but what compaction left out
                start = stable
    return StretchesOfLog(found, not holes, tuple(holes)).between(*query.bounds)


def records_of(
    batches: Iterable[FoundBatch],
    *,
    position: int,
    counts: Callable[[FoundBatch], bool],
    without: Callable[[FoundBatch], Collection[int]] = lambda _: (),
) -> tuple[StretchesOfLog, int]:
    """The records of some batches, and the offset behind the last one. Pure.

    Args:
        batches: in order, those that end at ``position`` or later.
        position: the first offset that is asked about.
        counts: whether the records of a batch are asked for.
        without: offsets of a batch whose records are not.
    """
    found: list[Stretch] = []
    holes: list[Hole] = []
    for batch in batches:
        if batch.base_offset > position:
            holes.append((position, batch.base_offset))
        position = batch.last_offset + 1
        if batch.skip == "empty":
            holes.append((batch.base_offset, position))  # compaction took all of it
        if not batch.skip and counts(batch):
            records = _records(batch)
            found += cut_out(records, without(batch))
            if sum(one.count for one in records) != position - batch.base_offset:
                holes.append((batch.base_offset, position))
    return StretchesOfLog(found, not holes, tuple(holes)), position


def _records(batch: FoundBatch) -> list[Stretch]:
    if batch.count == batch.last_offset - batch.base_offset + 1:
        return [Stretch(batch.base_offset, batch.count)]
    if not batch.count and batch.repack == "old format":
        return [Stretch(batch.last_offset, 1)]
    return [Stretch(record.offset, 1) for record in decode_batch(bytes(batch.data))]
