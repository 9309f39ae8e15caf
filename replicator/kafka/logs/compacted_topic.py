"""Making sure that a compacted topic exists, whichever process needs it first."""

import time

from replicator.errors import (
    TRIED_AGAIN,
    AlreadyExistsError,
    NotFoundError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec, TopicDescription

_REPLICAS = 3
_SEGMENT_BYTES = 16 * 1024 * 1024
_STEP_SECONDS = 0.05
_SIGHT_SECONDS = 2.0


def compacted_configs(replicas: int) -> tuple[tuple[str, str], ...]:
    """Settings of a control topic with that many replicas.

    Segments are small and compacted early: readers go through the whole topic when they start. With
    three replicas two must have a record before it counts, so that losing one broker loses nothing.
    """
    return (
        ("cleanup.policy", "compact"),
        ("compression.type", "producer"),
        ("delete.retention.ms", "86400000"),
        ("max.compaction.lag.ms", "3600000"),
        ("min.cleanable.dirty.ratio", "0.1"),
        ("min.insync.replicas", str(max(1, min(2, replicas - 1)))),
        ("segment.bytes", str(_SEGMENT_BYTES)),
    )


def ensure_compacted_topic(
    admin: ClusterAdmin,
    name: str,
    *,
    partitions: int,
    timeout_seconds: float = 30.0,
) -> TopicDescription:
    """Creates the topic or grows it, and waits until every partition has a leader.

    Any number of processes may do this at the same time. Partitions are never taken away: the
    answer may have more than asked for. It gets three replicas, or fewer where there are fewer brokers.

    Raises:
        ReplicatorError: the cluster refuses, or is not ready in time.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        found = admin.describe_topics([name]).get(name)
        if found is None:
            replicas = min(_REPLICAS, len(admin.describe_cluster().brokers))
            spec = NewTopicSpec(name, partitions, replicas, compacted_configs(replicas))
            failure = admin.create_topics([spec])[name]
        elif found.partitions < partitions:
            failure = admin.create_partitions({name: partitions})[name]
            if failure is not None and _grown(admin, name, partitions):
                continue  # somebody else grew it; the broker says so as an invalid request
        elif found.leaderless:
            failure = None
        else:
            return found
        passing = (AlreadyExistsError, NotFoundError, TransientBrokerError, UnreachableError)
        if failure is not None and not isinstance(failure, passing):
            raise failure
        if time.monotonic() >= deadline:
            if failure is not None and not isinstance(failure, AlreadyExistsError):
                raise failure
            raise TransientBrokerError(
                f"topic {name} is not ready after {timeout_seconds:g} seconds",
                subject=f"cluster:{admin.cluster.alias}",
                remedy=f"Look for partitions without a leader. {TRIED_AGAIN}",
            )
        time.sleep(_STEP_SECONDS)  # a topic becomes ready without an event: look again


def _grown(admin: ClusterAdmin, name: str, partitions: int) -> bool:
    """Whether somebody else grew it: brokers show that a moment after the controller knows it."""
    deadline = time.monotonic() + _SIGHT_SECONDS
    while True:
        found = admin.describe_topics([name]).get(name)
        if found is not None and found.partitions >= partitions:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_STEP_SECONDS)  # a broker learns of new partitions without telling: look again
