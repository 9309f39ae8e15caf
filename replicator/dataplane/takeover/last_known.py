"""The last copy in the end of a target's log that is told, by its mark or as a known pair. Pure."""

from dataclasses import dataclass

from replicator.batches.registry.marked_copies import Place
from replicator.batches.registry.own_copies import OwnCopies
from replicator.formats.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class LastKnown:
    """A record whose copy is told, and how many copies stand from that copy on.

    Attributes:
        source: source offset of the record.
        copies: copies from that one on, itself among them.
        marked: whether the copy names its place itself, and is the last one.
    """

    source: int
    copies: int
    marked: bool = False


def last_known(
    known: Place | None, seen: OwnCopies, held: Checkpoint, *, end: int
) -> LastKnown | None:
    """From where copies without marks are to be counted; None where nothing tells.

    Args:
        known: a pair of the offset map, at whose target offset the stretch begins; None for a stretch that
            begins with the log.
        seen: the copies in the stretch.
        held: the checkpoint.
        end: where the stretch ends, a target offset.
    """
    marked = _last_marked(known, seen, held)
    if marked is not None:
        if known is not None and _too_many(known, marked, seen):
            return None
        behind = seen.copies.between(marked[1], end)
        if not behind.records:
            return LastKnown(marked[0], 1, marked=True)
        # Record by record some are passed without a copy, or copied without a mark where it has no room.
        unsure = held.dropped > 0 or any(each.first > marked[1] for each in seen.silent)
        if unsure or not behind.complete:
            return None
        return LastKnown(marked[0], 1 + sum(each.count for each in behind.records))
    if known is None or not seen.copies.complete:
        return None
    copies = seen.copies.records
    if not copies or copies[0].first != known[1]:
        return None  # another record stands there now
    return LastKnown(known[0], sum(each.count for each in copies))


def _last_marked(known: Place | None, seen: OwnCopies, held: Checkpoint) -> Place | None:
    """The newest copy that names its place; what was put back from quarantine stands behind newer ones."""
    below = max(-1 if known is None else known[0], held.left_out.known_from)
    in_order = (
        each
        for each in seen.pairs
        if below <= each[0] < held.offset and each[0] not in held.left_out.offsets
    )
    return max(in_order, default=None)


def _too_many(known: Place, marked: Place, seen: OwnCopies) -> bool:
    """Whether more copies stand between two known ones than offsets: then the second is out of order."""
    between = seen.copies.between(known[1] + 1, marked[1]).records
    return sum(each.count for each in between) > max(0, marked[0] - known[0] - 1)
