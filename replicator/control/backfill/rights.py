"""Whether our user may copy history: asked before a partition is taken from its lane.

A task whose user lacks a right cannot do anything, and its partition waits meanwhile. So brokers are asked
what our user may do with each topic; where one says nothing, nothing is concluded, and the task finds out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicator.errors import NotAuthorizedError, ReplicatorError
from replicator.identifiers import ClusterAlias, checkpoints_topic, control_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import TopicDescription
from replicator.topology.file.secrets import resolve_security
from replicator.topology.plan import ClusterPlan, PairPlan, Plan

CLIENT_ID = "replicator-seed"
_NAMED = 3

Answers = Mapping[str, TopicDescription | ReplicatorError]


@dataclass(frozen=True, slots=True)
class Lacking:
    """A right that our user lacks: an operation of Kafka on a topic of a cluster."""

    alias: ClusterAlias
    topic: str
    operation: str

    def __str__(self) -> str:
        return f"{self.operation} on topic '{self.topic}' of {self.alias}"


def require_rights(plan: Plan, pair: PairPlan, topics: Mapping[str, str]) -> None:
    """Checks that our users may read what is copied, write the copies, and keep their progress.

    Args:
        plan: the topology.
        pair: whose clusters.
        topics: the target topic of each source topic.

    Raises:
        NotAuthorizedError: rights are missing; the first are named, with our user.
        ClusterError: a cluster does not answer.
    """
    own = control_topic(plan.topology)
    progress = checkpoints_topic(plan.topology, pair.source.alias)
    # Whether a record came from the target is asked of the source's registry of producers.
    registry = (own,) if any(map(plan.may_come_back, pair.flows)) else ()
    read = (*topics, *registry)
    wanted: tuple[tuple[ClusterPlan, dict[str, frozenset[str]]], ...] = (
        (pair.source, {name: frozenset({"READ"}) for name in read}),
        (
            pair.target,
            {name: frozenset({"WRITE"}) for name in topics.values()}
            | {name: frozenset({"READ", "WRITE"}) for name in (own, progress)},
        ),
    )
    for cluster, needed in wanted:
        with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
            found = lacking(cluster.alias, needed, admin.describe_each_topic(needed))
        if found:
            raise _refused(cluster, found)


def lacking(
    alias: ClusterAlias, needed: Mapping[str, frozenset[str]], answers: Answers
) -> list[Lacking]:
    """The rights that are missing, against what brokers say. Pure.

    A topic that does not exist lacks no right: that it is missing is said elsewhere.
    """
    found: list[Lacking] = []
    for topic, operations in needed.items():
        answer = answers.get(topic)
        granted = (
            answer.authorized_operations if isinstance(answer, TopicDescription) else frozenset()
        )
        hidden = isinstance(answer, NotAuthorizedError)  # our user may not even describe it
        if hidden or (granted and "ALL" not in granted):
            found.extend(Lacking(alias, topic, each) for each in sorted(operations - granted))
    return found


def _refused(cluster: ClusterPlan, found: Iterable[Lacking]) -> NotAuthorizedError:
    listed = [str(each) for each in found]
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    name = resolve_security(cluster).username
    login = f"; it logs in as '{name}'" if name else ""
    return NotAuthorizedError(
        f"our user lacks {', '.join(listed[:_NAMED])}{more}{login}. Nothing was taken from the workers",
        subject=f"cluster:{cluster.alias}",
        remedy="Allow it by ACLs (docs/security.md lists what is needed), then run it again.",
    )
