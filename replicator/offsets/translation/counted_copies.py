"""Telling copies made in whole batches by counting, on the real clusters."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from replicator.errors import ReplicatorError
from replicator.formats.left_out import LeftOut
from replicator.offsets.index.aligned import aligned
from replicator.offsets.index.paths import ReplicatedPartition
from replicator.offsets.index.runs import Window
from replicator.offsets.translation.forward import UnmarkedSpan
from replicator.offsets.translation.translation import PartitionFacts
from replicator.topology.plan import ClusterPlan

if TYPE_CHECKING:
    from replicator.batches.codec.found_batches import FoundBatch
    from replicator.batches.registry.batch_bounds import StretchesOfLog
    from replicator.batches.registry.producer_registry import ProducerRegistry


class CountedCopies:
    """For one thread at a time; remembers what is registered on each cluster."""

    def __init__(self, topology: str, *, client_id: str) -> None:
        self._topology = topology
        self._client_id = client_id
        self._registries: dict[str, ProducerRegistry] = {}
        self._undecided: set[tuple[ReplicatedPartition, UnmarkedSpan]] = set()

    def close(self) -> None:
        """Hangs up."""
        for registry in self._registries.values():
            registry.close()
        self._registries.clear()

    def between(
        self,
        copied: ReplicatedPartition,
        gap: UnmarkedSpan,
        facts: PartitionFacts,
        *,
        in_time: Callable[[], bool],
    ) -> Window | None:
        """Everything of ours from the copy below a gap to the one above, or to the end; None if unknown.

        A cluster that cannot be read now leaves it unknown.
        """
        if gap.below is None or (copied, gap) in self._undecided:
            return None
        if gap.above is not None:
            source_end, target_end = gap.above.source + 1, gap.above.target + 1
        elif facts.copied_to is not None:
            source_end, target_end = facts.copied_to, facts.target_end
        else:
            return None
        try:
            window = self._window(
                copied,
                (gap.below.source, source_end),
                (gap.below.target, target_end),
                facts.left_out,
                in_time,
            )
        except ReplicatorError:
            return None
        if window is None and gap.above is not None:
            self._undecided.add((copied, gap))  # what is between two known records does not change
        return window

    def _window(
        self,
        copied: ReplicatedPartition,
        source: tuple[int, int],
        target: tuple[int, int],
        left_out: LeftOut,
        in_time: Callable[[], bool],
    ) -> Window | None:
        # Here, because the protocol's codec takes half a second to import.
        from replicator.batches.registry.batch_bounds import LogQuery, stretches
        from replicator.batches.registry.returning import may_hold_header

        came, went = self._source_of(copied.source), self._source_of(copied.target)
        one_by_one = False  # copied record by record: not counted, or not to be copied back

        def copied_on(batch: "FoundBatch") -> bool:
            nonlocal one_by_one
            if came(batch.producer_id) == copied.target.alias:
                return False
            one_by_one = one_by_one or (copied.cyclic and may_hold_header(batch))
            return True

        def is_copy(batch: "FoundBatch") -> bool:
            nonlocal one_by_one
            if went(batch.producer_id) == copied.source.alias:
                return True
            one_by_one = one_by_one or may_hold_header(batch)
            return False

        records = stretches(
            LogQuery(
                copied.source, (copied.topic, copied.partition), source,
                counts=copied_on, client_id=self._client_id, in_time=in_time,
            ),
            without=lambda _: left_out.offsets,
        )  # fmt: skip
        if records is None:
            return None
        copies = stretches(
            LogQuery(
                copied.target, (copied.target_topic, copied.partition), target,
                counts=is_copy, client_id=self._client_id, in_time=in_time,
            )
        )  # fmt: skip
        if copies is None:
            return None
        if not comparable(
            records, copies, known=source[0] >= left_out.known_from and not one_by_one
        ):
            return None
        return aligned(records.records, copies.records, start=target[0], end=target[1])

    def _source_of(self, cluster: ClusterPlan) -> Callable[[int], str | None]:
        from replicator.batches.registry.producer_registry import ProducerRegistry

        registry = self._registries.get(cluster.alias)
        if registry is None:
            registry = ProducerRegistry(cluster, self._topology, client_id=self._client_id)
            self._registries[cluster.alias] = registry
        return registry.source_of


def comparable(records: "StretchesOfLog", copies: "StretchesOfLog", *, known: bool) -> bool:
    """Whether as many records as copies mean that they are the same ones. Pure.

    Both logs may have lost as many, and others: one that lost nothing tells that none did. So do both only
    where it is not ``known`` which records have no copy that counts: a record without one and another that
    was compacted away look like none.
    """
    if known:
        return records.complete or copies.complete
    return records.complete and copies.complete
