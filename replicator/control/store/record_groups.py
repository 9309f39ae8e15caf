"""Records of the control topic in persistent maps, with the groups that questions ask for. Pure.

A group is all records of a kind that share the values of some fields. One more record touches its own
groups only, so it costs the same with ten topics and with ten thousand.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from immutables import Map

from replicator.control.records.base import Record
from replicator.control.records.decode import Identity
from replicator.control.records.drill_records import DrillRecord
from replicator.control.records.pair_records import (
    AcceptedGap,
    BackfillRecord,
    Binding,
    GapTaken,
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
    SalvageRecord,
    SightingRecord,
    StepRecord,
    TransitionRecord,
)
from replicator.control.records.worker_records import WorkerRecord

_NEWS = frozenset(
    kind.KIND
    for kind in (
        WorkerRecord, ProblemRecord, QuarantineOutcome, TransitionRecord, StepRecord, FenceRecord,
        ContactRecord, SalvageRecord, SightingRecord, DrainedRecord, DrillRecord, ReturnRecord,
    )
)  # fmt: skip
"""Kinds that tell people something and ask nothing of a lane."""

_GROUPS: dict[type[Record], tuple[tuple[str, ...], ...]] = {
    Binding: ((),),
    TopicRecord: (("source",), ("source", "link"), ("target",)),
    Pause: (("flow",), ("flow", "topic")),
    AcceptedGap: (("source",),),
    GapTaken: (("source",),),
    BackfillRecord: (("source",), ("source", "link")),
    WorkerRecord: (("source",),),
    Share: (("source",),),
    ProblemRecord: (("source",),),
    QuarantineOutcome: (("source", "topic"),),
    TransitionRecord: ((), ("link",)),
    StepRecord: (("link", "id"),),
    SalvageRecord: (("link", "id"),),
    DrainedRecord: (("link",),),
    SightingRecord: (("cluster",),),
    DrillRecord: ((),),
}
"""By which fields questions ask for records of a kind; no fields: for all of the kind."""

_ORDERS: dict[type[Record], Callable[[Any], Any]] = {
    TopicRecord: attrgetter("source", "link", "topic"),
    BackfillRecord: attrgetter("link", "topic", "partition"),
    WorkerRecord: attrgetter("id"),
    TransitionRecord: attrgetter("at_ms", "id"),
    StepRecord: attrgetter("at_ms"),
    DrillRecord: attrgetter("at_ms", "id"),
}
"""How an answer is sorted; ties, and records of other kinds, come in the order of their first writing."""

GroupKey = tuple[str, tuple[str, ...], tuple[Any, ...]]
Numbered = tuple[int, Record]
"""A record with its place in the order of first writing."""


class Group:
    """Records that share the values of some fields; sorted when it is first asked."""

    __slots__ = ("_sorted", "members")

    def __init__(self, members: Map[int, Record]) -> None:
        self.members: Final = members
        self._sorted: tuple[Record, ...] | None = None

    def in_order(self) -> tuple[Record, ...]:
        """The records; the same tuple each time."""
        if self._sorted is None:
            found = [record for _, record in sorted(self.members.items())]
            order = _ORDERS.get(type(found[0])) if found else None
            if order is not None:
                found.sort(key=order)
            self._sorted = tuple(found)
        return self._sorted


class Change:
    """A fold under way: touches only the records and groups that change."""

    def __init__(
        self, records: Map[Identity, Numbered], groups: Map[GroupKey, Group], after: int
    ) -> None:
        self._before = groups
        self._records = records.mutate()
        self._members: dict[GroupKey, Map[int, Record]] = {}
        self.following = after
        self.happened = False
        self.ordered = False

    def take(self, identity: Identity, record: Record | None) -> None:
        """Sets or, with None, removes what is on record under an identity."""
        held = self._records.get(identity)
        if (None if held is None else held[1]) == record:
            return
        self.happened = True
        self.ordered = self.ordered or identity[0] not in _NEWS
        number = self.following if held is None else held[0]
        if held is not None:
            for key in _keys(held[1]):
                self._members[key] = self._held(key).delete(number)
        if record is None:
            del self._records[identity]
            return
        self.following = max(self.following, number + 1)
        self._records[identity] = (number, record)
        for key in _keys(record):
            self._members[key] = self._held(key).set(number, record)

    def finish(self) -> tuple[Map[Identity, Numbered], Map[GroupKey, Group]]:
        """All records and groups with the change in them."""
        groups = self._before.mutate()
        for key, members in self._members.items():
            if members:
                groups[key] = Group(members)
            else:
                groups.pop(key, None)
        return self._records.finish(), groups.finish()

    def _held(self, key: GroupKey) -> Map[int, Record]:
        if key in self._members:
            return self._members[key]
        held = self._before.get(key)
        return Map() if held is None else held.members


def _keys(record: Record) -> list[GroupKey]:
    """The groups that a record belongs to."""
    return [
        (record.KIND, fields, tuple([getattr(record, field) for field in fields]))
        for fields in _GROUPS.get(type(record), ())
    ]
