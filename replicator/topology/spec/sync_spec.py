"""What is carried over besides records: topic settings, rights, group positions, history."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from replicator.topology.spec.fields import Duration, Setting, Size, Spec, complaint, shown

MAX_REPLICATION_FACTOR = 32


def _replication_factor(value: object) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        if 1 <= value <= MAX_REPLICATION_FACTOR:
            return value
        raise complaint(f"{value} is out of bounds", f"give auto, or 1 to {MAX_REPLICATION_FACTOR}")
    raise complaint(f"{shown(value)} is not a replication factor", "write auto or a number")


ReplicationFactor = Annotated[
    int | None,
    BeforeValidator(_replication_factor),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "auto"},
                {"type": "integer", "minimum": 1, "maximum": MAX_REPLICATION_FACTOR},
            ]
        }
    ),
]


class TopicSyncSpec(Spec):
    """What is carried over about topics."""

    configs: bool | None = None
    """Topic settings follow the source, less the excluded ones; default true."""
    partitions: bool | None = None
    """Topics on the target grow with the source; default true."""
    deletions: Literal["keep", "propagate"] | None = None
    """Whether a topic deleted at the source is deleted on the target; default keep."""
    replication_factor: ReplicationFactor = None
    """Replicas on the target; default auto: the source's, at least 3, at most its brokers."""
    overrides: dict[str, Setting] | None = None
    """Topic settings on the target that differ on purpose, by Kafka's names."""


class GroupSyncSpec(Spec):
    """How consumer-group positions are carried over."""

    enabled: bool | None = None
    """Default true."""
    interval: Annotated[float, Duration(least="100ms", most="1h")] | None = None
    """How often; default 5s."""
    rewind: Literal["never", "follow"] | None = None
    """Whether a group on the target goes back when the source's does; default never."""


class SyncSpec(Spec):
    """What is carried over besides records."""

    topics: TopicSyncSpec | None = None
    """Topics: settings, partitions, deletions, replicas."""
    acls: bool | None = None
    """Rights, literal and prefixed; WRITE is never copied, ALL becomes READ; default false."""
    groups: GroupSyncSpec | None = None
    """Consumer-group positions."""


class BulkSyncSpec(Spec):
    """Whether history is copied by Spark before the live flow takes over."""

    mode: Literal["auto", "always", "never"] | None = None
    """Default never; auto copies in bulk what is larger than the threshold."""
    threshold: Annotated[int, Size(least="1MB", most="1000TB")] | None = None
    """Default 10GB."""
