"""Whether a target partition still holds what its checkpoint claims. Pure.

A position says that everything before it is on the target. A topic that was deleted and created again,
a restored disk and an unclean election take acknowledged records away: then the position goes back to
behind the last record that is really there, and what follows is copied again.
"""

from dataclasses import dataclass, replace

from replicator.formats.checkpoint import NONE_COPIED, Checkpoint, TargetClaim, TargetLoss

MOST_REWINDS = 16
"""So many are kept, the newest: checkpoints are written with every commit."""


@dataclass(frozen=True, slots=True)
class SeenTarget:
    """A target partition as its cluster describes it now; ``end`` counts open transactions.

    ``all_in_sync`` is False where some of its replicas are not.
    """

    topic_id: str
    start: int
    end: int
    leader_epoch: int
    all_in_sync: bool = True


@dataclass(frozen=True, slots=True)
class TargetLossFound:
    """What a target partition lost.

    ``resume_at`` is the source offset behind the last copy that is there, None where the copies do not
    say what they are copies of.
    """

    resume_at: int | None
    detail: str
    last_copy: int = NONE_COPIED


def needs_look(claim: TargetClaim, seen: SeenTarget) -> bool:
    """Whether the log may have lost records since the claim, so that its last copy must be found."""
    if claim.end < 0:
        return False  # nothing was claimed yet
    return recreated(claim, seen) or seen.end < claim.end or seen.leader_epoch != claim.leader_epoch


def recreated(claim: TargetClaim, seen: SeenTarget) -> bool:
    """Whether it is another topic under the same name."""
    return bool(claim.topic_id and seen.topic_id) and claim.topic_id != seen.topic_id


def find_loss(
    checkpoint: Checkpoint,
    seen: SeenTarget,
    last_copy: int | None,
    *,
    marked: bool,
    earliest: int,
    counted: bool = False,
    mixed: bool = False,
    never_deleted: bool = False,
) -> TargetLossFound | None:
    """What is missing on the target, decided after a look; None when nothing is.

    Args:
        checkpoint: what was stored of the partition.
        seen: its target now.
        last_copy: source offset of the last copy in it, None when there is none.
        marked: whether copies carry their source offset.
        earliest: the oldest source offset that still exists.
        counted: whether the last copy was told by counting, because copies carry no marks.
        mixed: whether copies without a mark may stand behind the last copy that carries one.
        never_deleted: whether neither retention nor compaction can have taken copies.
    """
    claim = checkpoint.target
    another = recreated(claim, seen)
    if counted and not another:
        return _behind(checkpoint, seen, last_copy, earliest=earliest)
    if mixed and not another and (last_copy is None or last_copy < claim.last_copied):
        marked = False  # copied again from there on, some would stand there twice
    if not marked:
        put_back = last_copy is not None and not counted  # with marks, as a restore does
        if another and (put_back or seen.start == seen.end):
            return _behind(checkpoint, seen, last_copy, earliest=earliest)
        if another or seen.end < claim.end:
            return TargetLossFound(None, _what(claim, seen))
        return None
    if not another and claim.last_copied < 0:
        # The last copies may carry no marks (whole batches, or a header that did not fit).
        whole = seen.end >= claim.end or claim.last_copied == NONE_COPIED
        return None if whole else TargetLossFound(None, _what(claim, seen))
    if last_copy is None and not another:
        taken = claim.end <= seen.end or seen.start == seen.end
        if taken and not never_deleted:
            return None  # retention or compaction took the copies, which it may
    elif last_copy is not None and not another and last_copy >= claim.last_copied:
        return None
    return _behind(checkpoint, seen, last_copy, earliest=earliest)


def _behind(
    checkpoint: Checkpoint, seen: SeenTarget, last_copy: int | None, *, earliest: int
) -> TargetLossFound | None:
    """The loss of everything behind the last copy; None where the position is not beyond it."""
    claim = checkpoint.target
    another = recreated(claim, seen)
    if last_copy is not None:
        resume_at = last_copy + 1
    else:
        # A new topic gets what a new copy would: what the source still has.
        resume_at = max(checkpoint.start, 0)
        resume_at = max(resume_at, earliest) if another else resume_at
    if resume_at >= checkpoint.offset:
        return None
    return TargetLossFound(
        resume_at, _what(claim, seen), NONE_COPIED if last_copy is None else last_copy
    )


def moved_back(checkpoint: Checkpoint, found: TargetLossFound, *, at_ms: int) -> Checkpoint:
    """The checkpoint from which the missing records are copied again, with the loss on record."""
    held = checkpoint.target_loss
    if found.resume_at is None:
        return checkpoint
    detail = f"{found.detail}; source offsets {found.resume_at} to {checkpoint.offset - 1} are copied again"
    return replace(
        checkpoint,
        offset=found.resume_at,
        problem="",
        detail="",
        # That epoch ended no earlier than where reading goes on: cut below that, the source says so.
        record_end=found.resume_at if checkpoint.position_epoch >= 0 else -1,
        epoch_of_leader=checkpoint.position_epoch >= 0,
        target=replace(checkpoint.target, last_copied=found.last_copy),
        target_loss=TargetLoss(held.count + 1, at_ms, detail),
        left_out=checkpoint.left_out.below(found.resume_at),
    )


def claimed_now(checkpoint: Checkpoint | None, seen: SeenTarget) -> TargetClaim:
    """What holds from here on."""
    if checkpoint is None:
        return TargetClaim(seen.topic_id, seen.end, seen.leader_epoch, NONE_COPIED)
    claim = checkpoint.target
    rewinds = () if recreated(claim, seen) else _within(claim.rewinds, seen.end, checkpoint.offset)
    return TargetClaim(seen.topic_id, seen.end, seen.leader_epoch, claim.last_copied, rewinds)


def rewound(claim: TargetClaim, position: int) -> TargetClaim:
    """The claim of a log in which copies begin again at a source offset below others in it.

    Without that the highest source offset in the log would hide later losses.
    """
    if claim.end < 0:
        return claim
    rewinds = _within((*claim.rewinds, (claim.end, position)), claim.end, position)
    last = min(claim.last_copied, position - 1) if position else NONE_COPIED
    return replace(claim, last_copied=last, rewinds=rewinds[-MOST_REWINDS:])


def _within(
    rewinds: tuple[tuple[int, int], ...], end: int, position: int
) -> tuple[tuple[int, int], ...]:
    """Those of a log that ends there, and into which copies are written from that position on."""
    lowest: dict[int, int] = {}
    for target, source in rewinds:
        place = min(target, end)
        lowest[place] = min(source, position, lowest.get(place, source))
    return tuple(sorted(lowest.items()))


def _what(claim: TargetClaim, seen: SeenTarget) -> str:
    if recreated(claim, seen):
        return (
            f"the target topic was deleted and created again: it had id {claim.topic_id}, the one "
            f"there now {seen.topic_id} and {seen.end - seen.start} offsets"
        )
    if seen.end < claim.end:
        return (
            f"the target log ends at {seen.end} and had reached {claim.end}: the target lost records "
            f"that it had acknowledged"
        )
    return "the target log was cut under a new leader and lost records that it had acknowledged"
