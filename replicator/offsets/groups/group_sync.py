"""Carrying group positions from one cluster to another, round by round.

Blocking calls run in threads, and no more groups are touched per second than the throttle lets
through, so that a cluster with thousands of groups does not feel it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from asyncio_throttle.throttler import Throttler

from replicator.blocking import finished
from replicator.clock import Clock
from replicator.errors import ReplicatorError
from replicator.identifiers import RESERVED_PREFIX, TopicPartition
from replicator.kafka.admin.groups import CommittedOffset
from replicator.offsets.groups.group_decision import GroupOutcomeDraft, Synced
from replicator.offsets.groups.group_evaluation import committed, evaluate, state_of
from replicator.offsets.groups.group_report import GroupOutcome, PartitionOutcome, SyncReport
from replicator.offsets.index.paths import TranslationPath, reversed_path, translation_paths
from replicator.offsets.translation.group_names import require_visible_groups
from replicator.offsets.translation.translator import Translator
from replicator.policy.copies.selection import select_groups
from replicator.topology.plan import FlowPlan, PairPlan, Plan
from replicator.wire.groups.group_description import GroupDescription

GROUPS_PER_SECOND = 50

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class _Work:
    """One group of one flow in one round."""

    group: str
    flow: FlowPlan
    source: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)
    target: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)
    description: GroupDescription | None = None
    paths: dict[TopicPartition, TranslationPath] = field(default_factory=dict)
    failure: str = ""

    @property
    def active(self) -> bool:
        """Whether anybody is in the group on the target."""
        return self.description is not None and self.description.active


class GroupSync:
    """Syncs the groups of one ordered pair of clusters; remembers what it left on the target."""

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
        self._ways: dict[TopicPartition, tuple[TranslationPath, ...]] = {}
        self._backs: dict[TranslationPath, TranslationPath | None] = {}

    async def run_once(self, *, commit: bool = True, groups: Iterable[str] = ()) -> SyncReport:
        """One round over every group the policies select.

        Args:
            commit: false only looks: what a sync would do, and what a move now would cost.
            groups: only these, where any are named.

        Raises:
            NotAuthorizedError: our user sees no group of the source, and there may be some.
            ReplicatorError: a cluster does not answer; what concerns one group is in its outcome.
        """
        only = frozenset(groups)
        source, target = (
            self._translator.admin(side) for side in (self._pair.source, self._pair.target)
        )
        listed = await self._call(self._translator.groups, self._pair.source)
        works = [
            _Work(group, flow)
            for flow in self._pair.flows
            for group in groups_of(self._plan, flow, listed)
            if not only or group in only
        ]
        if not works and not only:
            await self._call(require_visible_groups, source, self._pair.source.alias)
        if works:
            partitions = await self._call(source.topic_partitions)
            linked = {work.flow.link: work.flow for work in works}
            paths = {
                link: await self._call(self._ways_of, flow, partitions)
                for link, flow in linked.items()
            }
            names = {work.group for work in works}
            described = await self._call(target.describe_groups, sorted(names))
            for work in works:
                work.description = described.get(work.group)
                await self._read(work, paths[work.flow.link])
        needed = [path for work in works for path in work.paths.values()]
        backs = await self._call(
            lambda: [back for one in needed if (back := self._back(one)) is not None]
        )
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

    def _ways_of(
        self, flow: FlowPlan, partitions: Mapping[str, int]
    ) -> dict[TopicPartition, TranslationPath]:
        """Every source partition whose records this link carries, with its translation path."""
        source, target = self._pair.source.alias, self._pair.target.alias
        paths: dict[TopicPartition, TranslationPath] = {}
        for topic, count in partitions.items():
            if (topic, 0) not in self._ways:
                self._ways[topic, 0] = tuple(
                    translation_paths(self._plan, source, target, topic, 0)
                )
            if not self._ways[topic, 0]:
                continue
            for number in range(count):
                if (topic, number) not in self._ways:
                    self._ways[topic, number] = tuple(
                        translation_paths(self._plan, source, target, topic, number)
                    )
                for path in self._ways[topic, number]:
                    if flow.link in path.links:
                        paths.setdefault((topic, number), path)
        return paths

    async def _read(self, work: _Work, paths: Mapping[TopicPartition, TranslationPath]) -> None:
        """Where the group stands on both sides; a failure concerns this group only."""
        source, target = (
            self._translator.admin(side) for side in (self._pair.source, self._pair.target)
        )
        try:
            async with self._throttle:
                work.source = await self._call(source.committed_offsets, work.group, list(paths))
            work.paths = {key: paths[key] for key in work.source}
            if work.source:
                targets = [(path.target_topic, path.partition) for path in work.paths.values()]
                work.target = await self._call(target.committed_offsets, work.group, targets)
        except ReplicatorError as error:
            work.failure = error.message
            work.paths = {}

    async def _sync(self, work: _Work, *, commit: bool) -> GroupOutcome:
        link = work.flow.link
        if work.failure:
            return GroupOutcome(work.group, link, "failed", reason=work.failure)
        if not work.source:
            reason = "no positions in replicated topics"
            return GroupOutcome(work.group, link, "no-positions", reason=reason)
        self._seen.add((work.group, link))
        try:
            found = [
                await self._call(self._evaluate, work, key, path)
                for key, path in work.paths.items()
            ]
            if commit:
                found = await self._commit(work, found)
        except ReplicatorError as error:
            return GroupOutcome(work.group, link, "failed", reason=error.message)
        state = state_of(found, active=work.active, done=commit)
        return GroupOutcome(work.group, link, state, tuple(found))

    def _evaluate(
        self, work: _Work, key: TopicPartition, path: TranslationPath
    ) -> PartitionOutcome:
        return evaluate(
            self._translator,
            path,
            self._back(path),
            source=work.source[key],
            target=work.target.get((path.target_topic, path.partition)),
            target_active=work.active,
            last=self._last.get((work.group, *key)),
            rewind=work.flow.policy.sync_groups.rewind,
        )

    async def _commit(self, work: _Work, found: list[PartitionOutcome]) -> list[PartitionOutcome]:
        """Sets the decided positions, and remembers what is on the target now."""
        positions = {
            (one.target_topic, one.partition): (one.outcome.offset, one.outcome.metadata)
            for one in found
            if one.outcome.action == "commit" and one.outcome.offset is not None
        }
        answers: Mapping[TopicPartition, ReplicatorError | None] = {}
        moved: set[TopicPartition] = set()
        if positions:
            target = self._translator.admin(self._pair.target)
            async with self._throttle:
                # With many groups the first look is seconds old, and the group may have run here since.
                now = await self._call(target.committed_offsets, work.group, list(positions))
                moved = {place for place in positions if now.get(place) != work.target.get(place)}
                for place in moved:
                    del positions[place]
                if positions:
                    answers = await self._call(target.commit_offsets, work.group, positions)
        done: list[PartitionOutcome] = []
        for one in found:
            place = (one.target_topic, one.partition)
            if place in moved:
                waits = GroupOutcomeDraft("keep", one.outcome.offset, reason="it moved meanwhile")
                done.append(replace(one, outcome=waits))
                continue
            refused = answers.get(place)
            if refused is not None:
                outcome = GroupOutcomeDraft("refuse", one.outcome.offset, reason=refused.message)
                done.append(replace(one, outcome=outcome))
                continue
            if place in positions:
                one = committed(one)  # noqa: PLW2901  the same partition, as it is now
            if one.target_offset is not None and one.outcome.action != "refuse":
                self._last[work.group, one.topic, one.partition] = Synced(
                    one.source_offset, one.target_offset
                )
            done.append(one)
        return done

    def _gone(self, works: Iterable[_Work], only: frozenset[str]) -> list[GroupOutcome]:
        """Groups that were synced before and are no more; their positions on the target stay."""
        present = {(work.group, work.flow.link) for work in works}
        reason = "the group was deleted on the source; its positions on the target stay"
        return [
            GroupOutcome(group, link, "deleted", reason=reason)
            for group, link in sorted(self._seen - present)
            if not only or group in only
        ]

    def _back(self, path: TranslationPath) -> TranslationPath | None:
        if path not in self._backs:
            self._backs[path] = reversed_path(self._plan, path)
        return self._backs[path]

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await finished(function, *args, **kwargs)


def groups_of(plan: Plan, flow: FlowPlan, listed: Iterable[str]) -> tuple[str, ...]:
    """The groups to carry over, of those a source has; the replicator's own are never among them."""
    if not flow.policy.sync_groups.enabled:
        return ()
    own = (RESERVED_PREFIX, f"replicator.{plan.topology}.")
    selected = select_groups(flow.policy.groups, listed)
    return tuple(group for group in selected if not group.startswith(own))
