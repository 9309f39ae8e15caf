"""Whether the brokers of a cluster can do what replication rests on."""

import time
from collections.abc import Mapping

from replicator.errors import UnsupportedBrokerError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import any_broker

Versions = Mapping[int, tuple[int, int]]
"""For each request (by its API key) the oldest and newest version a broker knows."""

NEEDED: Mapping[int, tuple[str, int, str]] = {
    0: ("Produce", 8, "exact reasons for refused records (Kafka 2.4)"),
    1: ("Fetch", 11, "leader epochs, to notice lost data (Kafka 2.3)"),
    2: ("ListOffsets", 5, "leader epochs (Kafka 2.3)"),
    3: ("Metadata", 10, "topic ids, to notice recreated topics (Kafka 2.8)"),
    9: ("OffsetFetch", 7, "stable group positions (Kafka 2.5)"),
    22: ("InitProducerId", 3, "fencing of replaced owners (Kafka 2.5)"),
    24: ("AddPartitionsToTxn", 1, "transactions"),
    26: ("EndTxn", 1, "transactions"),
    44: ("IncrementalAlterConfigs", 0, "changing single settings (Kafka 2.3)"),
    60: ("DescribeCluster", 0, "rights and controller (Kafka 2.8)"),
}
"""API key -> name, the newest version that must be known, and what for."""

_CLIENT = "replicator-versions"


def missing_features(versions: Versions) -> tuple[str, ...]:
    """What a broker with these versions lacks, in words; empty when it has everything."""
    return tuple(
        f"{name} version {needed}: {purpose}"
        for key, (name, needed, purpose) in NEEDED.items()
        if versions.get(key, (0, -1))[1] < needed
    )


def broker_versions(cluster: ClusterPlan, *, timeout_seconds: float = 10.0) -> Versions:
    """Asks one broker which versions of which requests it knows.

    Raises:
        ReplicatorError: the cluster cannot be reached, or refuses our login.
    """
    deadline = time.monotonic() + timeout_seconds
    with any_broker(cluster, client_id=_CLIENT, deadline=deadline) as connection:
        return connection.versions


def require_supported(cluster: ClusterPlan, *, timeout_seconds: float = 10.0) -> None:
    """Does nothing when the cluster can be replicated from and to.

    Raises:
        UnsupportedBrokerError: its brokers lack something; says what.
        ReplicatorError: the cluster cannot be reached, or refuses our login.
    """
    missing = missing_features(broker_versions(cluster, timeout_seconds=timeout_seconds))
    if missing:
        raise UnsupportedBrokerError(
            f"the brokers lack {'; '.join(missing)}",
            subject=f"cluster:{cluster.alias}",
            remedy="Use a cluster of Kafka 3.0 or later.",
        )
