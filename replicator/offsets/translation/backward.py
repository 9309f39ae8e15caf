"""From a target position to the source: the rules. Pure.

The answer is the source offset of the first record of ours at or after the position; where there is
none, the point up to which the source was copied.
"""

from replicator.offsets.index.runs import Known, Pair
from replicator.offsets.translation.forward import UnmarkedSpan
from replicator.offsets.translation.translation import (
    PartitionFacts,
    Translation,
    bounded,
    exact,
    unavailable,
)

BEFORE_ADOPTION = "the position may be among copies that another program made"


def locate(
    known: Known, position: int, facts: PartitionFacts, *, tight: bool
) -> Translation | UnmarkedSpan:
    """The answer, or the stretch of the target log that holds it; see ``forward.locate``."""
    kept, _ = known.since(facts.target_start)
    found = known.last_before(position)
    below = found[0] if found is not None else None
    if position < facts.target_start:
        return _older(below, position, facts)
    joins = found is not None and found[1].end >= position
    follower = kept.first_from(position)
    if follower is None or follower[1].start > position:
        window = kept.window_at(position)
        until = window.end if window is not None else position
        if follower is None and until >= facts.target_end:
            return _on_source(_at_end(below, position, facts, joins=joins), facts)
        end = follower[1].start if follower is not None else facts.target_end
        return UnmarkedSpan(until, end, below, follower[0] if follower is not None else None)
    above, unmarked = follower[0], follower[1].unmarked
    if below is None and facts.adopted and position < above.target:
        return unavailable(BEFORE_ADOPTION)
    if below is not None and not facts.cyclic:
        hidden = [at for at in unmarked if position <= at < above.target]
        if hidden:
            again = above.source - below.source - 1
            return bounded(below.source + 1, again, "records without a hop stand at the position")
    if tight and not joins and not _empty_before(kept, position, facts):
        start = below.target + 1 if below is not None else facts.target_start
        return UnmarkedSpan(max(start, facts.target_start), position, below, above)
    low = below.source + 1 if below is not None and joins else above.source
    return _on_source(exact(above.source, low=low), facts)


def settle(gap: UnmarkedSpan, position: int, facts: PartitionFacts, why: str) -> Translation:
    """The best answer when looking further is not allowed: never past the true position."""
    if gap.end <= position and gap.above is not None:  # only the least position was still wanted
        return _on_source(exact(gap.above.source), facts)
    if gap.below is None:
        return unavailable(f"{why}, and no copy before the position is known")
    again = position - gap.below.target - 1
    if gap.above is not None:
        again = min(again, gap.above.source - gap.below.source - 1)
    return _on_source(bounded(gap.below.source + 1, again, why), facts)


def _empty_before(known: Known, position: int, facts: PartitionFacts) -> bool:
    """Whether it is known that nothing of ours stands before the position."""
    first = known.window_at(facts.target_start)
    return first is not None and first.end >= position


def _at_end(
    below: Pair | None, position: int, facts: PartitionFacts, *, joins: bool
) -> Translation:
    copied = facts.copied_to
    if below is None and facts.adopted and position < facts.target_end:
        return unavailable(BEFORE_ADOPTION)
    if below is None:
        return unavailable("nothing was copied yet") if copied is None else exact(copied)
    after = below.source + 1
    if joins:
        return exact(max(copied or 0, after), low=after)
    if copied is not None and copied >= after:
        return exact(copied)
    again = position - below.target - 1
    return bounded(after, again, "no checkpoint says how far the copy came")


def _older(below: Pair | None, position: int, facts: PartitionFacts) -> Translation:
    reason = "the position is older than the target's log start"
    if below is None:
        return unavailable(reason)
    return _on_source(bounded(below.source + 1, position - below.target - 1, reason), facts)


def _on_source(answer: Translation, facts: PartitionFacts) -> Translation:
    """The source may have lost what the position asks for."""
    start = facts.source_start
    if answer.offset is None or start is None or answer.offset >= start:
        return answer
    return unavailable("the source does not have these records any more")
