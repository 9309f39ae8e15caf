"""What becomes of one group's position in one partition on the other cluster. Pure.

A position is carried over when it says more than the one that is there, and never taken back by
default. Both directions of an active-active link run at once, so a position that a sync left here
must not travel back as if a consumer had moved: it is carried over only when it is beyond what the
position over there already stands for. That needs no memory, so it survives every restart.
"""

from dataclasses import dataclass
from typing import Literal

from replicator.offsets.translation import Translation

Action = Literal["commit", "keep", "refuse"]
Rewind = Literal["never", "follow"]


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """Where a group stands; everything below was processed."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Synced:
    """What the last sync saw here and left there."""

    here: int
    there: int


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One group in one partition.

    Attributes:
        here: its position on the cluster that is read; None when it has none.
        there: its position on the other cluster.
        there_active: whether it has members there, so that its positions are its own.
        translation: of ``here``.
        back: of ``there``, back to this cluster; None where it was not asked for.
        last: of the last sync, as far as it is remembered.
    """

    here: GroupPosition | None
    there: GroupPosition | None
    there_active: bool
    translation: Translation | None
    back: Translation | None = None
    last: Synced | None = None


@dataclass(frozen=True, slots=True)
class GroupOutcomeDraft:
    """What to do, and why; ``offset`` is the position that is right over there, where one is."""

    action: Action
    offset: int | None = None
    metadata: str = ""
    reason: str = ""


def needs_back(facts: GroupFacts) -> bool:
    """Whether ``back`` is needed to decide: only before a position would be moved forward."""
    translation, there = facts.translation, facts.there
    return (
        facts.here is not None
        and not facts.there_active
        and there is not None
        and translation is not None
        and translation.offset is not None
        and translation.offset > there.offset
    )


def decide(facts: GroupFacts, *, rewind: Rewind = "never") -> GroupOutcomeDraft:
    """Decides; a refusal is something a person may want to know, keeping is the normal case."""
    here, there, translation = facts.here, facts.there, facts.translation
    if here is None:
        return GroupOutcomeDraft("keep", reason="the group has no position here")
    if translation is None or translation.offset is None:
        reason = translation.reason if translation is not None else "not translated"
        return GroupOutcomeDraft("refuse", reason=reason)
    offset = translation.offset
    if facts.there_active:
        if there is not None and there.offset >= offset:
            return GroupOutcomeDraft("keep", offset, reason="active there, and not behind")
        return GroupOutcomeDraft("refuse", offset, reason="the group is active on the target")
    if there is None:
        return GroupOutcomeDraft("commit", offset, here.metadata, "first position there")
    if offset > there.offset:
        if _echo(facts, here):
            return GroupOutcomeDraft("keep", offset, reason="stands for the same records")
        return GroupOutcomeDraft("commit", offset, here.metadata, "moved on here")
    if offset == there.offset:
        if facts.last is not None and here.metadata != there.metadata:
            return GroupOutcomeDraft("commit", offset, here.metadata, "its metadata changed")
        return GroupOutcomeDraft("keep", offset, reason="in step")
    return _behind(facts, here, there, offset, rewind)


def _echo(facts: GroupFacts, here: GroupPosition) -> bool:
    back = facts.back
    return back is not None and back.offset is not None and here.offset <= back.offset


def _behind(
    facts: GroupFacts, here: GroupPosition, there: GroupPosition, offset: int, rewind: Rewind
) -> GroupOutcomeDraft:
    """The position there is beyond the one here: it ran there, or went back here."""
    last = facts.last
    if last is None or here.offset >= last.here:
        return GroupOutcomeDraft("keep", offset, reason="further ahead there")
    if rewind == "never":
        return GroupOutcomeDraft("refuse", offset, reason="went back here, and rewind is 'never'")
    if there.offset != last.there:
        return GroupOutcomeDraft("refuse", offset, reason="went back here, but moved there as well")
    return GroupOutcomeDraft("commit", offset, here.metadata, "went back here")
