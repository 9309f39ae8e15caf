"""One group in one partition: translate, decide, and say how it stands. Nothing is changed here."""

from collections.abc import Sequence
from dataclasses import replace

from replicator.kafka.groups import CommittedOffset
from replicator.offsets.group_decision import (
    GroupFacts,
    GroupPosition,
    Rewind,
    Synced,
    decide,
    needs_back,
)
from replicator.offsets.group_report import GroupState, PartitionOutcome
from replicator.offsets.lines import TranslationPath
from replicator.offsets.translation import Translation
from replicator.offsets.translator import Translator


def evaluate(
    translator: Translator,
    crossing: TranslationPath,
    back: TranslationPath | None,
    *,
    here: CommittedOffset,
    there: CommittedOffset | None,
    there_active: bool,
    last: Synced | None,
    rewind: Rewind,
) -> PartitionOutcome:
    """What a sync would do with a position, after the translator was refreshed for both ways.

    Raises:
        ReplicatorError: a cluster cannot be read.
    """
    translation = translator.cross(crossing, here.offset)
    facts = GroupFacts(
        here=GroupPosition(here.offset, here.metadata),
        there=None if there is None else GroupPosition(there.offset, there.metadata),
        there_active=there_active,
        translation=translation,
        last=last,
    )
    if there is not None and back is not None and needs_back(facts):
        facts = replace(facts, back=translator.cross(back, there.offset))
    at = None if there is None else there.offset
    end_here, end_there = translator.ends(crossing)
    return PartitionOutcome(
        topic=crossing.topic,
        target_topic=crossing.target_topic,
        partition=crossing.partition,
        source_offset=here.offset,
        target_offset=at,
        right_offset=translation.offset,
        grade=translation.grade,
        records_reread=_reread(translation, at),
        least_reread=translation.records_reread,
        source_lag=_lag(end_here, here.offset),
        target_lag=_lag(end_there, at),
        outcome=decide(facts, rewind=rewind),
        reason=translation.reason,
        metadata=here.metadata,
    )


def committed(one: PartitionOutcome) -> PartitionOutcome:
    """How the partition stands once its decided position was set."""
    moved, lag = one.outcome.offset, one.target_lag
    if moved is None:
        return one
    if lag is not None and one.target_offset is not None:
        lag = max(0, lag - (moved - one.target_offset))
    return replace(one, target_offset=moved, target_lag=lag, records_reread=one.least_reread)


def state_of(found: Sequence[PartitionOutcome], *, active: bool, done: bool) -> GroupState:
    """One word for the whole group; ``done`` tells a sync from a survey."""
    if active:
        return "active-on-target"
    if any(one.outcome.action == "refuse" for one in found):
        return "refused"
    if not done and any(one.outcome.action == "commit" for one in found):
        return "pending"
    return "synced"


def _reread(translation: Translation, at: int | None) -> int:
    """What a move now reads again: from the position there up to the right one, at most."""
    right, low, least = translation.offset, translation.low, translation.records_reread
    if right is None or at is None or at >= (right if low is None else low):
        return least
    return max(least, right - at)


def _lag(end: int | None, at: int | None) -> int | None:
    return None if end is None or at is None else max(0, end - at)
