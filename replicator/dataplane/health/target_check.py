"""Which target partitions take no writes now: asked where a unit of progress cannot be stored.

The producer does not say it. What a partition without a leader or with too few replicas in sync refuses
is retried inside the client, and of a transaction that lacks a right only the whole is refused. So the
cluster is asked about the partitions themselves; also to learn, without writing, that one has healed.
"""

from collections.abc import Iterable

from replicator.errors import (
    NotAuthorizedError,
    NotFoundError,
    ReplicatorError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import TopicDescription, require_answers

MIN_IN_SYNC = "min.insync.replicas"


def unwritable_partitions(
    admin: ClusterAdmin, places: Iterable[TopicPartition]
) -> dict[TopicPartition, ReplicatorError]:
    """The target partitions among ``places`` that take no writes, and why. Blocking.

    Raises:
        ReplicatorError: the cluster does not answer.
    """
    asked = sorted(set(places))
    names = sorted({topic for topic, _ in asked})
    described = admin.describe_each_topic(names)
    require_answers(described)
    needed = {name: _in_sync_needed(admin, name, described.get(name)) for name in names}
    refusals: dict[TopicPartition, ReplicatorError] = {}
    for place in asked:
        refusal = write_refusal(place, described.get(place[0]), in_sync_needed=needed[place[0]])
        if refusal is not None:
            refusals[place] = refusal
    return refusals


def write_refusal(
    place: TopicPartition, topic: TopicDescription | ReplicatorError | None, *, in_sync_needed: int
) -> ReplicatorError | None:
    """Why a partition takes no writes; None where it does, or where nothing is known. Pure.

    Args:
        place: topic and partition on the target.
        topic: what the target says of the topic.
        in_sync_needed: how many replicas must be in sync for a write.
    """
    name, partition = place
    subject = f"{name}/{partition}"
    if topic is None:
        return None
    if isinstance(topic, NotFoundError):
        return NotFoundError(
            f"'{name}' does not exist on the target",
            subject=subject,
            remedy="Create it again, or exclude the topic; see the problems of the topic.",
        )
    if isinstance(topic, ReplicatorError):
        return topic
    if topic.authorized_operations and not topic.authorized_operations & {"WRITE", "ALL"}:
        return NotAuthorizedError(
            f"cannot write to '{name}': the target refuses it to our user",
            subject=subject,
            remedy="Allow WRITE by an ACL on the topic.",
        )
    if partition in topic.leaderless:
        return TransientBrokerError(
            f"cannot write to {subject}: the partition has no leader on the target",
            subject=subject,
            remedy="Bring the brokers back that hold its replicas; it is tried again by itself.",
        )
    in_sync = dict(topic.in_sync).get(partition)
    # A topic with fewer replicas than that needs all of them.
    needed = min(in_sync_needed, topic.replication_factor)
    if in_sync is not None and in_sync < needed:
        return TransientBrokerError(
            f"cannot write to {subject}: {in_sync} of its replicas are in sync on the target, "
            f"{needed} are needed",
            subject=subject,
            remedy="Bring the missing brokers back; it is tried again by itself.",
        )
    return None


def _in_sync_needed(
    admin: ClusterAdmin, name: str, topic: TopicDescription | ReplicatorError | None
) -> int:
    """The topic's setting; 1 where it makes no difference, or may not be read.

    Raises:
        ReplicatorError: nobody answered, which says nothing of the setting.
    """
    if not isinstance(topic, TopicDescription) or all(
        count >= topic.replication_factor for _, count in topic.in_sync
    ):
        return 1
    try:
        setting = admin.topic_configs([name]).get(name, {}).get(MIN_IN_SYNC)
    except (UnreachableError, TransientBrokerError):
        raise
    except ReplicatorError:
        return 1
    return 1 if setting is None else int(setting.value or 1)
