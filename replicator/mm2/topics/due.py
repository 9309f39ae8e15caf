"""Which checkpoints and offset syncs are worth a record now. Pure.

A checkpoint is written when it says something else than the last one. MirrorMaker 2 holds lower
translations back because its own waver; ours are exact, so a lower one is a group that went back.

Offset syncs rise: MirrorMaker 2's readers take one that is lower than the last as a source that was
rewound, and forget every pair they had.
"""

from collections.abc import Iterable, Mapping, Sequence

from replicator.mm2.topics.formats import Checkpoint, OffsetSync

SYNCS_AT_ONCE = 3
"""Readers keep few of the pairs that are close together, so the newest of a turn are enough."""


def checkpoints_due(
    found: Iterable[Checkpoint], written: Mapping[bytes, Checkpoint]
) -> list[Checkpoint]:
    """The checkpoints that differ from what was written last under their key."""
    return [one for one in found if written.get(one.key()) != one]


def syncs_due(pairs: Sequence[OffsetSync], last: OffsetSync | None) -> list[OffsetSync]:
    """The pairs of one partition to be written, oldest first: SYNCS_AT_ONCE are enough.

    Args:
        pairs: all that are known, strictly rising on both sides.
        last: written before, by anybody.
    """
    if not pairs:
        return []
    if last is None:
        return list(pairs[-SYNCS_AT_ONCE:])
    newer = [
        one for one in pairs if one.upstream > last.upstream and one.downstream > last.downstream
    ]
    if newer:
        return newer[-SYNCS_AT_ONCE:]
    newest = pairs[-1]
    began_anew = newest.upstream < last.upstream or newest.downstream < last.downstream
    return [newest] if began_anew else []
