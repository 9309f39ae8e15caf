"""One group in one partition: translate, decide, and report. Nothing is written."""

from collections.abc import Sequence
from dataclasses import replace

from replicator.offsets.groups.group_decision import (
    GroupFacts,
    GroupPosition,
    Rewind,
    Synced,
    decide,
    needs_back,
)
from replicator.offsets.groups.group_report import GroupState, PartitionOutcome
from replicator.offsets.index.paths import TranslationPath
from replicator.offsets.translation.translation import Translation
from replicator.offsets.translation.translator import Translator
from replicator.wire.groups.group_description import CommittedOffset


def evaluate(
    translator: Translator,
    path: TranslationPath,
    back: TranslationPath | None,
    *,
    source: CommittedOffset,
    target: CommittedOffset | None,
    target_active: bool,
    last: Synced | None,
    rewind: Rewind,
) -> PartitionOutcome:
    """What a sync would do with a position, after the translator was refreshed for both ways.

    Raises:
        ReplicatorError: a cluster cannot be read.
    """
    translation = translator.cross(path, source.offset)
    facts = GroupFacts(
        source=GroupPosition(source.offset, source.metadata),
        target=None if target is None else GroupPosition(target.offset, target.metadata),
        target_active=target_active,
        translation=translation,
        last=last,
    )
    if target is not None and back is not None and needs_back(facts):
        facts = replace(facts, back=translator.cross(back, target.offset))
    at = None if target is None else target.offset
    source_end, target_end = translator.ends(path)
    return PartitionOutcome(
        topic=path.topic,
        target_topic=path.target_topic,
        partition=path.partition,
        source_offset=source.offset,
        target_offset=at,
        right_offset=translation.offset,
        grade=translation.grade,
        records_reread=_reread(translation, at),
        least_reread=translation.records_reread,
        source_lag=_lag(source_end, source.offset),
        target_lag=_lag(target_end, at),
        outcome=decide(facts, rewind=rewind),
        reason=translation.reason,
        metadata=source.metadata,
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
