"""What is compared with what, for every source partition: pure, from facts about both clusters.

A **cut** is the source offset up to which a partition is judged: the position of its checkpoint,
which is committed in one transaction with the copies below it. So lag is no difference.

The interval begins later where a log does not hold the records: at the source's log start, at the
origin of the oldest copy that the target's retention left, at the first record that a flow with
`startFrom` copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from replicator.offsets.index.runs import Pair
from replicator.policy.copies.provenance import Arrivals, Hop
from replicator.policy.values import DropRule, Provenance

Mode = Literal["origin", "content", "latest"]
"""``origin``: joined on the place the hop header names. ``content``: on the content hash, between two
entries of the offset map, where hops carry no place. ``latest``: the last value of every key, where a
log is compacted."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the flow does to records, as its lanes know it."""

    source: str
    target: str
    provenance: Provenance
    blocked: tuple[str, ...]
    arrivals: Arrivals
    filters: tuple[DropRule, ...]
    transforms: tuple[str, ...]
    producers: tuple[int, ...] = ()
    """Ids under which whole batches came to the source from a blocked cluster: copies without a header."""


@dataclass(frozen=True, slots=True)
class Side:
    """One log of a partition: its bounds now, and what its topic's settings mean for it."""

    start: int
    end: int
    compacted: bool = False
    appends_time: bool = False
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What is known of one source partition and its copy.

    Attributes:
        copied_to: position of the checkpoint; None before the first.
        pairs: of the offset map, rising.
        noted: source offsets of the map with the time (milliseconds) at which the copy was there.
        oldest_copy: origin offset of the oldest copy in the target's log, where either log begins above 0.
        kept_from: first source offset whose copy the target's retention cannot have deleted yet; None
            where that is unknown, because retention goes by size.
        expired_before_ms: the target's retention may have deleted copies older than this.
        start_is_log: whether the source's start is that of its log, and not a time that was asked for.
        quarantined: source offsets in quarantine that were not replayed.
        replayed: source offsets that were replayed from quarantine.
        gaps: source offsets given up by policy or by an operator, half open.
        from_earliest: whether the flow began at the start of the log.
        recreated: whether the source topic was deleted and created again since the flow began.
        foreign_allowed: whether foreign records are allowed in the target topic.
        quiet: whether the checkpoint did not move while the target's end was read.
    """

    topic: str
    target_topic: str
    partition: int
    source: Side
    target: Side
    rules: Rules
    copied_to: int | None
    pairs: tuple[Pair, ...] = ()
    noted: tuple[tuple[int, int], ...] = ()
    oldest_copy: int | None = None
    kept_from: int | None = None
    expired_before_ms: int | None = None
    start_is_log: bool = True
    quarantined: frozenset[int] = frozenset()
    replayed: frozenset[int] = frozenset()
    gaps: tuple[tuple[int, int], ...] = ()
    from_earliest: bool = True
    recreated: bool = False
    foreign_allowed: bool = False
    quiet: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison; offsets are half open.

    ``source_from`` to ``cut`` is judged; below ``head_to`` the target has no copies left, and only those
    that its retention cannot have deleted are lost. ``source_to`` is above the cut where later records of a key
    must be known (mode ``latest``). ``segments`` are pairs of the offset map inside the interval.
    """

    number: int
    mode: Mode
    facts: CaseFacts
    source_from: int
    source_to: int
    target_from: int
    target_to: int
    cut: int
    segments: tuple[Pair, ...] = ()
    head_to: int = 0

    def expired(self, offset: int, at_ms: int) -> bool:
        """Whether the target's retention may have deleted the copy of a source record."""
        before = self.facts.expired_before_ms
        return offset < self.head_to and (before is None or at_ms < before)

    def outside(self) -> dict[str, int]:
        """How many source offsets are not compared, by the reason; an upper bound of their records."""
        facts = self.facts
        head = "offsetMap" if self.mode == "content" else "targetRetention"
        if not facts.from_earliest:
            head = "startFrom"
        counts = {head: self.source_from - facts.source.start, "lag": facts.source.end - self.cut}
        if facts.start_is_log and facts.oldest_copy is not None:
            counts["sourceRetention"] = facts.source.start - facts.oldest_copy
        return {reason: count for reason, count in sorted(counts.items()) if count > 0}

    @property
    def hop_prefix(self) -> bytes:
        """The constant part of the hops that copies of this partition carry."""
        facts = self.facts
        return f"{facts.rules.source}/{facts.topic}/{facts.partition}/".encode()


def make_case(number: int, facts: CaseFacts) -> Case:
    """Decides how a partition is compared, and over which interval."""
    mode = _mode(facts)
    cut, target_to = _ends(facts, mode)
    source_from, target_from = _starts(facts, mode, cut)
    return Case(
        number=number,
        mode=mode,
        facts=facts,
        source_from=source_from,
        source_to=facts.source.end if mode == "latest" else cut,
        target_from=target_from,
        target_to=max(target_from, target_to),
        cut=cut,
        segments=tuple(pair for pair in facts.pairs if source_from < pair.source < cut)
        if mode == "content"
        else (),
        head_to=_head_to(facts, mode, cut),
    )


def belongs(hop: Hop, case: Case) -> bool:
    """Whether a hop was added by this very flow, for this very partition."""
    facts = case.facts
    return (hop.alias, hop.topic, hop.partition) == (
        facts.rules.source, facts.topic, facts.partition,
    )  # fmt: skip


def segment_of(bounds: Sequence[int], offset: int) -> int:
    """Between which entries of the offset map an offset lies."""
    from bisect import bisect_right

    return bisect_right(bounds, offset)


def _mode(facts: CaseFacts) -> Mode:
    if facts.source.compacted or facts.target.compacted:
        return "latest"
    return "origin" if facts.rules.provenance == "full" else "content"


def _ends(facts: CaseFacts, mode: Mode) -> tuple[int, int]:
    """The cut, and where reading the target ends."""
    cut = min(facts.copied_to or 0, max(facts.source.end, facts.source.start))
    if facts.copied_to is None:
        cut = facts.source.start
    if mode != "content" or facts.quiet:
        return cut, facts.target.end
    # The header does not show which copies came since: the newest entry of the offset map does.
    known = [pair for pair in facts.pairs if pair.source < cut and pair.target < facts.target.end]
    if not known:
        return facts.source.start, facts.target.start
    return known[-1].source + 1, known[-1].target + 1


def _starts(facts: CaseFacts, mode: Mode, cut: int) -> tuple[int, int]:
    """Where judging begins on the source, and where reading the target begins."""
    source_from, target_from = facts.source.start, facts.target.start
    first = facts.pairs[0] if facts.pairs else None
    if facts.recreated and first is not None:
        target_from = max(target_from, first.target)
    if not facts.from_earliest:
        source_from = max(source_from, cut if first is None else first.source)
    if mode == "content" and any(pair.source < facts.source.start for pair in facts.pairs):
        # Copies of records that the source deleted carry no place: the offset map says where they end.
        kept = [pair for pair in _kept(facts) if pair.source >= facts.source.start]
        source_from = max(source_from, kept[0].source if kept else cut)
        target_from = max(target_from, kept[0].target if kept else facts.target.end)
    elif facts.target.start > 0 and mode != "latest":
        head_to = _head_to(facts, mode, cut)
        lost_from = head_to if facts.kept_from is None else min(head_to, facts.kept_from)
        if mode == "content" and not _all_copies_from(facts, lost_from):
            # The rows between the log's start and the oldest known copy cannot be told apart.
            lost_from = head_to
            kept = _kept(facts)
            target_from = max(target_from, kept[0].target if kept else facts.target.end)
        source_from = max(source_from, lost_from)
    return min(source_from, cut), target_from


def _head_to(facts: CaseFacts, mode: Mode, cut: int) -> int:
    """Source offset of the oldest copy that the target still has, where its log begins above 0."""
    if facts.target.start == 0 or mode == "latest":
        return 0
    if mode == "content":
        kept = _kept(facts)
        return kept[0].source if kept else cut
    return cut if facts.oldest_copy is None else facts.oldest_copy


def _kept(facts: CaseFacts) -> list[Pair]:
    return [pair for pair in facts.pairs if pair.target >= facts.target.start]


def _all_copies_from(facts: CaseFacts, source: int) -> bool:
    """Whether the offset map says that every copy on the target is of this source offset or a later one."""
    return any(pair.source >= source and pair.target < facts.target.start for pair in facts.pairs)
