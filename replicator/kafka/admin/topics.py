"""Topics of a cluster: what there is, how it is set up, and changes to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from replicator.errors import NotAuthorizedError, ReplicatorError, UnreachableError
from replicator.kafka.admin.session import AdminSession, found
from replicator.wire.connection.live_brokers import require_live_brokers

Failures = dict[str, ReplicatorError | None]
"""For each topic that a change was tried on: None when it is done, else why not."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the cluster describes it.

    ``leaderless`` are the partitions without a leader, which can be neither read nor written.
    ``in_sync`` is how many replicas of each partition are in sync. ``authorized_operations`` are the names of what our user may do with it (READ, WRITE, ...).
    """

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    leaderless: tuple[int, ...]
    authorized_operations: frozenset[str]
    in_sync: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NewTopicSpec:
    """A topic to create; a replication factor of -1 is the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()


def topic_partitions(session: AdminSession) -> dict[str, int]:
    """All topics our user may see, with the number of their partitions; one cheap request.

    A topic whose metadata is not settled (it is being created or deleted) is left out.

    Raises:
        TransientBrokerError: the broker that answers knows of no live broker, so it may not know every topic.
        ReplicatorError: mapped.
    """
    metadata = session.direct(
        lambda client, timeout: client.list_topics(timeout=timeout), "list the topics"
    )
    require_live_brokers(metadata.brokers, session.cluster)
    return {
        name: len(topic.partitions)
        for name, topic in metadata.topics.items()
        if topic.error is None and topic.partitions
    }


def describe_topics(session: AdminSession, names: Iterable[str]) -> dict[str, TopicDescription]:
    """Describes topics; names that do not exist are absent from the answer."""
    return found(describe_each_topic(session, names))


def describe_each_topic(
    session: AdminSession, names: Iterable[str]
) -> dict[str, TopicDescription | ReplicatorError]:
    """Describes topics; each name has a description, or what the cluster says of that name.

    A name that is absent for lack of rights is a NotAuthorizedError, one that does not exist a
    NotFoundError: a listing cannot tell them apart. Where no broker answers, each name has that UnreachableError.
    """
    answers = session.each(
        sorted(set(names)),
        lambda chunk: session.client.describe_topics(
            TopicCollection(chunk),
            include_authorized_operations=True,
            request_timeout=session.timeout_seconds,
        ),
        doing=lambda name: f"describe topic {name}",
        asks_again=True,
    )
    described: dict[str, TopicDescription | ReplicatorError] = {}
    for name, topic in answers.items():
        if isinstance(topic, ReplicatorError):
            described[name] = topic
            continue
        leaderless = (
            part.id for part in topic.partitions if part.leader is None or part.leader.id < 0
        )
        described[name] = TopicDescription(
            name=name,
            topic_id=_as_kafka_writes_it(str(topic.topic_id)),
            partitions=len(topic.partitions),
            replication_factor=max((len(part.replicas) for part in topic.partitions), default=0),
            leaderless=tuple(sorted(leaderless)),
            authorized_operations=frozenset(
                each.name for each in topic.authorized_operations or ()
            ),
            in_sync=tuple((part.id, len(part.isr)) for part in topic.partitions),
        )
    return described


def require_answers(described: Mapping[str, TopicDescription | ReplicatorError]) -> None:
    """That no broker answers is no property of a topic; for callers who would take it for one.

    Raises:
        UnreachableError: the cluster did not answer about one of the names.
    """
    for answer in described.values():
        if isinstance(answer, UnreachableError):
            raise answer


def create_topics(session: AdminSession, specs: Iterable[NewTopicSpec]) -> Failures:
    """Creates topics; AlreadyExistsError for those that are there."""
    wanted = [
        NewTopic(
            spec.name,
            num_partitions=spec.partitions,
            replication_factor=spec.replication_factor,
            config=dict(spec.configs),
        )
        for spec in specs
    ]
    return session.each(
        wanted,
        lambda chunk: session.client.create_topics(chunk, **_limits(session)),
        doing=lambda name: f"create topic {name}",
    )


def refused_creations(session: AdminSession, names: Iterable[str]) -> frozenset[str]:
    """The topics that our user may not create; brokers are asked and create nothing."""
    answers = session.each(
        [NewTopic(name, num_partitions=1, replication_factor=1) for name in sorted(names)],
        lambda chunk: session.client.create_topics(chunk, validate_only=True, **_limits(session)),
        doing=lambda name: f"create topic {name}",
    )
    return frozenset(
        name for name, error in answers.items() if isinstance(error, NotAuthorizedError)
    )


def create_partitions(session: AdminSession, totals: Mapping[str, int]) -> Failures:
    """Grows topics to that many partitions in all."""
    return session.each(
        [NewPartitions(name, total) for name, total in sorted(totals.items())],
        lambda chunk: session.client.create_partitions(chunk, **_limits(session)),
        doing=lambda name: f"grow topic {name} to {totals[name]} partitions",
    )


def alter_topic_configs(
    session: AdminSession, changes: Mapping[str, Mapping[str, str | None]]
) -> Failures:
    """Sets or, with None, removes single settings; others of the topic stay."""
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            name,
            incremental_configs=[
                ConfigEntry(
                    key,
                    value,
                    incremental_operation=(
                        AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
                    ),
                )
                for key, value in sorted(settings.items())
            ],
        )
        for name, settings in sorted(changes.items())
        if settings
    ]
    answers = session.each(
        resources,
        lambda chunk: session.client.incremental_alter_configs(
            chunk, request_timeout=session.timeout_seconds
        ),
        doing=lambda resource: f"change settings of topic {resource.name}",
    )
    return {
        resource.name: answer if isinstance(answer, ReplicatorError) else None
        for resource, answer in answers.items()
    }


def delete_topics(session: AdminSession, names: Iterable[str]) -> Failures:
    """Deletes topics and all their records; NotFoundError for those that are not there."""
    return session.each(
        sorted(set(names)),
        lambda chunk: session.client.delete_topics(chunk, **_limits(session)),
        doing=lambda name: f"delete topic {name}",
    )


def _limits(session: AdminSession) -> dict[str, float]:
    # The broker is to answer when the change is known everywhere, but before we stop listening.
    seconds = session.timeout_seconds
    return {"request_timeout": seconds, "operation_timeout": seconds * 0.8}


def _as_kafka_writes_it(topic_id: str) -> str:
    """Kafka's tools use the URL-safe alphabet of base64, the library the other one."""
    return topic_id.replace("+", "-").replace("/", "_")
