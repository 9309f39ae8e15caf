"""A cluster as it describes itself: its id, its brokers, and what our user may do with it.

confluent-kafka's call for it (2.16.0) does not survive a broker that knows of no broker yet, as one that starts:
an assertion of the library ends the process (``rd_kafka_DescribeClusterResponse_parse`` takes that answer for an
error, and returns none).
"""

import time
from dataclasses import dataclass

from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import any_broker, until_answered
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.protocol import MetadataRequest
from replicator.wire.requests.acl_operations import OPERATIONS

_VERSION = 10
"""The last that tells our rights on the cluster."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker as it advertises itself."""

    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """``controller`` is a broker id, None while there is none; operations are names (CREATE, ALTER, ...)."""

    cluster_id: str
    brokers: tuple[Broker, ...]
    controller: int | None
    authorized_operations: frozenset[str]


def describe_cluster(
    cluster: ClusterPlan, *, client_id: str, timeout_seconds: float = 10.0
) -> ClusterDescription:
    """Asks bootstrap servers by turns, until one knows the cluster.

    Raises:
        TransientBrokerError: those that answer know of no live broker.
        ReplicatorError: the cluster cannot be reached in time, or refuses our login.
    """
    deadline = time.monotonic() + timeout_seconds

    def ask() -> ClusterDescription:
        with any_broker(cluster, client_id=client_id, deadline=deadline) as connection:
            answer = connection.call(
                MetadataRequest(topics=[], include_cluster_authorized_operations=True),
                newest=_VERSION,
                deadline=deadline,
            )
        require_live_brokers(answer.brokers, cluster)
        return ClusterDescription(
            cluster_id=answer.cluster_id or "",
            brokers=tuple(
                Broker(each.node_id, each.host, each.port, each.rack)
                for each in sorted(answer.brokers, key=lambda each: each.node_id)
            ),
            controller=None if answer.controller_id < 0 else answer.controller_id,
            authorized_operations=frozenset(
                OPERATIONS[number]
                for number in answer.authorized_operations or ()
                if number in OPERATIONS
            ),
        )

    return until_answered(ask, deadline=deadline)
