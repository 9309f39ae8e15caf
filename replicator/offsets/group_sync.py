"""Carrying group positions from one cluster to another, round by round.

Blocking calls run in threads, and no more groups are touched per second than the throttle lets
through, so that a cluster with thousands of groups does not feel it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from asyncio_throttle.throttler import Throttler

from replicator.clock import Clock
from replicator.errors import ReplicatorError
from replicator.identifiers import RESERVED_PREFIX
from replicator.kafka.groups import CommittedOffset, GroupDescription
from replicator.offsets.group_decision import (
    Facts,
    Outcome,
    Position,
    Synced,
    decide,
    needs_back,
)
from replicator.offsets.group_report import (
    GroupOutcome,
    GroupState,
    PartitionOutcome,
    SyncReport,
)
from replicator.offsets.lines import Crossing, crossings, turned
from replicator.offsets.translator import Translator
from replicator.policy.selection import select_groups
from replicator.topology.plan import FlowPlan, PairPlan, Plan

GROUPS_PER_SECOND = 50

Key = tuple[str, int]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class _Work:
    """One group of one flow in one round."""

    group: str
    flow: FlowPlan
    here: Mapping[Key, CommittedOffset] = field(default_factory=dict)
    there: Mapping[Key, CommittedOffset] = field(default_factory=dict)
    description: GroupDescription | None = None
    ways: dict[Key, Crossing] = field(default_factory=dict)
    failure: str = ""


class GroupSync:
    """Syncs the groups of one ordered pair of clusters; remembers what it left there."""

    def __init__(
        self,
        plan: Plan,
        pair: PairPlan,
        *,
        translator: Translator,
        clock: Clock,
        groups_per_second: int = GROUPS_PER_SECOND,
    ) -> None:
        self._plan = plan
        self._pair = pair
        self._translator = translator
        self._clock = clock
        self._throttle = Throttler(rate_limit=groups_per_second, period=1.0)
        self._last: dict[tuple[str, str, int], Synced] = {}
        self._seen: set[tuple[str, str]] = set()
        self._ways: dict[Key, tuple[Crossing, ...]] = {}

    async def run_once(self, *, commit: bool = True, groups: Iterable[str] = ()) -> SyncReport:
        """One round over every group the policies select.

        Args:
            commit: false only looks: what a sync would do, and what a move now would cost.
            groups: only these, where any are named.

        Raises:
            ReplicatorError: a cluster does not answer; what concerns one group is in its outcome.
        """
        only = frozenset(groups)
        here, there = (
            self._translator.admin(side) for side in (self._pair.source, self._pair.target)
        )
        partitions = await self._call(here.topic_partitions)
        listed = await self._call(here.list_groups)
        works = [
            _Work(group, flow)
            for flow in self._pair.flows
            if flow.policy.sync_groups.enabled
            for group in self._selected(flow, listed)
            if not only or group in only
        ]
        ways = {flow.link: self._ways_of(flow, partitions) for flow in self._pair.flows}
        if works:
            names = {work.group for work in works}
            described = await self._call(there.describe_groups, sorted(names))
            for work in works:
                work.description = described.get(work.group)
                await self._read(work, ways[work.flow.link])
        needed = [crossing for work in works for crossing in work.ways.values()]
        backs = [back for one in needed if (back := self._back(one)) is not None]
        if needed:
            await self._call(self._translator.refresh, [*needed, *backs])
        outcomes = [await self._sync(work, commit=commit) for work in works]
        outcomes.extend(self._gone(works, only))
        return SyncReport(
            source=self._pair.source.alias,
            flow=self._pair.id,
            at_ms=round(self._clock.now() * 1000),
            groups=tuple(outcomes),
        )

    def _selected(self, flow: FlowPlan, listed: Iterable[str]) -> tuple[str, ...]:
        """The groups to carry over; the replicator's own are never among them."""
        own = (RESERVED_PREFIX, f"replicator.{self._plan.topology}.")
        selected = select_groups(flow.policy.groups, listed)
        return tuple(group for group in selected if not group.startswith(own))

    def _ways_of(self, flow: FlowPlan, partitions: Mapping[str, int]) -> dict[Key, Crossing]:
        """Every partition here whose records this link carries, with its way over."""
        source, target = self._pair.source.alias, self._pair.target.alias
        ways: dict[Key, Crossing] = {}
        for topic, count in partitions.items():
            if (topic, 0) not in self._ways:
                self._ways[topic, 0] = tuple(crossings(self._plan, source, target, topic, 0))
            if not self._ways[topic, 0]:
                continue
            for number in range(count):
                if (topic, number) not in self._ways:
                    self._ways[topic, number] = tuple(
                        crossings(self._plan, source, target, topic, number)
                    )
                for crossing in self._ways[topic, number]:
                    if flow.link in crossing.links:
                        ways.setdefault((topic, number), crossing)
        return ways

    async def _read(self, work: _Work, ways: Mapping[Key, Crossing]) -> None:
        """Where the group stands on both sides; a failure concerns this group only."""
        here, there = (
            self._translator.admin(side) for side in (self._pair.source, self._pair.target)
        )
        try:
            async with self._throttle:
                work.here = await self._call(here.committed_offsets, work.group, list(ways))
            work.ways = {key: ways[key] for key in work.here}
            if work.here:
                targets = [(way.target_topic, way.partition) for way in work.ways.values()]
                work.there = await self._call(there.committed_offsets, work.group, targets)
        except ReplicatorError as error:
            work.failure = error.message
            work.ways = {}

    async def _sync(self, work: _Work, *, commit: bool) -> GroupOutcome:
        link = work.flow.link
        if work.failure:
            return GroupOutcome(work.group, link, "failed", reason=work.failure)
        if not work.here:
            reason = "no positions in replicated topics"
            return GroupOutcome(work.group, link, "no-positions", reason=reason)
        self._seen.add((work.group, link))
        try:
            found = [
                await self._call(self._evaluate, work, key, crossing)
                for key, crossing in work.ways.items()
            ]
            if commit:
                found = await self._commit(work, found)
        except ReplicatorError as error:
            return GroupOutcome(work.group, link, "failed", reason=error.message)
        state = _state(found, work, committed=commit)
        return GroupOutcome(work.group, link, state, tuple(found))

    def _evaluate(self, work: _Work, key: Key, crossing: Crossing) -> PartitionOutcome:
        """Translates one position and decides about it; nothing is changed."""
        here = work.here[key]
        held = work.there.get((crossing.target_topic, crossing.partition))
        facts = Facts(
            here=Position(here.offset, here.metadata),
            there=None if held is None else Position(held.offset, held.metadata),
            there_active=work.description is not None and work.description.active,
            translation=self._translator.cross(crossing, here.offset),
            last=self._last.get((work.group, *key)),
        )
        back = self._back(crossing)
        if needs_back(facts) and held is not None and back is not None:
            facts = replace(facts, back=self._translator.cross(back, held.offset))
        outcome = decide(facts, rewind=work.flow.policy.sync_groups.rewind)
        translation = facts.translation
        if translation is None:
            raise AssertionError("every position is translated")
        ends = self._translator.ends(crossing)
        at = None if held is None else held.offset
        return PartitionOutcome(
            topic=crossing.topic,
            target_topic=crossing.target_topic,
            partition=crossing.partition,
            source_offset=here.offset,
            target_offset=at,
            right_offset=translation.offset,
            grade=translation.grade,
            records_reread=_reread(translation.offset, at, translation.records_reread, outcome),
            source_lag=_lag(ends[0], here.offset),
            target_lag=_lag(ends[1], at),
            outcome=outcome,
            reason=translation.reason,
        )

    async def _commit(self, work: _Work, found: list[PartitionOutcome]) -> list[PartitionOutcome]:
        """Sets the decided positions, and remembers what stands there now."""
        positions = {
            (one.target_topic, one.partition): (one.outcome.offset, one.outcome.metadata)
            for one in found
            if one.outcome.action == "commit" and one.outcome.offset is not None
        }
        answers: Mapping[Key, ReplicatorError | None] = {}
        if positions:
            there = self._translator.admin(self._pair.target)
            async with self._throttle:
                answers = await self._call(there.commit_offsets, work.group, positions)
        done: list[PartitionOutcome] = []
        for one in found:
            place = (one.target_topic, one.partition)
            refused = answers.get(place)
            if refused is not None:
                outcome = Outcome("refuse", one.outcome.offset, reason=refused.message)
                done.append(replace(one, outcome=outcome))
                continue
            if place in positions:
                one = _committed(one)  # noqa: PLW2901  the same partition, as it is now
            if one.target_offset is not None and one.outcome.action != "refuse":
                self._last[work.group, one.topic, one.partition] = Synced(
                    one.source_offset, one.target_offset
                )
            done.append(one)
        return done

    def _gone(self, works: Iterable[_Work], only: frozenset[str]) -> list[GroupOutcome]:
        """Groups that were synced before and are no more; their positions there stay."""
        here = {(work.group, work.flow.link) for work in works}
        reason = "the group was deleted on the source; its positions on the target stay"
        return [
            GroupOutcome(group, link, "deleted", reason=reason)
            for group, link in sorted(self._seen - here)
            if not only or group in only
        ]

    def _back(self, crossing: Crossing) -> Crossing | None:
        return turned(self._plan, crossing)

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(function, *args, **kwargs)


def _committed(one: PartitionOutcome) -> PartitionOutcome:
    moved, lag = one.outcome.offset, one.target_lag
    if moved is None:
        return one
    if lag is not None and one.target_offset is not None:
        lag = max(0, lag - (moved - one.target_offset))
    return replace(one, target_offset=moved, target_lag=lag)


def _state(found: Iterable[PartitionOutcome], work: _Work, *, committed: bool) -> GroupState:
    found = list(found)
    if work.description is not None and work.description.active:
        return "active-on-target"
    if any(one.outcome.action == "refuse" for one in found):
        return "refused"
    if not committed and any(one.outcome.action == "commit" for one in found):
        return "pending"
    return "synced"


def _reread(right: int | None, at: int | None, bounded: int, outcome: Outcome) -> int:
    """What a move now reads again: from the position there up to the right one, at most."""
    if right is None or at is None or outcome.action == "commit":
        return bounded
    return max(bounded, right - at) if outcome.reason != "stands for the same records" else bounded


def _lag(end: int | None, at: int | None) -> int | None:
    return None if end is None or at is None else max(0, end - at)
