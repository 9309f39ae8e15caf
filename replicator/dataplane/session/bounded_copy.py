"""A bounded copy: a lane that copies one range of one partition and then ends.

The lane does the copying: take-over, transactions, quarantine, lost source data. A bounded copy adds
a transactional id of its own (two attempts at the same partition fence each other), the planned start,
totals of what was read, and an end. The totals stand in the checkpoint, so that they are committed with
the records they count and go on after any interruption.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c

from replicator.batches.codec.found_batches import FoundBatch
from replicator.clock import Clock
from replicator.dataplane.copy.engine_protocol import CopyStep, Engine
from replicator.dataplane.copy.source_message import SourceMessage
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.session.clients_protocol import LaneSession
from replicator.dataplane.transport.spec import LaneSpec
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import lane_transactional_id

TOTALS = "seed"
"""Field of a checkpoint that holds the totals of an unfinished range."""

_BATCH = struct.Struct(">qqI")

FinalRecord = Callable[["RangeTotals", PartitionState], tuple[str, bytes, bytes | None]]
"""Topic, key and value to be written in the transaction that ends the range."""


@dataclass(frozen=True, slots=True)
class RangeTotals:
    """What was read of a range: ``checksum`` is the CRC-32C of keys and values in order of offset.

    ``size`` is the bytes of keys and values; ``superseded`` counts records that were left out because
    a later one of the range has the same key. Of whole batches (``of_batches``) ``size`` is their bytes in the
    log, and ``checksum`` is over their offsets and their own checksums. ``began_ms`` is when the first attempt began, ``start`` is
    where.
    """

    start: int
    end: int
    records: int = 0
    size: int = 0
    checksum: int = 0
    superseded: int = 0
    began_ms: int = 0
    of_batches: bool = False

    def stored(self) -> dict[str, int]:
        """The totals as they stand in a checkpoint."""
        return {
            "start": self.start,
            "end": self.end,
            "records": self.records,
            "bytes": self.size,
            "crc": self.checksum,
            "superseded": self.superseded,
            "began": self.began_ms,
        }


class BoundedCopy:
    """One range; used by the thread of its lane only.

    Attributes:
        totals: what was read, once the range is finished.
    """

    def __init__(
        self,
        *,
        writer: str,
        start: int,
        end: int,
        clock: Clock,
        final_record: FinalRecord | None = None,
        keep: "array[int] | None" = None,
    ) -> None:
        """``keep`` are the offsets below ``end`` worth copying, ascending; None keeps all."""
        self.writer = writer
        self.totals: RangeTotals | None = None
        self._start = start
        self._end = end
        self._clock = clock
        self._final_record = final_record
        self._keep = keep

    def plan_start(
        self, spec: LaneSpec, checkpoints: MutableMapping[tuple[str, int], Checkpoint]
    ) -> None:
        """The planned start stands for a checkpoint where there is none.

        So records that retention takes between plan and copy are lost data like any other.
        """
        for work in spec.work:
            planned = Checkpoint(work.topic, work.partition, self._start, topic_id=work.topic_id)
            checkpoints.setdefault((work.topic, work.partition), planned)

    def engine(self, inner: Engine, table: PartitionTable) -> Engine:
        """The engine with the totals around it."""
        now_ms = round(self._clock.now() * 1000)
        counting = RangeTotalsEngine(inner, table, end=self._end, now_ms=now_ms)
        if self._keep is None:
            return counting
        return LatestPerKeyFilter(counting, table, keep=self._keep, end=self._end)

    @property
    def takes_batches(self) -> bool:
        """Whether whole batches may be copied: of a range of which only last values count they may not."""
        return self._keep is None

    def count_batch(self, state: PartitionState, found: FoundBatch, records: int) -> None:
        """Takes in a whole batch that is about to be copied; the position still stands before it.

        Nobody looks into it: its bytes count as they lie in the log, and its own checksum stands for them.
        """
        stored = _counted_from(
            state, state.position, self._end, now_ms=round(self._clock.now() * 1000)
        )
        stored["records"] += records
        stored["bytes"] += len(found.data)
        first = max(found.base_offset, state.position)
        part = _BATCH.pack(first, found.last_offset, found.content_checksum)
        stored["crc"] = crc32c(part, stored["crc"])
        stored["batches"] = 1

    def over(self, states: Iterable[PartitionState]) -> bool:
        """Whether everything below the end was read, or cannot be."""
        return all(
            (state.problem or state.position >= self._end) and not state.needs_check
            for state in states
        )

    def finish(self, session: LaneSession, states: Iterable[PartitionState]) -> None:
        """Commits, with the final record in the same transaction where there is one.

        Raises:
            KafkaException, ReplicatorError: as a commit does; the lane takes over again.
        """
        totals: RangeTotals | None = None
        for state in states:
            totals = _totals_of(state, self._end)
            # The range ends here as it is, stopped or not: its totals leave the checkpoint.
            state.extra.pop(TOTALS, None)
            session.unit.begin()
            session.unit.store_soon(state)
            if self._final_record is not None:
                session.unit.add(*self._final_record(totals, state))
        session.unit.commit()
        self.totals = totals  # not before: a commit of unknown outcome is looked up, not believed


def writer_id(spec: LaneSpec, bounded_copy: BoundedCopy | None) -> str | None:
    """The transactional id of what writes for a lane; a bounded copy has its own. None without transactions."""
    if not spec.settings.transactional:
        return None
    if bounded_copy is not None:
        return bounded_copy.writer
    return lane_transactional_id(spec.topology, spec.source.alias, spec.target.alias, spec.lane)


class RangeTotalsEngine:
    """Counts and checksums what the engine inside has read."""

    def __init__(self, inner: Engine, table: PartitionTable, *, end: int, now_ms: int) -> None:
        self._inner = inner
        self._table = table
        self._end = end
        self._now_ms = now_ms

    def copy(self, messages: Sequence[SourceMessage]) -> Iterator[CopyStep]:
        """Copies, then takes in what lies between the old and the new position."""
        state = _only_state(self._table)
        before = state.position
        yield from self._inner.copy(messages)
        after = state.position
        if after <= before:
            return
        seen = [message for message in messages if message.error() is None]
        if seen and (seen[0].offset() < before or seen[-1].offset() >= after):
            seen = [message for message in seen if before <= message.offset() < after]
        if not seen:
            return
        parts = [part for each in seen for part in (each.key(), each.value()) if part]
        joined = b"".join(parts)
        stored = _counted_from(state, before, self._end, now_ms=self._now_ms)
        stored["records"] += len(seen)
        stored["bytes"] += len(joined)
        stored["crc"] = crc32c(joined, stored["crc"])


class LatestPerKeyFilter:
    """Leaves out records of a compacted range that a later one of the same key replaces."""

    def __init__(
        self, inner: Engine, table: PartitionTable, *, keep: "array[int]", end: int
    ) -> None:
        self._inner = inner
        self._table = table
        self._keep = keep
        self._end = end
        self._left_out = 0

    def copy(self, messages: Sequence[SourceMessage]) -> Iterator[CopyStep]:
        """Copies what is left; the last record of a range is always among it.

        What is left out counts with the next record that is not: then the position is past it.
        """
        kept: list[SourceMessage] = []
        passed = 0
        for message in messages:
            if self._kept(message):
                kept.append(message)
                passed, self._left_out = passed + self._left_out, 0
            else:
                self._left_out += 1
        yield from self._inner.copy(kept)
        if passed:
            state = _only_state(self._table)
            state.dropped += passed
            stored: Any = state.extra.get(TOTALS)
            if isinstance(stored, dict):
                stored["superseded"] += passed

    def _kept(self, message: SourceMessage) -> bool:
        offset = message.offset()
        if message.error() is not None or offset >= self._end:
            return True
        place = bisect_left(self._keep, offset)
        return place < len(self._keep) and self._keep[place] == offset


def _only_state(table: PartitionTable) -> PartitionState:
    """A bounded copy has one partition."""
    return next(state for by_partition in table.values() for state in by_partition.values())


def _counted_from(state: PartitionState, position: int, end: int, *, now_ms: int) -> dict[str, int]:
    """The totals of the range in the partition's checkpoint; new ones where it has none."""
    stored: Any = state.extra.get(TOTALS)
    if not isinstance(stored, dict) or stored.get("end") != end:
        stored = RangeTotals(position, end, began_ms=now_ms).stored()
        state.extra[TOTALS] = stored
    found: dict[str, int] = stored
    return found


def _totals_of(state: PartitionState, end: int) -> RangeTotals:
    stored: Any = state.extra.get(TOTALS)
    if not isinstance(stored, dict) or stored.get("end") != end:
        return RangeTotals(state.position, end)
    return RangeTotals(
        start=stored["start"],
        end=end,
        records=stored["records"],
        size=stored["bytes"],
        checksum=stored["crc"],
        superseded=stored["superseded"],
        began_ms=stored["began"],
        of_batches=bool(stored.get("batches")),
    )
