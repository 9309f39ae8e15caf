"""A lane sent out to copy one range of one partition, and what it leaves behind at its end.

The lane's own machinery does the copying: take-over, transactions, quarantine, lost source data. An
errand adds a transactional id of its own (two attempts at the same partition fence each other), the
planned start, a tally of what was read, and an end. The tally stands in the checkpoint, so that it is
committed with the records it counts and goes on after any interruption.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c

from replicator.clock import Clock
from replicator.dataplane.copy.engine_protocol import Engine
from replicator.dataplane.copy.source_message import SourceMessage
from replicator.dataplane.lane.session import Session
from replicator.dataplane.progress.partition_state import PartitionState, RouteTable
from replicator.dataplane.transport.spec import LaneSpec
from replicator.formats.checkpoint import Checkpoint

TALLY = "seed"
"""Field of a checkpoint that holds the tally of an unfinished range."""

LastWords = Callable[["RangeTotals", PartitionState], tuple[str, bytes, bytes | None]]
"""Topic, key and value to be written in the transaction that ends the range."""


@dataclass(frozen=True, slots=True)
class RangeTotals:
    """What was read of a range: ``checksum`` is the CRC-32C of keys and values in order of offset.

    ``size`` is the bytes of keys and values; ``superseded`` counts records that were left out because
    a later one of the range has the same key. ``began_ms`` is when the first attempt began, ``start`` is
    where.
    """

    start: int
    end: int
    records: int = 0
    size: int = 0
    checksum: int = 0
    superseded: int = 0
    began_ms: int = 0

    def stored(self) -> dict[str, int]:
        """The tally as it stands in a checkpoint."""
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
        tally: what was read, once the range is finished.
    """

    def __init__(
        self,
        *,
        writer: str,
        start: int,
        end: int,
        clock: Clock,
        final_record: LastWords | None = None,
        keep: "array[int] | None" = None,
    ) -> None:
        """``keep`` are the offsets below ``end`` worth copying, ascending; None keeps all."""
        self.writer = writer
        self.tally: RangeTotals | None = None
        self._start = start
        self._end = end
        self._clock = clock
        self._last_words = final_record
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

    def engine(self, inner: Engine, table: RouteTable) -> Engine:
        """The engine with the tally around it."""
        now_ms = round(self._clock.now() * 1000)
        tallying = RangeTotalsEngine(inner, table, end=self._end, now_ms=now_ms)
        if self._keep is None:
            return tallying
        return LatestPerKeyFilter(tallying, table, keep=self._keep, end=self._end)

    def over(self, routes: Iterable[PartitionState]) -> bool:
        """Whether everything below the end was read, or cannot be."""
        return all(
            (route.problem or route.position >= self._end) and not route.suspect for route in routes
        )

    def finish(self, session: Session, routes: Iterable[PartitionState]) -> None:
        """Commits, with the last words in the same transaction where there are any.

        Raises:
            KafkaException, UnknownOutcomeError: as a commit does; the lane takes over again.
        """
        tally: RangeTotals | None = None
        for route in routes:
            tally = _tally_of(route, self._end)
            # The range ends here as it is, stopped or not: its tally leaves the checkpoint.
            route.extra.pop(TALLY, None)
            session.begin()
            session.store_soon(route)
            if self._last_words is not None:
                _produce(session, *self._last_words(tally, route))
        session.commit()
        self.tally = tally  # not before: a commit of unknown outcome is looked up, not believed


def _produce(session: Session, topic: str, key: bytes, value: bytes | None) -> None:
    while True:
        try:
            session.producer.produce(topic, value, key, 0)
        except BufferError:
            session.wait_for_room()
        else:
            return


class RangeTotalsEngine:
    """Counts and checksums what the engine inside has read."""

    def __init__(self, inner: Engine, table: RouteTable, *, end: int, now_ms: int) -> None:
        self._inner = inner
        self._table = table
        self._end = end
        self._now_ms = now_ms

    def copy(self, messages: Sequence[SourceMessage]) -> None:
        """Copies, then takes in what lies between the old and the new position."""
        route = _only_route(self._table)
        before = route.position
        self._inner.copy(messages)
        after = route.position
        if after <= before:
            return
        seen = [message for message in messages if message.error() is None]
        if seen and (seen[0].offset() < before or seen[-1].offset() >= after):
            seen = [message for message in seen if before <= message.offset() < after]
        if not seen:
            return
        parts = [part for each in seen for part in (each.key(), each.value()) if part]
        joined = b"".join(parts)
        stored = route.extra.get(TALLY)
        if not isinstance(stored, dict) or stored.get("end") != self._end:
            stored = RangeTotals(before, self._end, began_ms=self._now_ms).stored()
            route.extra[TALLY] = stored
        stored["records"] += len(seen)
        stored["bytes"] += len(joined)
        stored["crc"] = crc32c(joined, stored["crc"])


class LatestPerKeyFilter:
    """Leaves out records of a compacted range that a later one of the same key replaces."""

    def __init__(self, inner: Engine, table: RouteTable, *, keep: "array[int]", end: int) -> None:
        self._inner = inner
        self._table = table
        self._keep = keep
        self._end = end
        self._left_out = 0

    def copy(self, messages: Sequence[SourceMessage]) -> None:
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
        self._inner.copy(kept)
        if passed:
            route = _only_route(self._table)
            route.dropped += passed
            stored: Any = route.extra.get(TALLY)
            if isinstance(stored, dict):
                stored["superseded"] += passed

    def _kept(self, message: SourceMessage) -> bool:
        offset = message.offset()
        if message.error() is not None or offset >= self._end:
            return True
        place = bisect_left(self._keep, offset)
        return place < len(self._keep) and self._keep[place] == offset


def _only_route(table: RouteTable) -> PartitionState:
    """An errand has one partition."""
    return next(route for by_partition in table.values() for route in by_partition.values())


def _tally_of(route: PartitionState, end: int) -> RangeTotals:
    stored: Any = route.extra.get(TALLY)
    if not isinstance(stored, dict) or stored.get("end") != end:
        return RangeTotals(route.position, end)
    return RangeTotals(
        start=stored["start"],
        end=end,
        records=stored["records"],
        size=stored["bytes"],
        checksum=stored["crc"],
        superseded=stored["superseded"],
        began_ms=stored["began"],
    )
