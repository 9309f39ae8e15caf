"""From a source position to the target: the rules. Pure.

Wanted is the first record that was not yet processed. Its place is after the last record of ours
with a lower source offset, so the question is answered as soon as that record and its follower are
known to be neighbours. Until then there is an unknown stretch between them, and the rules say where
in it to look.
"""

from dataclasses import dataclass

from replicator.offsets.index.runs import Known, Pair
from replicator.offsets.translation.translation import (
    PartitionFacts,
    Translation,
    bounded,
    exact,
    unavailable,
)


@dataclass(frozen=True, slots=True)
class UnmarkedSpan:
    """The answer is in ``[start, end)`` of the target log; the neighbours are known, or None."""

    start: int
    end: int
    below: Pair | None
    above: Pair | None


def locate(
    known: Known, wanted: int, facts: PartitionFacts, *, tight: bool
) -> Translation | UnmarkedSpan:
    """The answer, or where it must be.

    Args:
        known: everything learnt so far.
        wanted: the first source offset that was not processed.
        facts: bounds of both logs.
        tight: whether the least equivalent position is wanted as well, which may cost one look.
    """
    kept, gone = known.since(facts.target_start)
    found = kept.last_below(wanted)
    if found is not None:
        below: Pair | None = found[0]
        after, known_to = found[0].target + 1, found[1].end
    else:
        window = kept.window_at(facts.target_start)
        below, after = None, facts.target_start
        known_to = window.end if window is not None else after
    follower = kept.first_from(after)
    if follower is None:
        if known_to < facts.target_end:
            return UnmarkedSpan(known_to, facts.target_end, below, None)
        return _at_end(below, wanted, known_to, kept, facts)
    above, neighbours = follower[0], follower[1].start <= after
    if above.source == wanted and (neighbours or not tight):
        return exact(above.target, low=after if neighbours else above.target)
    if not neighbours:
        return UnmarkedSpan(known_to, follower[1].start, below, above)
    if below is None:
        return _at_start(above, wanted, gone, facts)
    unmarked = _unmarked(kept, after, above.target, facts)
    return _before_unmarked(unmarked) if unmarked else exact(above.target, low=after)


def settle(gap: UnmarkedSpan, wanted: int, facts: PartitionFacts, why: str) -> Translation:
    """The best answer when looking further is not allowed: never past the true position."""
    if gap.below is None and not (facts.target_start == 0 and facts.from_earliest):
        return unavailable(f"{why}, and no copy below the position is known")
    again = gap.end - gap.start
    if gap.below is not None:
        again = min(again, wanted - gap.below.source - 1)
    return bounded(gap.start, again, why)


def guess(gap: UnmarkedSpan, wanted: int, facts: PartitionFacts) -> int:
    """Where in the gap the position should be, if the copy is evenly spread between its neighbours."""
    low, high = gap.below, gap.above
    if low is None:
        low = Pair(facts.source_start or 0, gap.start)
    if high is None:
        end = facts.copied_to if facts.copied_to is not None else facts.source_end
        high = Pair(end if end is not None else low.source + gap.end - gap.start, gap.end)
    if high.source <= low.source or high.target <= low.target:
        return gap.end if wanted >= high.source else gap.start
    share = (wanted - low.source) / (high.source - low.source)
    place = low.target + round(share * (high.target - low.target))
    return min(max(place, gap.start), gap.end)


def _unmarked(known: Known, start: int, end: int, facts: PartitionFacts) -> list[int]:
    """Records between neighbours that may be ours without saying so."""
    window = known.window_at(start)
    if facts.cyclic or window is None:
        return []
    return [at for at in window.unmarked if start <= at < end]


def _before_unmarked(unmarked: list[int]) -> Translation:
    return bounded(unmarked[0], len(unmarked), "records without a hop stand at the position")


def _at_start(above: Pair, wanted: int, gone: Pair | None, facts: PartitionFacts) -> Translation:
    """The oldest copy that exists is above the position: was there ever one between?"""
    start = facts.source_start
    if start is not None and start >= above.source:
        return exact(above.target, low=facts.target_start)  # the source has nothing older either
    if gone is not None and gone.source >= wanted:
        return unavailable("the copies from there on are older than the target's log start")
    if gone is not None and gone.source == above.source - 1:
        return exact(above.target, low=facts.target_start)
    if facts.target_start > 0:
        return unavailable("the position is older than the target's oldest copy")
    if not facts.from_earliest:
        return unavailable(f"the copy began at source offset {above.source}")
    return exact(above.target, low=facts.target_start)


def _at_end(
    below: Pair | None, wanted: int, end: int, known: Known, facts: PartitionFacts
) -> Translation:
    """No copy at or above the position exists: the end of the target, if the copy got that far."""
    if below is None:
        return _nothing_there(wanted, end, facts)
    unmarked = _unmarked(known, below.target + 1, end, facts)
    if unmarked:
        return _before_unmarked(unmarked)
    copied = max(facts.copied_to or 0, below.source + 1)
    if wanted <= copied:
        return exact(end, low=below.target + 1)
    return bounded(end, wanted - copied, "the copy has not come that far yet")


def _nothing_there(wanted: int, end: int, facts: PartitionFacts) -> Translation:
    copied = facts.copied_to
    if copied is None:
        return unavailable("nothing was copied yet")
    if wanted > copied:
        return bounded(end, wanted - copied, "the copy has not come that far yet")
    drained = facts.source_start is not None and facts.source_start >= copied
    if wanted == copied or drained or (facts.target_start == 0 and facts.from_earliest):
        return exact(end, low=facts.target_start)
    return unavailable("the target has no copy of the partition any more")
