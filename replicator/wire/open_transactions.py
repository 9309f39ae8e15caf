"""Which transactions hold back the last stable offset of partitions, by name where we may know it."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection import BrokerConnection
from replicator.wire.errors import code_error
from replicator.wire.leader import any_broker, leader_of
from replicator.wire.protocol import (
    DescribeProducersRequest,
    ListTransactionsRequest,
    MetadataRequest,
)

_METADATA_VERSION = 9


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open on a partition since an offset.

    ``transactional_id`` is empty where no coordinator names it to us; ``written_ms`` is when its
    producer last wrote there.
    """

    topic: str
    partition: int
    offset: int
    producer_id: int
    written_ms: int
    transactional_id: str = ""

    def words(self) -> str:
        """For people."""
        who = self.transactional_id or f"of producer {self.producer_id}"
        return f"transaction {who} is open on {self.topic}/{self.partition} from {self.offset}"


def open_transactions(
    cluster: ClusterPlan,
    partitions: Iterable[TopicPartition],
    *,
    client_id: str,
    timeout_seconds: float = 10.0,
) -> tuple[OpenTransaction, ...]:
    """The open transactions of some partitions; asks one leader after the other.

    Raises:
        NotAuthorizedError: our user lacks READ on a topic.
        ReplicatorError: the cluster does not answer, or is older than Kafka 2.8.
    """
    deadline = time.monotonic() + timeout_seconds
    found: list[OpenTransaction] = []
    for topic, number in sorted(set(partitions)):
        with leader_of(cluster, topic, number, client_id=client_id, deadline=deadline) as leader:
            found += _of_partition(leader, cluster, topic, number, deadline)
    try:
        names = _names(cluster, {one.producer_id for one in found}, client_id, deadline)
    except ReplicatorError:
        names = {}  # who it is helps, that it is open is what counts
    return tuple(
        OpenTransaction(
            one.topic, one.partition, one.offset, one.producer_id, one.written_ms,
            names.get(one.producer_id, ""),
        )
        for one in found
    )  # fmt: skip


def _of_partition(
    leader: BrokerConnection, cluster: ClusterPlan, topic: str, number: int, deadline: float
) -> list[OpenTransaction]:
    wanted = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[number])]
    )
    answer = leader.call(wanted, newest=0, deadline=deadline)
    (part,) = answer.topics[0].partitions
    if part.error_code:
        raise code_error(
            part.error_code, subject=f"cluster:{cluster.alias}",
            doing=f"describe the producers of {topic}/{number}",
        )  # fmt: skip
    return [
        OpenTransaction(
            topic, number, one.current_txn_start_offset, one.producer_id, one.last_timestamp
        )
        for one in part.active_producers
        if one.current_txn_start_offset >= 0
    ]


def _names(
    cluster: ClusterPlan, producers: set[int], client_id: str, deadline: float
) -> dict[int, str]:
    """Transactional ids by producer id, as far as coordinators name them to our user."""
    if not producers:
        return {}
    with any_broker(cluster, client_id=client_id, deadline=deadline) as connection:
        wanted = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        brokers = connection.call(wanted, newest=_METADATA_VERSION, deadline=deadline).brokers
    found: dict[int, str] = {}
    for broker in brokers:
        address = (broker.host, broker.port)
        with BrokerConnection(cluster, address, client_id=client_id, deadline=deadline) as one:
            listing = ListTransactionsRequest(
                state_filters=[], producer_id_filters=sorted(producers)
            )
            answer = one.call(listing, newest=0, deadline=deadline)
            found.update({each.producer_id: each.transactional_id
                          for each in answer.transaction_states})  # fmt: skip
    return found
