"""The last copy in a target partition whose copies carry no marks, told by counting from the offset index.

A lane writes every record that it reads, in order. So from a record whose copy is known the n-th copy is that
of the n-th record that was copied, where neither log has holes and the flow wrote nothing record by record
between.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping

from replicator.batches.codec.found_batches import FoundBatch
from replicator.batches.codec.stretch import Stretch
from replicator.batches.registry.batch_bounds import LogQuery, stretches
from replicator.batches.registry.own_copies import OwnCopies, own_copies
from replicator.batches.registry.producer_registry import ProducerRegistry, SourceOf
from replicator.batches.registry.returning import ReturnGuard, may_hold_header
from replicator.dataplane.progress.index_notes import Index
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.session.session_clients import lane_client_id
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec
from replicator.errors import ReplicatorError, StoredFormatError
from replicator.formats.checkpoint import Checkpoint
from replicator.formats.left_out import LeftOut
from replicator.identifiers import TopicPartition

COUNT_SECONDS = 30.0
"""For all partitions of a lane together; those that are left are not told."""

_MARKER_SECONDS = 5.0
_PAUSE_SECONDS = 0.02


class _UndecidedError(Exception):
    """Copies of ours wait for an outcome."""


class CountedCopies:
    """Of one look at the targets of a lane; for its thread."""

    def __init__(
        self,
        spec: LaneSpec,
        states: Iterable[PartitionState],
        stored: Mapping[TopicPartition, Checkpoint],
        index: Index,
        abort_in: Callable[[TopicPartition], None],
    ) -> None:
        """``abort_in`` ends what the lane has open in a target partition, whose marker was lost."""
        self._spec = spec
        self._targets = {state.key: state.target_topic for state in states}
        self._stored = stored
        self._index = index
        self._abort_in = abort_in
        self._client_id = lane_client_id(spec)
        self._deadline = 0.0
        self._decided_by = 0.0

    def __call__(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Source offsets of the last copies below the given ends; what cannot be told is left out.

        Raises:
            ReplicatorError: a cluster does not answer now, or the session is over.
        """
        self._deadline = time.monotonic() + COUNT_SECONDS
        spec, found = self._spec, {}
        came = ProducerRegistry(spec.source, spec.topology, client_id=self._client_id)
        went = ProducerRegistry(spec.target, spec.topology, client_id=self._client_id)
        try:
            for key, end in ends.items():
                last = self._last_copy(key, end, came, went)
                if last is not None:
                    found[key] = last
        finally:
            came.close()
            went.close()
        return found

    def _last_copy(
        self, key: TopicPartition, end: int, came: ProducerRegistry, went: ProducerRegistry
    ) -> int | None:
        held = self._stored.get(key)
        if held is None:
            return None
        self._decided_by = 0.0
        try:
            return self._counted(key, held, end, came, went)
        except _UndecidedError:
            # Left open, the lane's next commit there would commit them, beside those made in their place.
            self._abort_in((self._targets[key], key[1]))
        self._decided_by = time.monotonic() + _MARKER_SECONDS
        return self._counted(key, held, end, came, went)

    def _counted(
        self,
        key: TopicPartition,
        held: Checkpoint,
        end: int,
        came: ProducerRegistry,
        went: ProducerRegistry,
    ) -> int | None:
        try:
            found = self._copied(key, held, end, went)
            if found is None:
                return None
            begin, copied = found
            if not copied:
                # Everything is to be copied, from where it began.
                return held.start - 1 if held.start >= 0 else None
            records = stretches(
                LogQuery(
                    self._spec.source, key, (begin, held.offset), counts=lambda _: True,
                    client_id=self._client_id, in_time=self._in_time,
                ),
                without=not_copied(self._spec.settings, came.source_of, key, held.left_out),
            )  # fmt: skip
        except ReplicatorError as error:
            if error.retriable and not isinstance(error, StoredFormatError):
                raise  # asked again: what is not known now must not stop the partition
            return None
        if records is None or not records.complete:
            return None
        wanted = sum(each.count for each in records.records)
        if copied >= wanted:  # what stands between the last record and the position leaves no copy
            return held.offset - 1 if copied == wanted else None
        return nth(records.records, copied)

    def _copied(
        self, key: TopicPartition, held: Checkpoint, end: int, went: ProducerRegistry
    ) -> tuple[int, int] | None:
        """From the newest record whose copy still stands where it stood: its offset, and the copies from it on."""
        by_records = False

        def ours(batch: FoundBatch) -> bool:
            nonlocal by_records
            if went.source_of(batch.producer_id) == self._spec.source.alias:
                return True
            by_records = by_records or may_hold_header(batch)
            return False

        known = self._index.newest_below(*key, held.offset, end)
        if known is None:
            return None
        while known is not None and self._in_time():
            by_records = False
            seen = self._decided((self._targets[key], key[1]), (known[1], end), ours)
            if seen is None or seen.undecided or not seen.copies.complete or by_records:
                return None
            copies = seen.copies
            if copies.records and copies.records[0].first == known[1]:
                if known[0] < held.left_out.known_from:
                    return None  # a record between may have none
                return known[0], sum(each.count for each in copies.records)
            known = self._index.newest_below(*key, *known)  # another record stands there now
        # No copy that is known stands any more: if none of ours does, that is as certain as a count.
        seen = self._decided((self._targets[key], key[1]), (0, end), ours) if end else None
        if seen is None or seen.undecided or not seen.copies.complete or by_records:
            return None
        return None if seen.copies.records else (held.offset, 0)

    def _decided(
        self, place: TopicPartition, bounds: tuple[int, int], ours: Callable[[FoundBatch], bool]
    ) -> OwnCopies | None:
        """The copies in a target partition; waits for outcomes once the lane has asked for them."""
        query = LogQuery(
            self._spec.target, place, bounds,
            counts=ours, client_id=self._client_id, in_time=self._in_time,
        )  # fmt: skip
        while True:
            seen = own_copies(query)
            if seen is None or not seen.undecided:
                return seen
            if not self._decided_by:
                raise _UndecidedError
            if time.monotonic() >= self._decided_by:
                return seen
            time.sleep(_PAUSE_SECONDS)  # the coordinator writes markers after it has answered

    def _in_time(self) -> bool:
        return time.monotonic() < self._deadline


def not_copied(
    settings: LaneSettings, source_of: SourceOf, key: TopicPartition, left_out: LeftOut
) -> Callable[[FoundBatch], Collection[int]]:
    """Which records of a batch of its source a flow passed without a copy: what came back, and what was left out."""
    guard = ReturnGuard(source_of, blocked=settings.blocked, arrivals=settings.arrivals)

    def offsets(batch: FoundBatch) -> Collection[int]:
        returned = guard.returning(batch, *key) if settings.returns else ()
        return {*returned, *left_out.offsets} if left_out.offsets else returned

    return offsets


def nth(records: Iterable[Stretch], count: int) -> int | None:
    """The offset of the n-th record, from 1; of the last one where there are fewer."""
    last: int | None = None
    for each in records:
        taken = min(count, each.count)
        if taken <= 0:
            break
        last, count = each.first + taken - 1, count - taken
    return last
