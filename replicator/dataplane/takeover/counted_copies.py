"""The last copy in a target partition where copies carry no marks, told by counting from one that is known.

A lane writes every record that it reads, in order. So from a record whose copy is known the n-th copy is that
of the n-th record that was copied, where neither log has holes. Known are pairs of the offset map, and copies
that name their place: those of the records engine, in logs that both engines wrote.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from replicator.batches.codec.found_batches import FoundBatch
from replicator.batches.codec.stretch import Stretch
from replicator.batches.registry.batch_bounds import LogQuery, StretchesOfLog, stretches
from replicator.batches.registry.marked_copies import MarkedCopies, Place
from replicator.batches.registry.other_topologies import registry_of_source
from replicator.batches.registry.own_copies import OwnCopies, own_copies
from replicator.batches.registry.producer_registry import ProducerRegistry, SourceOf
from replicator.batches.registry.returning import ReturnGuard
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.last_known import LastKnown, last_known
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec
from replicator.errors import ReplicatorError, StoredFormatError
from replicator.formats.checkpoint import Checkpoint
from replicator.formats.left_out import LeftOut
from replicator.identifiers import TopicPartition

COUNT_SECONDS = 30.0
"""For all partitions of a lane together; those that are left are not told."""

_MARKER_SECONDS = 5.0
_PAUSE_SECONDS = 0.02


class KnownPairs(Protocol):
    """The offset map of a lane."""

    def newest_below(self, topic: str, partition: int, source: int, target: int) -> Place | None:
        """The newest source and target offset of one record, below both given ones."""
        ...


class _UndecidedError(Exception):
    """Copies of ours wait for an outcome."""


class CountedCopies:
    """Of one look at the targets of a lane; for its thread."""

    def __init__(
        self,
        spec: LaneSpec,
        states: Iterable[PartitionState],
        stored: Mapping[TopicPartition, Checkpoint],
        index: KnownPairs,
        *,
        client_id: str,
        abort_in: Callable[[TopicPartition], None] | None = None,
    ) -> None:
        """``abort_in`` ends what the lane has open in a target partition, whose marker was lost.

        Without it nothing is told of such a partition.
        """
        self._spec = spec
        self._targets = {state.key: state.target_topic for state in states}
        self._stored = stored
        self._index = index
        self._abort_in = abort_in
        self._client_id = client_id
        self._known: Mapping[TopicPartition, Place] = {}
        self._deadline = 0.0
        self._decided_by = 0.0

    @property
    def needed(self) -> bool:
        """Whether copies without a mark may stand on the target: a producer of the source was registered there.

        Raises:
            ReplicatorError: the target does not answer now.
        """
        spec = self._spec
        registry = ProducerRegistry(spec.target, spec.topology, client_id=self._client_id)
        try:
            registry.read()
        finally:
            registry.close()
        return any(each.source == spec.source.alias for each in registry.registered.values())

    def __call__(
        self,
        ends: Mapping[TopicPartition, int],
        known: Mapping[TopicPartition, Place] | None = None,
    ) -> dict[TopicPartition, int]:
        """Source offsets of the last copies below the given ends; what cannot be told is left out.

        ``known`` are copies to count from, by source and target offset; the offset map tells the others.

        Raises:
            ReplicatorError: a cluster does not answer now, or the session is over.
        """
        self._known = known or {}
        self._deadline = time.monotonic() + COUNT_SECONDS
        spec, found = self._spec, {}
        came = registry_of_source(
            spec.source, spec.topology, blocked=spec.settings.blocked, client_id=self._client_id
        )
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
            if self._abort_in is None:
                return None
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
            found = self._last_known(key, held, end, went)
            if found is None:
                return None
            if not found.copies:
                # Everything is to be copied, from where it began.
                return held.start - 1 if held.start >= 0 else None
            if found.marked and found.source >= held.target.last_copied >= 0:
                return held.offset - 1
            records = self._copied_from(key, found.source, held, came)
        except ReplicatorError as error:
            if error.retriable and not isinstance(error, StoredFormatError):
                raise  # asked again: what is not known now must not stop the partition
            return None
        return last_of(found, records, held)

    def _copied_from(
        self, key: TopicPartition, source: int, held: Checkpoint, came: ProducerRegistry
    ) -> StretchesOfLog | None:
        """The records from a source offset up to the position that leave copies."""
        return stretches(
            LogQuery(
                self._spec.source, key, (source, held.offset), counts=lambda _: True,
                client_id=self._client_id, in_time=self._in_time,
            ),
            without=not_copied(self._spec.settings, came.source_of, key, held.left_out),
        )  # fmt: skip

    def _last_known(
        self, key: TopicPartition, held: Checkpoint, end: int, went: ProducerRegistry
    ) -> LastKnown | None:
        """The newest record whose copy is known to stand; without copies where none of ours stands."""

        def ours(batch: FoundBatch) -> bool:
            return went.source_of(batch.producer_id) == self._spec.source.alias

        known = self._known.get(key) or self._index.newest_below(*key, held.offset, end)
        first = known
        while known is not None and self._in_time():
            seen = self._decided(key, (known[1], end), ours)
            if seen is None or seen.undecided:
                return None
            told = last_known(known, seen, held, end=end)
            if told is not None or not seen.copies.complete:
                return told
            known = self._index.newest_below(*key, *known)  # another record stands there now
        # No copy that is known stands any more: if none of ours does, that is as certain as a count.
        seen = self._decided(key, (0, end), ours) if end else None
        if seen is None or seen.undecided:
            return None
        told = last_known(None, seen, held, end=end)
        nothing = first is not None and seen.copies.complete and not seen.copies.records
        return LastKnown(held.offset, 0) if told is None and nothing and not seen.pairs else told

    def _decided(
        self, key: TopicPartition, bounds: tuple[int, int], ours: Callable[[FoundBatch], bool]
    ) -> OwnCopies | None:
        """The copies in a target partition; waits for outcomes once the lane has asked for them."""
        query = LogQuery(
            self._spec.target, (self._targets[key], key[1]), bounds,
            counts=ours, client_id=self._client_id, in_time=self._in_time,
        )  # fmt: skip
        marks = MarkedCopies((self._spec.source.alias, *key))
        while True:
            seen = own_copies(query, marks)
            if seen is None or not seen.undecided:
                return seen
            if not self._decided_by:
                raise _UndecidedError
            if time.monotonic() >= self._decided_by:
                return seen
            time.sleep(_PAUSE_SECONDS)  # the coordinator writes markers after it has answered

    def _in_time(self) -> bool:
        return time.monotonic() < self._deadline


def last_of(found: LastKnown, records: StretchesOfLog | None, held: Checkpoint) -> int | None:
    """The source offset of the last copy; None where counting does not tell. Pure.

    Args:
        found: the newest record whose copy is known to stand.
        records: those that leave copies, from that one up to the checkpoint's position, if they can be read.
        held: the checkpoint.
    """
    if found.marked:
        # Whatever stands behind it on the source has no copy any more; where nothing does, nothing is missing.
        more = records is None or any(
            each.first + each.count - 1 > found.source for each in records.records
        )
        return found.source if more else held.offset - 1
    if records is None or not records.complete or found.source < held.left_out.known_from:
        return None  # a record between may have none
    wanted = sum(each.count for each in records.records)
    if (
        found.copies >= wanted
    ):  # what stands between the last record and the position leaves no copy
        return held.offset - 1 if found.copies == wanted else None
    return nth(records.records, found.copies)


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
