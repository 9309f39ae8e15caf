"""The control topic of one cluster, folded into what holds now: frozen, and cheap to fold further."""

from collections.abc import Iterable
from typing import Final, TypeVar, cast

from immutables import Map

from replicator.control.records.base import Record
from replicator.control.records.decode import Identity, decode_record
from replicator.control.records.drill_records import DrillRecord
from replicator.control.records.pair_records import (
    AcceptedGap,
    BackfillRecord,
    Binding,
    GapTaken,
    Layout,
    OppositeTopologies,
    Pause,
    ProblemRecord,
    QuarantineOutcome,
    Share,
    TopicRecord,
)
from replicator.control.records.role_records import (
    ContactRecord,
    DrainedRecord,
    FenceRecord,
    ReturnRecord,
    RoleRecord,
    SalvageRecord,
    SightingRecord,
    StepRecord,
    TransitionRecord,
)
from replicator.control.records.worker_records import WorkerRecord
from replicator.control.store.record_groups import Change, Group, GroupKey, Numbered

R = TypeVar("R", bound=Record)


class ControlState:
    """Everything the control topic of one cluster says; records of all its sources. Never changes.

    An answer that is a tuple is the same object as long as no record in it changed.

    Attributes:
        orders: the same object as long as no record came that asks something of a lane or a
            controller.
    """

    __slots__ = ("_groups", "_next", "_records", "orders")

    def __init__(
        self,
        records: Map[Identity, Numbered] | None = None,
        groups: Map[GroupKey, Group] | None = None,
        orders: object = None,
        following: int = 0,
    ) -> None:
        """Without arguments: what an empty topic says. ``following`` is the number of the next record."""
        self._records: Final = Map[Identity, Numbered]() if records is None else records
        self._groups: Final = Map[GroupKey, Group]() if groups is None else groups
        self.orders: Final = object() if orders is None else orders
        self._next: Final = following

    def fold(self, log: Iterable[tuple[bytes, bytes | None]]) -> "ControlState":
        """The state after these records of the log; the same object when nothing changed.

        Raises:
            StoredFormatError: for a record that must not be guessed at.
        """
        change = Change(self._records, self._groups, self._next)
        for key, value in log:
            decoded = decode_record(key, value)
            if decoded is not None:
                change.take(*decoded)
        if not change.happened:
            return self
        orders = object() if change.ordered else self.orders
        return ControlState(*change.finish(), orders, change.following)

    def same_orders(self, other: "ControlState") -> bool:
        """Whether lanes have the same orders; who works and what is wrong may differ."""
        return self.orders is other.orders

    def records(self) -> dict[Identity, Record]:
        """Every record, by what it is about: as many steps as there are records."""
        return {identity: record for identity, (_, record) in self._records.items()}

    def layout(self, source: str) -> Layout | None:
        """The lane layout of the pair that ends here and begins at ``source``."""
        return self._get(Layout, source)

    def binding(self, alias: str) -> Binding | None:
        """Which cluster an alias means."""
        return self._get(Binding, alias)

    def bindings(self) -> tuple[Binding, ...]:
        """All aliases that were ever used with this cluster."""
        return self._group(Binding)

    def topic(self, source: str, link: str, topic: str) -> TopicRecord | None:
        """The record of one replicated topic."""
        return self._get(TopicRecord, source, link, topic)

    def topics(self, source: str, link: str | None = None) -> tuple[TopicRecord, ...]:
        """Replicated topics of a source, of one link if asked, in order of link and name."""
        if link is None:
            return self._group(TopicRecord, source=source)
        return self._group(TopicRecord, source=source, link=link)

    def topics_into(self, target: str) -> tuple[TopicRecord, ...]:
        """Replicated topics of any source that have this target topic."""
        return self._group(TopicRecord, target=target)

    def pauses(self, flow: str) -> tuple[Pause, ...]:
        """What operators paused of ``source->target``."""
        return self._group(Pause, flow=flow)

    def paused(self, flow: str, link: str, topic: str, partition: int) -> bool:
        """Whether a partition is paused by itself or by something that contains it."""
        return bool(self._groups) and any(
            pause.link in {None, link} and pause.partition in {None, partition}
            for about in (None, topic)
            for pause in self._group(Pause, flow=flow, topic=about)
        )

    def gap(self, source: str, topic: str, partition: int) -> AcceptedGap | None:
        """The newest gap an operator accepted for a partition."""
        return self._get(AcceptedGap, source, topic, partition)

    def gaps(self, source: str) -> tuple[AcceptedGap, ...]:
        """The newest gap an operator accepted, for each partition of a source that has one."""
        return self._group(AcceptedGap, source=source)

    def gaps_taken(self, source: str) -> tuple[GapTaken, ...]:
        """Every range of a source's offsets that a lane gave up."""
        return self._group(GapTaken, source=source)

    def seed(self, source: str, link: str, topic: str, partition: int) -> BackfillRecord | None:
        """What Spark does or did with a partition."""
        return self._get(BackfillRecord, source, link, topic, partition)

    def seeds(self, source: str, link: str | None = None) -> tuple[BackfillRecord, ...]:
        """All that Spark does or did with partitions of a source, in order of name."""
        if link is None:
            return self._group(BackfillRecord, source=source)
        return self._group(BackfillRecord, source=source, link=link)

    def copied_by_spark(self, source: str, link: str, topic: str, partition: int) -> bool:
        """Whether lanes must leave a partition alone."""
        seed = self.seed(source, link, topic, partition)
        return seed is not None and seed.state != "done"

    def share(self, source: str, link: str) -> Share | None:
        """How a flow's throttle is split over its lanes."""
        return self._get(Share, source, link)

    def opposite_topologies(self, source: str) -> tuple[str, ...]:
        """Other topologies that copy to a source from where its pair leads, as far as they were seen."""
        held = self._get(OppositeTopologies, source)
        return () if held is None else held.topologies

    def unaware_topologies(self, source: str) -> tuple[str, ...]:
        """Those of them whose workers may not look for copies of this topology yet."""
        held = self._get(OppositeTopologies, source)
        return () if held is None else held.unaware

    def problems(self, source: str, link: str) -> ProblemRecord | None:
        """What the controller found wrong with a flow."""
        return self._get(ProblemRecord, source, link)

    def kept_of_links(self, source: str) -> tuple[ProblemRecord | Share, ...]:
        """What the controller keeps of each link of a source, of links that were removed too."""
        return (*self._group(ProblemRecord, source=source), *self._group(Share, source=source))

    def workers(self, source: str) -> tuple[WorkerRecord, ...]:
        """Workers of a pair that said they are there, in order of id."""
        return self._group(WorkerRecord, source=source)

    def quarantine_outcome(self, record_id: str) -> QuarantineOutcome | None:
        """What became of a quarantined record; None while it waits."""
        return self._get(QuarantineOutcome, record_id)

    def quarantine_outcomes(self, source: str, topic: str) -> tuple[QuarantineOutcome, ...]:
        """Quarantined records of a source topic that were replayed or discarded."""
        return self._group(QuarantineOutcome, source=source, topic=topic)

    def role(self, link: str) -> RoleRecord | None:
        """What this cluster says about a link's role."""
        return self._get(RoleRecord, link)

    def contact(self, source: str, link: str) -> ContactRecord | None:
        """When a flow's source last answered."""
        return self._get(ContactRecord, source, link)

    def fence(self, link: str, cluster: str) -> FenceRecord | None:
        """Whether writers of a link are fenced off a cluster."""
        return self._get(FenceRecord, link, cluster)

    def returned(self, link: str, cluster: str) -> ReturnRecord | None:
        """What was found on a cluster that came back after a failover."""
        return self._get(ReturnRecord, link, cluster)

    def transitions(self, link: str | None = None) -> tuple[TransitionRecord, ...]:
        """Role changes, of one link if asked, oldest first."""
        if link is None:
            return self._group(TransitionRecord)
        return self._group(TransitionRecord, link=link)

    def steps(self, link: str, transition: str) -> tuple[StepRecord, ...]:
        """Steps of one role change in the order in which they were written first."""
        return self._group(StepRecord, link=link, id=transition)

    def salvaged(self, link: str, transition: str) -> tuple[SalvageRecord, ...]:
        """How far tails were put on the new side by one failback."""
        return self._group(SalvageRecord, link=link, id=transition)

    def drained(self, link: str) -> tuple[str, ...]:
        """Clusters of a link that are marked as drained, sorted."""
        return tuple(sorted(one.cluster for one in self._group(DrainedRecord, link=link)))

    def last_sighting_ms(self, cluster: str) -> int | None:
        """When any worker could last reach a cluster, as this one witnessed it; None for never."""
        seen = self._group(SightingRecord, cluster=cluster)
        return max((one.at_ms for one in seen), default=None)

    def drills(self) -> tuple[DrillRecord, ...]:
        """Drills on real links, oldest first."""
        return self._group(DrillRecord)

    def _get(self, kind: type[R], *identity: object) -> R | None:
        held = self._records.get((kind.KIND, identity))
        return None if held is None else cast("R", held[1])

    def _group(self, kind: type[R], **values: object) -> tuple[R, ...]:
        found = self._groups.get((kind.KIND, tuple(values), tuple(values.values())))
        return () if found is None else cast("tuple[R, ...]", found.in_order())


EMPTY = ControlState()
