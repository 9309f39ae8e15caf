"""Carrying group positions from one cluster to another, round by round.

Blocking calls run in threads, for many groups at once, and no more groups are touched per second than the throttle
lets through, so that a cluster with thousands of groups does not feel it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from asyncio_throttle.throttler import Throttler

from replicator.blocking import finished
from replicator.clock import Clock
from replicator.errors import ReplicatorError
from replicator.identifiers import RESERVED_PREFIX, LinkName, TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.offsets.groups.group_decision import GroupOutcomeDraft, Synced
from replicator.offsets.groups.group_evaluation import committed, evaluate, state_of
from replicator.offsets.groups.group_report import GroupOutcome, PartitionOutcome, SyncReport
from replicator.offsets.index.paths import TranslationPath, reversed_path, translation_paths
from replicator.offsets.translation.group_names import require_visible_groups
from replicator.offsets.translation.translator import Translator
from replicator.policy.copies.selection import select_groups
from replicator.topology.plan import FlowPlan, PairPlan, Plan
from replicator.wire.groups.group_description import CommittedOffset, GroupDescription

GROUPS_PER_SECOND = 500
"""Looked at, or moved; each question is about some of them."""

_LOOKED_AT_ONCE = 100
_MOVED_AT_ONCE = 20
"""Few, because the look before the commit should be young."""

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
    found: list[PartitionOutcome] = field(default_factory=list)

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
            for group in groups_of(self._plan, flow, listed.names)
            if not only or group in only
        ]
        if not works and not only and listed.unheard is None:
            await self._call(require_visible_groups, source, self._pair.source.alias)
        if works:
            partitions = await self._call(source.topic_partitions)
            linked = {work.flow.link: work.flow for work in works}
            paths = {
                link: await self._call(self._ways_of, flow, partitions)
                for link, flow in linked.items()
            }
            described = await self._call(
                target.describe_groups, sorted({work.group for work in works})
            )
            for work in works:
                work.description = described.get(work.group)
            for some in _chunks(works, _LOOKED_AT_ONCE):
                await self._read(some, paths, source, target)
        needed = [path for work in works for path in work.paths.values()]
        backs = await self._call(
            lambda: [back for one in needed if (back := self._back(one)) is not None]
        )
        if needed:
            await self._call(self._translator.refresh, [*needed, *backs])
        await self._call(self._evaluate_all, works)
        if commit:
            self._remember_kept(works)
            moving = [work for work in works if _decided(work)]
            for some in _chunks(moving, _MOVED_AT_ONCE):
                await self._commit(some, target)
        outcomes = [self._outcome(work, done=commit) for work in works]
        if listed.unheard is None:
            outcomes.extend(self._gone(works, only))
        return SyncReport(
            source=self._pair.source.alias,
            flow=self._pair.id,
            at_ms=round(self._clock.now() * 1000),
            groups=tuple(outcomes),
            unheard=listed.unheard,
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

    async def _read(
        self,
        works: Sequence[_Work],
        paths: Mapping[LinkName, Mapping[TopicPartition, TranslationPath]],
        source: ClusterAdmin,
        target: ClusterAdmin,
    ) -> None:
        """Where groups stand on both sides; a failure concerns its group only."""
        names = await self._in_turn(works)
        here = await self._call(source.committed_offsets, names)
        for work in works:
            ways, stands = paths[work.flow.link], here[work.group]
            if isinstance(stands, ReplicatorError):
                work.failure = stands.message
                continue
            work.source = {key: at for key, at in sorted(stands.items()) if key in ways}
            work.paths = {key: ways[key] for key in work.source}
        moving = sorted({work.group for work in works if work.source})
        there = await self._call(target.committed_offsets, moving) if moving else {}
        for work in works:
            stands = there.get(work.group, {})
            if isinstance(stands, ReplicatorError):
                work.failure = stands.message
                work.paths = {}
            else:
                work.target = stands

    async def _in_turn(self, works: Sequence[_Work]) -> list[str]:
        """The groups' names, once the throttle lets so many through."""
        names = sorted({work.group for work in works})
        for _ in names:
            async with self._throttle:
                pass
        return names

    def _evaluate_all(self, works: Iterable[_Work]) -> None:
        for work in works:
            if work.failure or not work.source:
                continue
            self._seen.add((work.group, work.flow.link))
            try:
                work.found = [self._evaluate(work, key, path) for key, path in work.paths.items()]
            except ReplicatorError as error:
                work.failure = error.message

    def _outcome(self, work: _Work, *, done: bool) -> GroupOutcome:
        link = work.flow.link
        if work.failure:
            return GroupOutcome(work.group, link, "failed", reason=work.failure)
        if not work.source:
            reason = "no positions in replicated topics"
            return GroupOutcome(work.group, link, "no-positions", reason=reason)
        state = state_of(work.found, active=work.active, done=done)
        return GroupOutcome(work.group, link, state, tuple(work.found))

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

    async def _commit(self, works: Sequence[_Work], target: ClusterAdmin) -> None:
        """Sets the decided positions, and remembers what is on the target now."""
        names = await self._in_turn(works)
        # With many groups the first look is seconds old, and a group may have run here since.
        now = await self._call(target.committed_offsets, names)
        wanted: dict[str, dict[TopicPartition, tuple[int, str]]] = {}
        moved: dict[str, set[TopicPartition]] = {}
        for work in works:
            stands = now[work.group]
            if isinstance(stands, ReplicatorError):
                work.failure = stands.message
                continue
            for place, position in _decided(work).items():
                if stands.get(place) != work.target.get(place):
                    moved.setdefault(work.group, set()).add(place)
                else:
                    wanted.setdefault(work.group, {})[place] = position
        answers = await self._call(target.commit_offsets, wanted) if wanted else {}
        for work in works:
            answer = answers.get(work.group, {})
            if isinstance(answer, ReplicatorError):
                work.failure = answer.message
            elif not work.failure:
                self._take_in(work, moved.get(work.group, set()), answer)

    def _take_in(
        self,
        work: _Work,
        moved: set[TopicPartition],
        answers: Mapping[TopicPartition, ReplicatorError | None],
    ) -> None:
        """What became of the decided positions."""
        decided = _decided(work)
        for number, one in enumerate(work.found):
            place = (one.target_topic, one.partition)
            if place not in decided:
                continue
            refused = answers.get(place)
            if place in moved:
                outcome = GroupOutcomeDraft(
                    "again", one.outcome.offset, reason="it moved meanwhile"
                )
                work.found[number] = replace(one, outcome=outcome)
            elif refused is not None:
                outcome = GroupOutcomeDraft("refuse", one.outcome.offset, reason=refused.message)
                work.found[number] = replace(one, outcome=outcome)
            else:
                work.found[number] = committed(one)
                self._remember(work, work.found[number])

    def _remember_kept(self, works: Iterable[_Work]) -> None:
        for work in works:
            decided = _decided(work)
            for one in work.found:
                if (one.target_topic, one.partition) not in decided:
                    self._remember(work, one)

    def _remember(self, work: _Work, one: PartitionOutcome) -> None:
        if one.target_offset is not None and one.outcome.action != "refuse":
            self._last[work.group, one.topic, one.partition] = Synced(
                one.source_offset, one.target_offset
            )

    def _gone(self, works: Iterable[_Work], only: frozenset[str]) -> list[GroupOutcome]:
        """Groups that were synced before and are no more; their positions on the target stay.

        Each is told once and then forgotten: tools that make up a name for each run leave groups without end.
        """
        present = {(work.group, work.flow.link) for work in works}
        gone = sorted(one for one in self._seen - present if not only or one[0] in only)
        if gone:
            self._seen.difference_update(gone)
            left = {group for group, _ in self._seen}
            self._last = {key: last for key, last in self._last.items() if key[0] in left}
        reason = "the group was deleted on the source; its positions on the target stay"
        return [GroupOutcome(group, link, "deleted", reason=reason) for group, link in gone]

    def _back(self, path: TranslationPath) -> TranslationPath | None:
        if path not in self._backs:
            self._backs[path] = reversed_path(self._plan, path)
        return self._backs[path]

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await finished(function, *args, **kwargs)


def _decided(work: _Work) -> dict[TopicPartition, tuple[int, str]]:
    """The positions to set on the target, with what the group noted beside them."""
    return {
        (one.target_topic, one.partition): (one.outcome.offset, one.outcome.metadata)
        for one in work.found
        if one.outcome.action == "commit" and one.outcome.offset is not None
    }


def _chunks(works: Sequence[_Work], size: int) -> Iterator[Sequence[_Work]]:
    for start in range(0, len(works), size):
        yield works[start : start + size]


def groups_of(plan: Plan, flow: FlowPlan, listed: Iterable[str]) -> tuple[str, ...]:
    """The groups to carry over, of those a source has; the replicator's own are never among them."""
    if not flow.policy.sync_groups.enabled:
        return ()
    own = (RESERVED_PREFIX, f"replicator.{plan.topology}.")
    selected = select_groups(flow.policy.groups, listed)
    return tuple(group for group in selected if not group.startswith(own))
