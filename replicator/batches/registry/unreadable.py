"""What of a log cannot be read, and where reading goes on behind it.

For an operator who gives a damaged batch up because no replica has it whole: as few offsets as can be told.
"""

from collections.abc import Callable
from dataclasses import dataclass

from replicator.batches.codec.found_batches import found_batches
from replicator.batches.codec.header import HEADER, HEADER_BYTES, MAGIC
from replicator.errors import BrokerRefusedError, SourceDamagedError, StoredFormatError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.records.record_batch import decode_batch
from replicator.wire.requests.raw_log import RawLog

_MAGIC_AT = 16
_AT_ONCE = 256 * 1024
_MOST_BATCHES = 1000
_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Offsets from ``start`` to ``end``, half open, of which nothing can be copied, and ``why``."""

    start: int
    end: int
    why: str


def unreadable_at(
    cluster: ClusterPlan, place: TopicPartition, position: int, *, client_id: str
) -> Unreadable | None:
    """What a reader who stands at ``position`` cannot read; None where it can go on by itself.

    It ends where the next batch begins that is whole, or at the last stable offset where there is none.

    Raises:
        SourceDataLostError: the position is outside of what the partition has.
        ReplicatorError: the cluster does not answer, or refuses us.
    """
    with RawLog(cluster, *place, client_id=client_id) as log:
        looks = _Looks(log, f"{place[0]}/{place[1]}", _ANSWER_SECONDS)
        seen = looks.first_damage(position)
        if seen is None:
            return None
        return Unreadable(position, looks.whole_behind(seen.offset), seen.why)


def why_unreadable(
    cluster: ClusterPlan, place: TopicPartition, position: int, *, client_id: str, seconds: float
) -> str:
    """Why a reader who stands at ``position`` cannot go on; empty where it can.

    Raises:
        SourceDataLostError: the position is outside of what the partition has.
        ReplicatorError: the cluster does not answer within some ``seconds``, or refuses us.
    """
    with RawLog(cluster, *place, client_id=client_id) as log:
        seen = _Looks(log, f"{place[0]}/{place[1]}", seconds).first_damage(position)
        return "" if seen is None else seen.why


def first_whole(damaged: int, end: int, whole: Callable[[int], bool]) -> int:
    """The first offset behind a damaged one from which on can be read, as if all behind it could be. Pure."""
    bad, step = damaged, 1
    while (probe := min(damaged + step, end)) < end and not whole(probe):
        bad, step = probe, step * 2
    good = probe
    while good - bad > 1:
        middle = (good + bad) // 2
        if whole(middle):
            good = middle
        else:
            bad = middle
    return good


@dataclass(frozen=True, slots=True)
class _Seen:
    """Up to where a look came, whether records to copy stand there, and ``why`` it cannot be read."""

    offset: int
    has_records: bool = False
    why: str = ""


class _Looks:
    def __init__(self, log: RawLog, place: str, seconds: float) -> None:
        self._log = log
        self._place = place
        self._seconds = seconds
        self._stable = -1

    def first_damage(self, position: int) -> _Seen | None:
        """What keeps a reader at a position from going on; None where it finds records, or the end."""
        at = position
        while True:
            seen = self.at(at)
            if seen.why:
                return seen
            if seen.has_records or seen.offset == at:
                return None
            at = seen.offset  # markers and aborted records

    def at(self, offset: int) -> _Seen:
        """What a reader at an offset finds first."""
        try:
            data, aborted, self._stable = self._fetched(offset)
        except (SourceDamagedError, BrokerRefusedError) as error:
            return _Seen(offset, why=error.message)
        at = offset
        batches = found_batches(
            memoryview(bytearray(data)), position=offset, aborted=aborted, place=self._place
        )
        try:
            for batch in batches:
                if not batch.skip:
                    if batch.data[_MAGIC_AT] == MAGIC:
                        decode_batch(bytes(batch.data))
                    return _Seen(at, has_records=True)
                at = batch.last_offset + 1
        except StoredFormatError as error:
            return _Seen(at, why=error.message)
        if at == offset and self._stable > offset:
            return _Seen(at, why=f"{self._place} at offset {at}: the length of a batch is wrong")
        return _Seen(at)

    def whole_behind(self, damaged: int) -> int:
        """Where the next batch begins that is whole; the end where there is none."""
        _, high = self._log.bounds()
        end = self._stable if self._stable > damaged else high
        at = damaged
        for _ in range(_MOST_BATCHES):
            behind = self._said_end(at)
            if behind is None or behind <= at:
                break
            if behind >= end:
                return end
            if self._is_whole(behind):
                return behind
            at = behind
        return first_whole(at, end, self._is_whole)

    def _is_whole(self, offset: int) -> bool:
        return not self.at(offset).why

    def _said_end(self, offset: int) -> int | None:
        """Behind the last record of the batch there, by its header; None where the header contradicts itself."""
        try:
            data, _, _ = self._fetched(offset)
        except (SourceDamagedError, BrokerRefusedError):
            return None
        if len(data) < HEADER_BYTES or data[_MAGIC_AT] != MAGIC:
            return None
        base, _, _, _, _, _, last_delta, _, _, _, _, _, count = HEADER.unpack_from(data)
        return base + count if count == last_delta + 1 else None

    def _fetched(self, offset: int) -> tuple[bytes, list[tuple[int, int]], int]:
        return self._log.committed(offset, most_bytes=_AT_ONCE, timeout_seconds=self._seconds)
