"""The control topic folded into what holds now: frozen, and cheap to fold further."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from replicator.control.store.base import Record
from replicator.control.store.drill_records import DrillRecord
from replicator.control.store.records import (
    AcceptedGap,
    BackfillRecord,
    Binding,
    Identity,
    Layout,
    Pause,
    ProblemRecord,
    QuarantineOutcome,
    Share,
    TopicRecord,
    WorkerRecord,
    decode_record,
)
from replicator.control.store.role_records import (
    ContactRecord,
    DrainedRecord,
    FenceRecord,
    RoleRecord,
    SalvageRecord,
    SightingRecord,
    StepRecord,
    TransitionRecord,
)

_NEWS = frozenset(
    {
        kind.KIND
        for kind in (
            WorkerRecord, ProblemRecord, QuarantineOutcome,
            TransitionRecord, StepRecord, FenceRecord, ContactRecord, SalvageRecord, SightingRecord,
            DrainedRecord, DrillRecord,
        )
    }
)  # fmt: skip
"""Kinds that tell people something and ask nothing of a lane."""

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class ControlState:
    """Everything the control topic of one cluster says; records of all its sources."""

    records: Mapping[Identity, Record] = field(default_factory=dict)
    orders: object = field(default_factory=object, compare=False, repr=False)
    """The same object as long as no record has come that asks something of a lane or a controller."""

    def fold(self, log: Iterable[tuple[bytes, bytes | None]]) -> "ControlState":
        """The state after these records of the log; the same object when nothing changed.

        Raises:
            StoredFormatError: for a record that must not be guessed at.
        """
        changed: dict[Identity, Record] | None = None
        orders = self.orders
        for key, value in log:
            decoded = decode_record(key, value)
            if decoded is None:
                continue
            identity, record = decoded
            if changed is None:
                changed = dict(self.records)
            if record is None:
                changed.pop(identity, None)
            else:
                changed[identity] = record
            if identity[0] not in _NEWS:
                orders = object()
        return self if changed is None else ControlState(changed, orders)

    def same_orders(self, other: "ControlState") -> bool:
        """Whether lanes have the same orders; who works and what is wrong may differ."""
        if self.orders is other.orders:
            return True
        mine, others = _orders(self.records), _orders(other.records)
        return len(mine) == len(others) and all(
            others.get(identity) is record for identity, record in mine.items()
        )

    def layout(self, source: str) -> Layout | None:
        """The lane layout of the pair that ends here and begins at ``source``."""
        return self._get(Layout, source)

    def binding(self, alias: str) -> Binding | None:
        """Which cluster an alias means."""
        return self._get(Binding, alias)

    def bindings(self) -> tuple[Binding, ...]:
        """All aliases that were ever used with this cluster."""
        return tuple(self._all(Binding))

    def topic(self, source: str, link: str, topic: str) -> TopicRecord | None:
        """The record of one replicated topic."""
        return self._get(TopicRecord, source, link, topic)

    def topics(self, source: str | None = None, link: str | None = None) -> tuple[TopicRecord, ...]:
        """Replicated topics, of one source or of one link if asked, in order of name."""
        found = (
            record
            for record in self._all(TopicRecord)
            if (source is None or record.source == source) and (link is None or record.link == link)
        )
        return tuple(sorted(found, key=lambda record: (record.source, record.link, record.topic)))

    def pauses(self, flow: str) -> tuple[Pause, ...]:
        """What operators paused of ``source->target``."""
        return tuple(pause for pause in self._all(Pause) if pause.flow == flow)

    def gap(self, source: str, topic: str, partition: int) -> AcceptedGap | None:
        """The newest gap an operator accepted for a partition."""
        return self._get(AcceptedGap, source, topic, partition)

    def seed(self, source: str, link: str, topic: str, partition: int) -> BackfillRecord | None:
        """What Spark does or did with a partition."""
        return self._get(BackfillRecord, source, link, topic, partition)

    def seeds(self, source: str, link: str | None = None) -> tuple[BackfillRecord, ...]:
        """All that Spark does or did with partitions of a source, in order of name."""
        found = (
            seed
            for seed in self._all(BackfillRecord)
            if seed.source == source and (link is None or seed.link == link)
        )
        return tuple(sorted(found, key=lambda seed: (seed.link, seed.topic, seed.partition)))

    def copied_by_spark(self, source: str, link: str, topic: str, partition: int) -> bool:
        """Whether lanes must leave a partition alone."""
        seed = self.seed(source, link, topic, partition)
        return seed is not None and seed.state != "done"

    def share(self, source: str, link: str) -> Share | None:
        """How a flow's throttle is split over its lanes."""
        return self._get(Share, source, link)

    def problems(self, source: str, link: str) -> ProblemRecord | None:
        """What the controller found wrong with a flow."""
        return self._get(ProblemRecord, source, link)

    def workers(self, source: str) -> tuple[WorkerRecord, ...]:
        """Workers of a pair that said they are there, in order of id."""
        found = (worker for worker in self._all(WorkerRecord) if worker.source == source)
        return tuple(sorted(found, key=lambda worker: worker.id))

    def quarantine_outcome(self, record_id: str) -> QuarantineOutcome | None:
        """What became of a quarantined record; None while it waits."""
        return self._get(QuarantineOutcome, record_id)

    def quarantine_resolved(self, source: str, topic: str) -> int:
        """How many quarantined records of a source topic were replayed or discarded."""
        return sum(
            outcome.source == source and outcome.topic == topic
            for outcome in self._all(QuarantineOutcome)
        )

    def role(self, link: str) -> RoleRecord | None:
        """What this cluster says about a link's role."""
        return self._get(RoleRecord, link)

    def contact(self, source: str, link: str) -> ContactRecord | None:
        """When a flow's source last answered."""
        return self._get(ContactRecord, source, link)

    def fence(self, link: str, cluster: str) -> FenceRecord | None:
        """Whether writers of a link are kept off a cluster."""
        return self._get(FenceRecord, link, cluster)

    def transitions(self, link: str | None = None) -> tuple[TransitionRecord, ...]:
        """Role changes, of one link if asked, oldest first."""
        found = (one for one in self._all(TransitionRecord) if link in {None, one.link})
        return tuple(sorted(found, key=lambda one: (one.at_ms, one.id)))

    def steps(self, link: str, transition: str) -> tuple[StepRecord, ...]:
        """Steps of one role change in the order in which they were written first."""
        found = (s for s in self._all(StepRecord) if (s.link, s.id) == (link, transition))
        return tuple(sorted(found, key=lambda step: step.at_ms))

    def drained(self, link: str) -> tuple[str, ...]:
        """Clusters of a link that are marked as drained."""
        return tuple(sorted(one.cluster for one in self._all(DrainedRecord) if one.link == link))

    def last_sighting_ms(self, cluster: str) -> int | None:
        """When any worker could last reach a cluster, as this one witnessed it; None for never."""
        seen = (one.at_ms for one in self._all(SightingRecord) if one.cluster == cluster)
        return max(seen, default=None)

    def salvaged(self, link: str, transition: str) -> tuple[SalvageRecord, ...]:
        """How far tails were put on the new side by one failback."""
        return tuple(
            one for one in self._all(SalvageRecord) if (one.link, one.id) == (link, transition)
        )

    def paused(self, flow: str, link: str, topic: str, partition: int) -> bool:
        """Whether a partition is paused by itself or by something that contains it."""
        return any(
            pause.link in {None, link}
            and pause.topic in {None, topic}
            and pause.partition in {None, partition}
            for pause in self.pauses(flow)
        )

    def _get(self, kind: type[R], *identity: object) -> R | None:
        return cast("R | None", self.records.get((kind.KIND, identity)))

    def _all(self, kind: type[R]) -> Iterable[R]:
        return (record for record in self.records.values() if isinstance(record, kind))


def _orders(records: Mapping[Identity, Record]) -> dict[Identity, Record]:
    return {identity: record for identity, record in records.items() if identity[0] not in _NEWS}


EMPTY = ControlState()
