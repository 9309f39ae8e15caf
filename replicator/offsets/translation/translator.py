"""Positions of one cluster on another, asked of the real clusters.

Work goes in rounds: ``refresh`` reads checkpoints and index first and the bounds of the logs after
them, so that a checkpoint never knows less than the end that is looked at. What looks into the
targets have shown is kept from round to round.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

from replicator.clock import Clock, SystemClock
from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.offsets.index.index import index_pairs
from replicator.offsets.index.paths import Component, ReplicatedPartition, TranslationPath
from replicator.offsets.index.runs import Known, Pair
from replicator.offsets.index.stored import CheckpointsView, StoredPartition, StoredPartitions
from replicator.offsets.translation.counted_copies import CountedCopies
from replicator.offsets.translation.group_names import GroupNames
from replicator.offsets.translation.looks import Looks
from replicator.offsets.translation.probe import PartitionProbe
from replicator.offsets.translation.translate import Direction, Limits, translate
from replicator.offsets.translation.translation import (
    PartitionFacts,
    Translation,
    combine,
    unavailable,
)
from replicator.topology.plan import ClusterPlan, Plan

if TYPE_CHECKING:
    from replicator.wire.groups.group_list import GroupsListed

CLIENT_ID = "replicator-offsets"
TIMEOUT_SECONDS = 10.0


class Replayed(Protocol):
    """Source offsets that were put back from quarantine; asked by everybody who translates."""

    def refresh(self) -> None:
        """A round begins: what is asked after it must be as of now."""
        ...

    def of(self, copied: ReplicatedPartition) -> frozenset[int]:
        """Of one source partition and its copy."""
        ...


_DEFAULT_LIMITS = Limits()


@dataclass(slots=True)
class _Bounds:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """How one position is to be translated."""

    limits: Limits
    several: bool
    deadline: float


@dataclass(slots=True)
class _Memory:
    """What looks have shown of one line.

    Void once the source topic, its copy or its index began anew, or records were put back: a look before
    that was known may have taken one for the copy that stood there first.
    """

    life: tuple[str, int, Pair | None, frozenset[int]]
    known: Known
    newest: int


@dataclass(slots=True)
class _Round:
    bounds: dict[tuple[str, str, int], _Bounds | None] = field(default_factory=dict)


class Translator:
    """Translates positions of one topology; for one thread at a time."""

    def __init__(
        self,
        plan: Plan,
        *,
        replayed: Replayed,
        client_id: str = CLIENT_ID,
        clock: Clock | None = None,
        admins: Iterable[ClusterAdmin] = (),
    ) -> None:
        """``admins`` are open already, and stay open: of their clusters no other one is opened."""
        self._plan = plan
        self._client_id = client_id
        self._clock = clock or SystemClock()
        self._replayed = replayed
        self._lent = {str(admin.cluster.alias): admin for admin in admins}
        self._admins: dict[str, ClusterAdmin] = {}
        self._groups: dict[str, GroupNames] = {}
        self._probes: dict[str, PartitionProbe] = {}
        self._views: dict[tuple[str, str], CheckpointsView] = {}
        self._memory: dict[ReplicatedPartition, _Memory] = {}
        self._counted = CountedCopies(plan.topology, client_id=client_id)
        self._round = _Round()
        self._stored: dict[ReplicatedPartition, StoredPartition] = {}

    def close(self) -> None:
        """Gives all connections back."""
        self._counted.close()
        for view in self._views.values():
            view.close()
        for probe in self._probes.values():
            probe.close()
        for names in self._groups.values():
            names.close()
        for admin in self._admins.values():
            admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def admin(self, cluster: ClusterPlan) -> ClusterAdmin:
        """The admin client of a cluster, shared with the users of this translator."""
        if cluster.alias in self._lent:
            return self._lent[cluster.alias]
        if cluster.alias not in self._admins:
            self._admins[cluster.alias] = ClusterAdmin(
                cluster, client_id=self._client_id, timeout_seconds=TIMEOUT_SECONDS
            )
        return self._admins[cluster.alias]

    def groups(self, cluster: ClusterPlan) -> "GroupsListed":
        """The consumer groups of a cluster, as far as its brokers name theirs.

        Raises:
            ReplicatorError: the cluster does not answer, or refuses to be looked at.
        """
        if cluster.alias not in self._groups:
            admin = self.admin(cluster)
            self._groups[cluster.alias] = GroupNames(admin, client_id=self._client_id)
        return self._groups[cluster.alias].read()

    def probe(self, cluster: ClusterPlan) -> PartitionProbe:
        """The reader of a cluster's partitions."""
        if cluster.alias not in self._probes:
            self._probes[cluster.alias] = PartitionProbe(
                cluster, client_id=self._client_id, clock=self._clock
            )
        return self._probes[cluster.alias]

    def refresh(self, paths: Iterable[TranslationPath]) -> None:
        """Reads what the translations of a round rest on.

        Raises:
            ReplicatorError: a cluster that holds copies cannot be read. The origin of a copy may be
                away: then less is known.
        """
        replicated = {copied for path in paths for copied in path.replicated}
        self._replayed.refresh()
        self._counted.refresh()
        for pair in {(copied.source.alias, copied.target.alias) for copied in replicated}:
            mine = [one for one in replicated if (one.source.alias, one.target.alias) == pair]
            stored = self._view(mine[0].source.alias, mine[0].target).refresh()
            for copied in mine:
                self._stored[copied] = stored.of(copied.topic, copied.partition)
                self._remember(copied)
        self._round = _Round()
        needed = {(one.target.alias, one.target_topic, one.partition) for one in replicated}
        wished = {(one.source.alias, one.topic, one.partition) for one in replicated}
        for alias in {alias for alias, _, _ in needed}:
            self._read_bounds(alias, [(t, p) for a, t, p in needed | wished if a == alias])
        for alias in {alias for alias, _, _ in wished} - {alias for alias, _, _ in needed}:
            try:
                self._read_bounds(alias, [(t, p) for a, t, p in wished if a == alias])
            except ReplicatorError as error:
                if not error.retriable:
                    raise

    def cross(
        self, path: TranslationPath, position: int, *, limits: Limits = _DEFAULT_LIMITS
    ) -> Translation:
        """Where a consumer that has processed everything below ``position`` goes on.

        Raises:
            ReplicatorError: a cluster cannot be read.
        """
        used = [part for part in path.components if self._used(part)]
        if not used:
            return unavailable("nothing was copied yet")
        asked = _Asked(limits, len(used) > 1, self._clock.monotonic() + TIMEOUT_SECONDS)
        return combine([(part.origin, self._component(part, position, asked)) for part in used])

    def stored(self, source: ClusterPlan, target: ClusterPlan) -> StoredPartitions:
        """Checkpoints and index of a pair as they are now; not between ``refresh`` and ``cross``.

        Raises:
            ReplicatorError: the target cannot be read.
        """
        return self._view(source.alias, target).refresh()

    def counts(self, copied: ReplicatedPartition) -> bool:
        """Whether a copy without a mark may be told by counting.

        Raises:
            ReplicatorError: the target cannot be read.
        """
        return copied.counted and self._counted.needed(copied)

    def noted_by(self, copied: ReplicatedPartition, source: int) -> int | None:
        """A time, in milliseconds, at which the copy of a source offset was there, from the index."""
        later = [
            entry.at_ms
            for entry in self._stored[copied].entries.values()
            if entry.pair.source >= source
        ]
        return min(later, default=None)

    def ends(self, path: TranslationPath) -> tuple[int | None, int | None]:
        """Next offsets to be read of both topics, as of the last ``refresh``."""
        held = (
            self._round.bounds.get((path.source, path.topic, path.partition)),
            self._round.bounds.get((path.target, path.target_topic, path.partition)),
        )
        return (
            None if held[0] is None else held[0].end,
            None if held[1] is None else held[1].end,
        )

    def _component(self, part: Component, position: int, asked: "_Asked") -> Translation:
        looks = 0
        if part.back is not None:
            answer = self._over_partition(part.back, "backward", position, asked)
            if part.onward is None or answer.offset is None:
                return answer
            position, looks = answer.offset, answer.probes
        if part.onward is None:
            raise ValueError("a component needs a line")
        answer = self._over_partition(part.onward, "forward", position, asked)
        return answer.after(answer.probes + looks)

    def _over_partition(
        self, copied: ReplicatedPartition, direction: Direction, position: int, asked: "_Asked"
    ) -> Translation:
        held = self._round.bounds.get((copied.target.alias, copied.target_topic, copied.partition))
        if held is None:
            return unavailable(
                f"{copied.target_topic}/{copied.partition} does not exist on the target"
            )
        origin = self._round.bounds.get((copied.source.alias, copied.topic, copied.partition))
        facts = PartitionFacts(
            target_start=held.start,
            target_end=held.end,
            source_start=None if origin is None else origin.start,
            source_end=None if origin is None else origin.end,
            copied_to=self._stored[copied].copied_to,
            from_earliest=copied.from_earliest and not self._stored[copied].adopted,
            adopted=self._stored[copied].adopted,
            marked=copied.marked or copied.whole_batches,
            cyclic=copied.cyclic or asked.several,
            left_out=self._stored[copied].left_out,
        )

        def in_time() -> bool:
            return self._clock.monotonic() < asked.deadline

        looks = Looks(
            copied, facts, replayed=self._replayed.of(copied), probe=self.probe(copied.target),
            counted=self._counted, in_time=in_time,
        )  # fmt: skip
        return translate(
            direction, position, known=self._memory[copied].known, facts=facts, look=looks.look,
            align=looks.align, limits=asked.limits, tight=asked.several, in_time=in_time,
        )  # fmt: skip

    def _used(self, part: Component) -> bool:
        return all(
            not copied.assumed or self._stored[copied].copied_to is not None
            for copied in (part.back, part.onward)
            if copied is not None
        )

    def _remember(self, copied: ReplicatedPartition) -> None:
        """Adds new index entries to what is known, or forgets it when its life is over."""
        stored = self._stored[copied]
        pairs = index_pairs(stored.entries.values())
        if stored.target_losses and stored.copied_to is not None:
            # Entries above the position are of copies that the target lost.
            pairs = [pair for pair in pairs if pair.source < stored.copied_to]
        first = pairs[0] if pairs else None
        life = (stored.topic_id, stored.target_losses, first, self._replayed.of(copied))
        memory = self._memory.get(copied)
        newest = pairs[-1].target if pairs else -1
        if memory is None or memory.life != life:
            self._memory[copied] = _Memory(life, Known.of(pairs), newest)
            return
        for pair in pairs:
            if pair.target > memory.newest:
                memory.known.pair(pair)
        memory.newest = newest

    def _view(self, source: str, target: ClusterPlan) -> CheckpointsView:
        key = (source, target.alias)
        if key not in self._views:
            self._views[key] = CheckpointsView(
                self._plan.topology,
                source,
                target,
                admin=self.admin(target),
                client_id=self._client_id,
            )
        return self._views[key]

    def _read_bounds(self, alias: str, keys: list[TopicPartition]) -> None:
        admin = self.admin(self._plan.cluster(alias))
        starts = admin.offsets(keys, "earliest")
        ends = admin.offsets(keys, "latest")
        for key in keys:
            self._round.bounds[alias, *key] = _bounds(starts, ends, key)


def _bounds(
    starts: Mapping[TopicPartition, int | ReplicatorError],
    ends: Mapping[TopicPartition, int | ReplicatorError],
    key: TopicPartition,
) -> _Bounds | None:
    start, end = starts.get(key), ends.get(key)
    if isinstance(start, int) and isinstance(end, int):
        return _Bounds(start, max(start, end))
    for answer in (start, end):
        if isinstance(answer, ReplicatorError) and answer.retriable:
            raise answer
    return None
