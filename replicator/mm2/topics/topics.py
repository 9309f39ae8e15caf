"""MirrorMaker 2's topics on a cluster: made as it makes them, and never somebody else's."""

from replicator.errors import RefusedError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic

_POLICY = "cleanup.policy"


def ensure_mm2_topic(admin: ClusterAdmin, name: str) -> None:
    """Creates the topic with one partition, compacted, unless it is there.

    ``heartbeats`` may well be the name of a topic with data in it. MirrorMaker 2's own is always
    compacted, so one that is not is left alone.

    Raises:
        RefusedError: a topic of that name is somebody else's.
        ReplicatorError: the cluster refuses, or is not ready in time.
    """
    ensure_compacted_topic(admin, name, partitions=1)
    policy = admin.topic_configs([name]).get(name, {}).get(_POLICY)
    if policy is not None and "compact" not in (policy.value or ""):
        alias = admin.cluster.alias
        raise RefusedError(
            f"topic {name} on {alias} is not MirrorMaker 2's: its {_POLICY} is {policy.value}",
            subject=f"cluster:{alias}",
            remedy=f"Rename it, or set {_POLICY}=compact if only heartbeats are in it.",
        )
