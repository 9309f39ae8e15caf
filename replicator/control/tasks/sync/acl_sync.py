"""Rights of a pair, carried over: reads both sides, decides, adds what is missing, gently.

A cluster without an authorizer and a right of our own that is missing are problems with a remedy,
not errors: records go on, and the next round looks again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog
from asyncio_throttle.throttler import Throttler

from replicator.blocking import finished
from replicator.control.reconcile.acl_decision import AddAcl, decide_acls
from replicator.control.reconcile.topic_selection import selected_topics
from replicator.errors import (
    AuthorizerMissingError,
    NotAuthorizedError,
    ReplicatorError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.policy.copies.acl_rules import AclBinding
from replicator.problem import Problem
from replicator.topology.plan import ClusterPlan, PairPlan, Plan

CALLS_PER_SECOND = 5
BINDINGS_PER_CALL = 20
"""Each right is a record in the cluster's metadata; thousands of them must not come as a storm."""

LOGGER = structlog.get_logger("replicator.control")


@dataclass(frozen=True, slots=True)
class AclOutlook:
    """What would be added, and what stands in the way."""

    actions: tuple[AddAcl, ...] = ()
    problems: tuple[Problem, ...] = ()


class AclSync:
    """Rights of one ordered pair; keeps nothing between rounds."""

    def __init__(
        self, plan: Plan, pair: PairPlan, *, source: ClusterAdmin, target: ClusterAdmin
    ) -> None:
        self._plan = plan
        self._pair = pair
        self._source = source
        self._target = target
        self._throttle = Throttler(rate_limit=CALLS_PER_SECOND, period=1.0)

    def look(self) -> AclOutlook:
        """What the target lacks now; writes nothing. Blocking.

        Raises:
            ReplicatorError: a cluster does not answer.
        """
        if not acls_wanted(self._pair):
            return AclOutlook()
        from replicator.wire.requests.topic_acls import topic_acls

        held: list[frozenset[AclBinding]] = []
        problems: list[Problem] = []
        for cluster in (self._pair.source, self._pair.target):
            try:
                held.append(topic_acls(cluster))
            except (AuthorizerMissingError, NotAuthorizedError) as error:
                problems.append(self._unreadable(cluster, error))
        if problems:
            return AclOutlook(problems=tuple(problems))
        aliases = [cluster.alias for cluster in self._plan.clusters]
        wanted = selected_topics(self._pair, self._source.topic_partitions(), aliases)
        return AclOutlook(decide_acls(self._pair, wanted, source=held[0], target=held[1]))

    async def run_once(
        self, progress: Callable[[AddAcl], None] = lambda _: None
    ) -> tuple[Problem, ...]:
        """Adds what is missing; returns what could not be done.

        Raises:
            ReplicatorError: a cluster does not answer; what was added stays.
        """
        outlook = await finished(self.look)
        refused: list[tuple[AddAcl, ReplicatorError]] = []
        for start in range(0, len(outlook.actions), BINDINGS_PER_CALL):
            chunk = outlook.actions[start : start + BINDINGS_PER_CALL]
            async with self._throttle:
                answers = await finished(
                    self._target.create_acls, [action.binding for action in chunk]
                )
            for action in chunk:
                error = answers[action.binding]
                if isinstance(error, UnreachableError | TransientBrokerError):
                    raise error
                if error is not None:
                    refused.append((action, error))
                    continue
                progress(action)
                LOGGER.info("acl added", flow=self._pair.id, acl=str(action.changes()[0].to_value),
                            topic=action.binding.shown, reason=action.reason)  # fmt: skip
        return (*outlook.problems, *self._refusals(refused))

    def _unreadable(self, cluster: ClusterPlan, error: ReplicatorError) -> Problem:
        # Not about the cluster: a problem of that kind says that it cannot be worked with at all.
        alias = cluster.alias
        right = "DESCRIBE" if cluster is self._pair.source else "ALTER"
        remedy = (
            error.remedy
            if isinstance(error, AuthorizerMissingError)
            else f"Allow {right} on the cluster resource for the user of {alias}, "
            "or set sync.acls to false."
        )
        return Problem(error.code, _subject(self._pair), f"{alias}: {error.message}", remedy)

    def _refusals(self, refused: Iterable[tuple[AddAcl, ReplicatorError]]) -> list[Problem]:
        """One problem for each kind of refusal: a missing right concerns every ACL alike."""
        kinds: dict[str, list[tuple[AddAcl, ReplicatorError]]] = {}
        for action, error in refused:
            kinds.setdefault(error.code, []).append((action, error))
        problems: list[Problem] = []
        for code, found in kinds.items():
            action, error = found[0]
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            remedy = (
                f"Allow ALTER on the cluster resource for the user of {action.cluster}, "
                "or set sync.acls to false."
                if isinstance(error, NotAuthorizedError)
                else error.remedy or "Add them by hand, or set sync.acls to false."
            )
            detail = f"{action.cluster}: {error.message}{more}"
            problems.append(Problem(code, _subject(self._pair), detail, remedy))
        return problems


def acls_wanted(pair: PairPlan) -> bool:
    """Whether any link of the pair carries rights over."""
    return any(flow.policy.sync_acls for flow in pair.flows)


def _subject(pair: PairPlan) -> str:
    return next(flow.link for flow in pair.flows if flow.policy.sync_acls)
