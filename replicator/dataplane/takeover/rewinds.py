"""The last copy in a target whose source log was cut or made anew since older copies were written.

Copies stand in the order of their source offsets, but for those put back from quarantine: so the highest one is
the last one. Where the source's log was rewound they begin again at a lower one, and the copies behind that
place are looked through before those in front of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from replicator.dataplane.takeover.target_looks import LastCopy
from replicator.dataplane.takeover.target_loss import SeenTarget, recreated
from replicator.formats.checkpoint import TargetClaim
from replicator.identifiers import TopicPartition

Look = Callable[[Mapping[TopicPartition, SeenTarget]], Mapping[TopicPartition, LastCopy]]
"""Finds the copies with the highest source offsets in the logs, or parts of logs, that are given."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a target's log; of what is copied in it only what is below ``below`` still counts, if that is set."""

    seen: SeenTarget
    below: int | None = None


def last_copies_in_order(
    look: Look,
    wanted: Mapping[TopicPartition, SeenTarget],
    claims: Mapping[TopicPartition, TargetClaim],
) -> dict[TopicPartition, LastCopy]:
    """The last copy in each target partition; from the newest part of its log back, until one has any."""
    found: dict[TopicPartition, LastCopy] = {}
    left = {place: _parts(claims[place], seen) for place, seen in wanted.items()}
    while left:
        copies = look({place: parts[0].seen for place, parts in left.items()})
        for place, copy in copies.items():
            part = left[place].pop(0)
            found[place] = _counting_below(copy, part.below)
            if copy.source_offset is not None or not left[place]:
                del left[place]
    return found


def _parts(claim: TargetClaim, seen: SeenTarget) -> list[_Part]:
    """The stretches between which the source was rewound, the newest first; at least one."""
    parts: list[_Part] = []
    end, below = seen.end, None
    for target, source in reversed(() if recreated(claim, seen) else claim.rewinds):
        if seen.start < target:
            if target < end:
                parts.append(_Part(replace(seen, start=target, end=end), below))
            end, below = min(target, end), source if below is None else min(source, below)
    return [*parts, _Part(replace(seen, end=end), below)]


def _counting_below(copy: LastCopy, below: int | None) -> LastCopy:
    """From ``below`` on the source's log is another one than that of this copy, and was copied anew."""
    if below is None or copy.source_offset is None or copy.source_offset < below:
        return copy
    return replace(copy, source_offset=below - 1, target_offset=-1)
