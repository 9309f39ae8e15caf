"""What a sync of group positions did and found: for metrics, for ``groups``, and on record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from replicator.errors import ReplicatorError
from replicator.identifiers import JsonObject
from replicator.kafka.clients.wire_json import decode_key, decode_value, encode_key, encode_value
from replicator.offsets.groups.group_decision import GroupOutcomeDraft
from replicator.offsets.translation.translation import Grade

KIND = "group-sync"

GroupState = Literal[
    "synced", "active-on-target", "refused", "no-positions", "deleted", "failed", "pending"
]
"""``pending``: a survey that changes nothing found that a sync would move the group."""


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """One partition of one group.

    ``target_offset`` is the group's position there after the sync, ``right_offset`` the one that
    stands for ``source_offset``. ``records_reread`` is what a consumer that moves over now would
    read again at most, ``least_reread`` what it would once the right position is committed.
    ``metadata`` is what the group committed with its position on the source.
    """

    topic: str
    target_topic: str
    partition: int
    source_offset: int
    target_offset: int | None
    right_offset: int | None
    grade: Grade
    records_reread: int
    least_reread: int
    source_lag: int | None
    target_lag: int | None
    outcome: GroupOutcomeDraft
    reason: str = ""
    metadata: str = ""

    @property
    def refused(self) -> str | None:
        """Why the position was not carried over, None when nothing is wrong."""
        return self.outcome.reason if self.outcome.action == "refuse" else None

    def as_json(self) -> JsonObject:
        """As ``groups -o json`` shows it."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "targetTopic": self.target_topic,
            "sourceOffset": self.source_offset,
            "targetOffset": self.target_offset,
            "translatedOffset": self.right_offset,
            "sourceLagRecords": self.source_lag,
            "targetLagRecords": self.target_lag,
            "grade": self.grade,
            "recordsReread": self.records_reread,
            "refused": self.refused,
            "reason": self.reason or self.outcome.reason,
        }


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """One group of one flow."""

    group: str
    link: str
    state: GroupState
    partitions: tuple[PartitionOutcome, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """One round of one pair of clusters.

    ``unheard`` is why the source may have groups that are not among these; None where these are all.
    """

    source: str
    flow: str
    at_ms: int
    groups: tuple[GroupOutcome, ...]
    unheard: ReplicatorError | None = None

    def translations(self) -> dict[Grade, int]:
        """How many positions were translated, by grade."""
        counts: dict[Grade, int] = {"exact": 0, "bounded": 0, "unavailable": 0}
        for group in self.groups:
            for partition in group.partitions:
                counts[partition.grade] += 1
        return counts

    def unsettled(self) -> frozenset[str]:
        """Groups that this round moved, or found moving: another round shows whether they stand where they should.

        A commit has no condition, so a round of another process that looked before may overwrite it.
        """
        return frozenset(
            group.group
            for group in self.groups
            if any(part.outcome.action in {"commit", "again"} for part in group.partitions)
        )

    def refusals(self) -> tuple[tuple[str, str], ...]:
        """Groups with a refused position or a failure, each with the first reason."""
        found: list[tuple[str, str]] = []
        for group in self.groups:
            reasons = [one.refused for one in group.partitions if one.refused is not None]
            if group.state == "failed":
                reasons.insert(0, group.reason)
            if reasons:
                found.append((group.group, reasons[0]))
        return tuple(found)

    def with_newer(self, newer: "SyncReport") -> "SyncReport":
        """This round, with what a later one found of some of its groups."""
        found = {(one.group, one.link): one for one in newer.groups}
        groups = tuple(found.get((one.group, one.link), one) for one in self.groups)
        return replace(self, at_ms=newer.at_ms, groups=groups)

    def encode(self) -> tuple[bytes, bytes | None]:
        """The record of the control topic: when it ran, and which groups it could not look at."""
        failed = {group.group: group.reason for group in self.groups if group.state == "failed"}
        return (
            encode_key({"kind": KIND, "source": self.source}),
            encode_value({"at": self.at_ms, "failed": failed}),
        )


def last_synced_ms(records: Mapping[bytes, bytes], source: str) -> tuple[int | None, set[str]]:
    """When the groups of a source were last synced, and which ones could not be, as recorded."""
    for key, value in records.items():
        where: Mapping[str, Any] = decode_key(key, kinds={KIND})
        if where.get("kind") == KIND and where.get("source") == source:
            what = decode_value(value)
            return int(what["at"]), set(what.get("failed", {}))
    return None, set()
