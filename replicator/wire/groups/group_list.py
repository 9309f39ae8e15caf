"""Which consumer groups a cluster has, and whether these are all: each broker names only those that it coordinates.

confluent-kafka's call for it (2.16.1) gives what some brokers name and the errors of the others side by side. A group
whose coordinator is loading, moving or silent is then simply not there.
"""

import time
from dataclasses import dataclass
from typing import Any

from replicator.errors import ReplicatorError, TransientBrokerError, UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker, until_answered
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.protocol import ListGroupsRequest, MetadataRequest

_METADATA_VERSION = 9
_LIST_VERSION = 3
_OFFSETS_TOPIC = "__consumer_offsets"
_KINDS = frozenset({"", "consumer"})
"""Protocol types of consumer groups; without one are those that only commit. Others belong to Kafka Connect and the like."""

_PAUSE_SECONDS = 0.2
_ROUND_SECONDS = 2.0
"""With less time than that no other round is begun: it would find silence where there is none."""


@dataclass(frozen=True, slots=True)
class GroupsListed:
    """``names`` in order; ``unheard`` is why there may be others, None where these are all that our user may see."""

    names: tuple[str, ...]
    unheard: ReplicatorError | None = None


def list_groups(cluster: ClusterPlan, *, client_id: str, timeout_seconds: float) -> GroupsListed:
    """Asks every broker; those that do not answer, and a cluster that does not, again until the time is over.

    Raises:
        ReplicatorError: the cluster cannot be reached, or refuses us.
    """
    deadline = time.monotonic() + timeout_seconds
    last_round_at = deadline - min(_ROUND_SECONDS, timeout_seconds / 2)
    names, unheard = until_answered(
        lambda: _round(cluster, client_id, deadline), deadline=last_round_at
    )
    while unheard is not None and time.monotonic() + _PAUSE_SECONDS < last_round_at:
        time.sleep(_PAUSE_SECONDS)  # a coordinator loads, or another broker becomes it
        try:
            heard, unheard = _round(cluster, client_id, deadline)
        except (TransientBrokerError, UnreachableError) as error:
            unheard = error  # of a cluster that answered before
        else:
            names |= heard  # a group that moves between two answers is in neither
    return GroupsListed(tuple(sorted(names)), unheard)


def _round(
    cluster: ClusterPlan, client_id: str, deadline: float
) -> tuple[set[str], ReplicatorError | None]:
    names: set[str] = set()
    unheard: ReplicatorError | None = None
    with any_broker(cluster, client_id=client_id, deadline=deadline) as connection:
        topic = MetadataRequest.MetadataRequestTopic(name=_OFFSETS_TOPIC)
        request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        answer = connection.call(request, newest=_METADATA_VERSION, deadline=deadline)
    require_live_brokers(answer.brokers, cluster)
    for broker in answer.brokers:
        now = time.monotonic()
        soon = now + (deadline - now) / 2  # one that is silent leaves time for the others
        try:
            names |= _named(cluster, (broker.host, broker.port), client_id, soon)
        except (TransientBrokerError, UnreachableError) as error:
            unheard = error
    return names, unheard or _without_coordinator(cluster, answer.topics)


def _named(
    cluster: ClusterPlan, address: tuple[str, int], client_id: str, deadline: float
) -> set[str]:
    with BrokerConnection(cluster, address, client_id=client_id, deadline=deadline) as connection:
        answer = connection.call(ListGroupsRequest(), newest=_LIST_VERSION, deadline=deadline)
    if answer.error_code:
        raise code_error(
            answer.error_code,
            subject=f"cluster:{cluster.alias}",
            doing=f"list the consumer groups of {address[0]}:{address[1]}",
            right="DESCRIBE on the cluster",
        )
    return {each.group_id for each in answer.groups if each.protocol_type in _KINDS}


def _without_coordinator(cluster: ClusterPlan, topics: list[Any]) -> ReplicatorError | None:
    """Groups whose part of the offsets topic nobody leads are named by no broker."""
    lost = [
        part.partition_index
        for topic in topics
        if not topic.error_code  # not made yet, or hidden from our user
        for part in topic.partitions
        if part.leader_id < 0
    ]
    if not lost:
        return None
    some = ", ".join(map(str, sorted(lost)[:5])) + (", ..." if len(lost) > 5 else "")
    return TransientBrokerError(
        f"{len(lost)} partitions of {_OFFSETS_TOPIC} have no leader ({some}): groups there have no coordinator",
        subject=f"cluster:{cluster.alias}",
        remedy="Bring the brokers back that hold their replicas.",
    )
