"""Doing what was decided on the target cluster, gently and item by item.

Every action is idempotent: what is there already counts as done. A refusal of one item becomes a
problem of that item; only a cluster that does not answer stops the round.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from asyncio_throttle.throttler import Throttler

from replicator.blocking import finished
from replicator.control.reconcile.actions import (
    AlterConfigs,
    ClusterAction,
    CreateTopic,
    DeleteTopic,
    GrowTopic,
)
from replicator.errors import (
    AlreadyExistsError,
    NotFoundError,
    ReplicatorError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.problem import Problem

CALLS_PER_SECOND = 20
"""Control-plane calls on one cluster; each carries at most ``ITEMS_PER_CALL`` topics, so that a
large topology never storms the cluster's controller."""
ITEMS_PER_CALL = 20

_ORDER: tuple[type[ClusterAction], ...] = (CreateTopic, GrowTopic, AlterConfigs, DeleteTopic)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What became of the actions: done ones, refusals by identity, created target topics."""

    done: tuple[ClusterAction, ...] = ()
    refusals: Mapping[str, Problem] = field(default_factory=dict)
    created: frozenset[str] = frozenset()


class Executor:
    """Changes the topics of one cluster. One per cluster and process."""

    def __init__(self, admin: ClusterAdmin) -> None:
        self._admin = admin
        self._throttler = Throttler(rate_limit=CALLS_PER_SECOND, period=1.0)

    async def execute(
        self,
        actions: Sequence[ClusterAction],
        *,
        progress: Callable[[ClusterAction], None] | None = None,
    ) -> ActionResult:
        """Does the actions in their order of kinds and says what became of each.

        Raises:
            UnreachableError: the cluster does not answer; what was done stays done.
            TransientBrokerError: a broker asked to be tried again.
        """
        results: dict[str, ReplicatorError | None] = {}
        for kind in _ORDER:
            for chunk in _chunks([action for action in actions if isinstance(action, kind)]):
                async with self._throttler:
                    answers = await finished(self._call, chunk)
                for action in chunk:
                    results[action.identity] = answers.get(action.topic)
                    if progress is not None and results[action.identity] is None:
                        progress(action)
        for error in results.values():
            if isinstance(error, UnreachableError | TransientBrokerError):
                raise error
        return ActionResult(
            done=tuple(action for action in actions if results[action.identity] is None),
            refusals={
                action.identity: _problem(action, error)
                for action in actions
                if (error := results[action.identity]) is not None
            },
            created=frozenset(
                action.topic
                for action in actions
                if isinstance(action, CreateTopic) and results[action.identity] is None
            ),
        )

    def _call(self, actions: Sequence[ClusterAction]) -> Mapping[str, ReplicatorError | None]:
        """One request about topics of one kind of action; the answer by topic."""
        creations = [
            NewTopicSpec(item.topic, item.partitions, item.replication_factor, item.configs)
            for item in actions
            if isinstance(item, CreateTopic)
        ]
        if creations:
            return _forgiving(self._admin.create_topics(creations), AlreadyExistsError)
        totals = {item.topic: item.to_partitions for item in actions if isinstance(item, GrowTopic)}
        if totals:
            return self._admin.create_partitions(totals)
        settings = {
            item.topic: {change.name: change.to_value for change in item.settings}
            for item in actions
            if isinstance(item, AlterConfigs)
        }
        if settings:
            return self._admin.alter_topic_configs(settings)
        return _forgiving(
            self._admin.delete_topics([item.topic for item in actions]), NotFoundError
        )


def _forgiving(
    answers: Mapping[str, ReplicatorError | None], done: type[ReplicatorError]
) -> dict[str, ReplicatorError | None]:
    return {name: None if isinstance(error, done) else error for name, error in answers.items()}


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), ITEMS_PER_CALL):
        yield items[start : start + ITEMS_PER_CALL]


def _problem(action: ClusterAction, error: ReplicatorError) -> Problem:
    code = "NOT_AUTHORIZED" if error.code == "NOT_AUTHORIZED" else "TARGET_REFUSES"
    return Problem(
        code,
        action.source_topic,
        error.message,
        error.remedy or f"Change what {action.cluster} refuses, or exclude the topic.",
    )
