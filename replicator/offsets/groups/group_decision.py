"""What becomes of one group's position in one partition on the other cluster. Pure.

A position is carried over when it is further than the one on the target, and never moved backwards by
default. Both directions of an active-active link run at once, so a position that a sync wrote on the
source must not travel back as if a consumer had moved: it is carried over only when it is beyond what
the target's position already stands for. That needs no memory, so it survives every restart.
"""

from dataclasses import dataclass
from typing import Literal

from replicator.offsets.translation.translation import Translation

Action = Literal["commit", "keep", "refuse", "again"]
"""``again``: another process set the position between the look and the commit, so it has to be looked at again."""

Rewind = Literal["never", "follow"]


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """Where a group stands; everything below was processed."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Synced:
    """What the last sync read on the source and left on the target."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One group in one partition.

    Attributes:
        source: its position on the source; None when it has none.
        target: its position on the target.
        target_active: whether it has members on the target, so that its positions are its own.
        translation: of ``source``.
        back: of ``target``, back to the source; None where it was not asked for.
        last: of the last sync, as far as it is remembered.
    """

    source: GroupPosition | None
    target: GroupPosition | None
    target_active: bool
    translation: Translation | None
    back: Translation | None = None
    last: Synced | None = None


@dataclass(frozen=True, slots=True)
class GroupOutcomeDraft:
    """What to do, and why; ``offset`` is the right position on the target, where there is one."""

    action: Action
    offset: int | None = None
    metadata: str = ""
    reason: str = ""


def needs_back(facts: GroupFacts) -> bool:
    """Whether ``back`` is needed to decide: only before a position would be moved forward."""
    translation, target = facts.translation, facts.target
    return (
        facts.source is not None
        and not facts.target_active
        and target is not None
        and translation is not None
        and translation.offset is not None
        and translation.offset > target.offset
    )


def decide(facts: GroupFacts, *, rewind: Rewind = "never") -> GroupOutcomeDraft:
    """Decides; a refusal is something a person may want to know, keeping is the normal case."""
    source, target, translation = facts.source, facts.target, facts.translation
    if source is None:
        return GroupOutcomeDraft("keep", reason="the group has no position on the source")
    if translation is None or translation.offset is None:
        reason = translation.reason if translation is not None else "not translated"
        return GroupOutcomeDraft("refuse", reason=reason)
    offset = translation.offset
    if facts.target_active:
        if target is not None and target.offset >= offset:
            return GroupOutcomeDraft("keep", offset, reason="active on the target, and not behind")
        return GroupOutcomeDraft("refuse", offset, reason="the group is active on the target")
    if target is None:
        return GroupOutcomeDraft("commit", offset, source.metadata, "first position on the target")
    if offset > target.offset:
        if _echo(facts, source):
            return GroupOutcomeDraft("keep", offset, reason="stands for the same records")
        return GroupOutcomeDraft("commit", offset, source.metadata, "moved on at the source")
    if offset == target.offset:
        if facts.last is not None and source.metadata != target.metadata:
            return GroupOutcomeDraft("commit", offset, source.metadata, "its metadata changed")
        return GroupOutcomeDraft("keep", offset, reason="in step")
    return _behind(facts, source, target, offset, rewind)


def _echo(facts: GroupFacts, source: GroupPosition) -> bool:
    back = facts.back
    return back is not None and back.offset is not None and source.offset <= back.offset


def _behind(
    facts: GroupFacts, source: GroupPosition, target: GroupPosition, offset: int, rewind: Rewind
) -> GroupOutcomeDraft:
    """The target's position is further: the group ran on the target, or went back on the source."""
    last = facts.last
    if last is None or source.offset >= last.source:
        return GroupOutcomeDraft("keep", offset, reason="further ahead on the target")
    if rewind == "never":
        return GroupOutcomeDraft(
            "refuse", offset, reason="went back on the source, and rewind is 'never'"
        )
    if target.offset != last.target:
        return GroupOutcomeDraft(
            "refuse", offset, reason="went back on the source, but moved on the target as well"
        )
    return GroupOutcomeDraft("commit", offset, source.metadata, "went back on the source")
