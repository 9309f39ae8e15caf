"""Telling copies in logs that both engines may have written, on the real clusters: by marks, and by counting."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from replicator.errors import ReplicatorError, TransientBrokerError
from replicator.offsets.index.aligned import aligned
from replicator.offsets.index.paths import ReplicatedPartition
from replicator.offsets.index.runs import Pair, Window, joined
from replicator.offsets.index.sections import UncountedSection, first_step, with_known
from replicator.offsets.translation.forward import UnmarkedSpan
from replicator.offsets.translation.translate import LONGEST, Read
from replicator.offsets.translation.translation import PartitionFacts
from replicator.topology.plan import ClusterPlan

if TYPE_CHECKING:
    from replicator.batches.codec.found_batches import FoundBatch
    from replicator.batches.registry.batch_bounds import LogQuery, StretchesOfLog
    from replicator.batches.registry.mixed_log import MixedLog
    from replicator.batches.registry.producer_registry import ProducerRegistry

_LOOK_BYTES = 256 * 1024

InTime = Callable[[], bool]


class CountedCopies:
    """For one thread at a time; remembers what is registered on each cluster."""

    def __init__(self, topology: str, *, client_id: str) -> None:
        self._topology = topology
        self._client_id = client_id
        self._registries: dict[str, ProducerRegistry] = {}
        self._came_by: dict[tuple[str, tuple[str, ...]], ProducerRegistry] = {}
        self._sources: dict[str, frozenset[str]] = {}
        self._undecided: dict[tuple[ReplicatedPartition, UnmarkedSpan], tuple[()] | None] = {}

    def refresh(self) -> None:
        """A round begins: what is asked after it must be as of now."""
        self._sources.clear()

    def close(self) -> None:
        """Hangs up."""
        for registry in (*self._registries.values(), *self._came_by.values()):
            registry.close()
        self._registries.clear()
        self._came_by.clear()

    def needed(self, copied: ReplicatedPartition) -> bool:
        """Whether whole batches may stand among the copies: the flow makes them, or did so before.

        Raises:
            ReplicatorError: the target cannot be read.
        """
        if copied.whole_batches:
            return True
        alias = str(copied.target.alias)
        if alias not in self._sources:
            registry = self._registry(copied.target)
            registry.read()
            found = registry.registered.values()
            self._sources[alias] = frozenset(each.source for each in found)
        return copied.source.alias in self._sources[alias]

    def look(
        self,
        copied: ReplicatedPartition,
        read: Read,
        facts: PartitionFacts,
        *,
        replayed: frozenset[int],
        in_time: InTime,
    ) -> tuple[Window, bool]:
        """What marks tell from ``read.start`` on, up to the first copy without one; and whether there is such a copy.

        Raises:
            TransientBrokerError: the log was cut while it was read; ask for its bounds again.
            ReplicatorError: the target cannot be read.
        """

        def enough(log: "MixedLog") -> bool:
            if log.counted:
                return True
            if not log.pairs:
                return log.records >= LONGEST
            return log.pairs[-1][0] >= read.stop_at or log.records >= read.records

        log = self._read(copied, (read.start, read.until), replayed, in_time, enough=enough)
        if log is None:
            raise TransientBrokerError(
                f"{copied.target_topic}/{copied.partition} lost records while it was read",
                subject=f"cluster:{copied.target.alias}",
                remedy="It is tried again by itself.",
            )
        met = bool(log.counted)
        end = min([log.position, read.until, *(each.first for each in log.counted[:1])])
        runs = joined(Pair(*each) for each in log.pairs if each[1] < end)
        window = Window(read.start, max(end, read.start), runs)
        return (window if facts.cyclic else _with_silent(window, log)), met

    def between(
        self,
        copied: ReplicatedPartition,
        gap: UnmarkedSpan,
        facts: PartitionFacts,
        *,
        in_time: InTime,
    ) -> tuple[Window, ...] | None:
        """What can be told of a gap from the copy below it to the one above, or to the end.

        None where all in it would have to be counted and cannot be; nothing where only a look can tell more.
        A source that cannot be read now leaves counted copies unknown.
        """
        if gap.below is None:
            return ()
        if (copied, gap) in self._undecided:
            return self._undecided[copied, gap]
        end = facts.target_end if gap.above is None else gap.above.target + 1
        try:
            log = self._read(copied, (gap.below.target, end), frozenset(), in_time)
            if log is None:
                return None
            if log.position < end:
                return self._not_told(copied, gap, in_time, ())
            marked = [Pair(*each) for each in log.pairs]
            step = first_step(gap.below, gap.above, marked, log.counted, end=end)
            if step is None:
                return None
            windows, section = step
            if section is None:
                return tuple(each if facts.cyclic else _with_silent(each, log) for each in windows)
            counted = self._count(copied, section, log, facts, in_time)
        except ReplicatorError:
            return None
        return self._not_told(copied, gap, in_time) if counted is None else (counted,)

    def _not_told(
        self,
        copied: ReplicatedPartition,
        gap: UnmarkedSpan,
        in_time: InTime,
        answer: tuple[()] | None = None,
    ) -> tuple[()] | None:
        if not in_time():
            return None
        if gap.above is not None:
            self._undecided[copied, gap] = (
                answer  # what is between two known records does not change
            )
        return answer

    def _count(
        self,
        copied: ReplicatedPartition,
        section: UncountedSection,
        log: "MixedLog",
        facts: PartitionFacts,
        in_time: InTime,
    ) -> Window | None:
        """Everything of ours in a section, where the records of the source are as many."""
        # Here, because the protocol's codec takes half a second to import.
        from replicator.batches.registry.batch_bounds import StretchesOfLog, stretches

        below, above = section.below, section.above
        until = facts.copied_to if above is None else above.source + 1
        if below is None or until is None or until <= below.source:
            return None
        came = self._came(copied).source_of
        records = stretches(
            self._query(
                copied.source, (copied.topic, copied.partition), (below.source, until), in_time,
                counts=lambda batch: came(batch.producer_id) != copied.target.alias,
            ),
            without=self._not_copied(copied, facts),
        )  # fmt: skip
        if records is None:
            return None
        told = log.copies(section.start, section.end)
        copies, registered = with_known(told.records, section, log.own)
        # Record by record some may have been passed without a copy, or copied without a mark.
        known = registered and below.source >= facts.left_out.known_from
        if not comparable(records, StretchesOfLog(copies, told.complete), known=known):
            return None
        return aligned(records.records, copies, start=section.start, end=section.end)

    def _not_copied(
        self, copied: ReplicatedPartition, facts: PartitionFacts
    ) -> "Callable[[FoundBatch], Collection[int]]":
        """Which records of a batch of the source were passed: left out, or came back record by record."""
        from replicator.batches.registry.returning import ReturnGuard

        left_out = facts.left_out.offsets
        if not copied.returns:
            return lambda _: left_out
        guard = ReturnGuard(
            self._came(copied).source_of,
            blocked=copied.blocked, arrivals=copied.arrivals,
        )  # fmt: skip

        def passed(batch: "FoundBatch") -> Collection[int]:
            returned = guard.returning(batch, copied.topic, copied.partition)
            return {*returned, *left_out} if left_out else returned

        return passed

    def _read(
        self,
        copied: ReplicatedPartition,
        bounds: tuple[int, int],
        replayed: frozenset[int],
        in_time: InTime,
        *,
        enough: "Callable[[MixedLog], bool] | None" = None,
    ) -> "MixedLog | None":
        """The target's log; a look where it is said what is ``enough``, else the whole stretch."""
        from replicator.batches.registry.batch_bounds import FETCH_BYTES
        from replicator.batches.registry.marked_copies import MarkedCopies
        from replicator.batches.registry.mixed_log import read_mixed

        went = self._registry(copied.target).source_of
        place = (str(copied.source.alias), copied.topic, copied.partition)
        return read_mixed(
            self._query(
                copied.target, (copied.target_topic, copied.partition), bounds, in_time,
                counts=lambda batch: went(batch.producer_id) == copied.source.alias,
            ),
            MarkedCopies(place, replayed=replayed),
            enough=enough or (lambda _: False),
            fetch_bytes=FETCH_BYTES if enough is None else _LOOK_BYTES,
        )  # fmt: skip

    def _query(
        self,
        cluster: ClusterPlan,
        place: tuple[str, int],
        bounds: tuple[int, int],
        in_time: InTime,
        *,
        counts: "Callable[[FoundBatch], bool]",
    ) -> "LogQuery":
        from replicator.batches.registry.batch_bounds import LogQuery

        return LogQuery(
            cluster, place, bounds, counts=counts, client_id=self._client_id, in_time=in_time
        )

    def _came(self, copied: ReplicatedPartition) -> "ProducerRegistry":
        """What brought whole batches to the source of a copy, as the lane that made it asks."""
        from replicator.batches.registry.other_topologies import registry_of_source

        key = copied.source.alias, copied.blocked
        registry = self._came_by.get(key)
        if registry is None:
            registry = registry_of_source(
                copied.source, self._topology, blocked=copied.blocked, client_id=self._client_id
            )
            self._came_by[key] = registry
        return registry

    def _registry(self, cluster: ClusterPlan) -> "ProducerRegistry":
        from replicator.batches.registry.producer_registry import ProducerRegistry

        registry = self._registries.get(cluster.alias)
        if registry is None:
            registry = ProducerRegistry(cluster, self._topology, client_id=self._client_id)
            self._registries[cluster.alias] = registry
        return registry


def _with_silent(window: Window, log: "MixedLog") -> Window:
    """With the records that may be copies and do not say so."""
    offsets = (at for each in log.silent for at in range(each.first, each.first + each.count))
    return replace(window, unmarked=tuple(offsets)).cut(window.start, window.end)


def comparable(records: "StretchesOfLog", copies: "StretchesOfLog", *, known: bool) -> bool:
    """Whether as many records as copies mean that they are the same ones. Pure.

    Both logs may have lost as many, and others: one that lost nothing tells that none did. So do both only
    where it is not ``known`` which records have no copy that counts: a record without one and another that
    was compacted away look like none.
    """
    if known:
        return records.complete or copies.complete
    return records.complete and copies.complete
