"""Which transactions hold back the last stable offset of partitions, by name where we may know it.

The leaders know the producers and where their transactions begin; the name of a transaction and its age
are the coordinators' to tell, and only to those who may DESCRIBE the transactional id.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.protocol import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from replicator.wire.connection.topic_questions import topics_question

_METADATA_VERSION = 9

_Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open on a partition since an offset.

    ``transactional_id`` is empty where no coordinator names it to us; ``written_ms`` is when its
    producer last wrote there, ``since_ms`` when it began, -1 where nobody tells us.
    """

    topic: str
    partition: int
    offset: int
    producer_id: int
    written_ms: int
    transactional_id: str = ""
    since_ms: int = -1

    @property
    def known_since_ms(self) -> int:
        """When it began, or a moment at which it was open."""
        return self.since_ms if self.since_ms > 0 else self.written_ms

    def words(self) -> str:
        """For people."""
        who = self.transactional_id or f"of producer {self.producer_id}"
        return f"transaction {who} is open on {self.topic}/{self.partition} from {self.offset}"

    def age_words(self, *, now_ms: int) -> str:
        """For people who wait for it: since when, whose, how old."""
        since_ms = self.known_since_ms
        since = datetime.fromtimestamp(since_ms / 1000, UTC).isoformat(timespec="seconds")
        whose = (
            f"transactional id '{self.transactional_id}'"
            if self.transactional_id
            else f"producer id {self.producer_id}, whose transactional id may not be seen"
        )
        age_seconds = max(0, now_ms - since_ms) // 1000
        return f"open source transaction since {since}, {whose}, age {age_seconds} s"


def open_transactions(
    cluster: ClusterPlan,
    partitions: Iterable[TopicPartition],
    *,
    client_id: str,
    timeout_seconds: float = 10.0,
) -> tuple[OpenTransaction, ...]:
    """The open transactions of some partitions; asks each leader once. Blocking.

    Raises:
        NotAuthorizedError: our user lacks READ on a topic.
        ReplicatorError: the cluster does not answer, or is older than Kafka 2.8.
    """
    wanted = frozenset(partitions)
    if not wanted:
        return ()
    deadline = time.monotonic() + timeout_seconds
    with any_broker(cluster, client_id=client_id, deadline=deadline) as connection:
        led, brokers = _leaders(connection, cluster, wanted, deadline)
    found: list[OpenTransaction] = []
    for address, topics in led.items():
        with BrokerConnection(cluster, address, client_id=client_id, deadline=deadline) as leader:
            found += _of_leader(leader, cluster, topics, deadline)
    names: dict[int, tuple[str, int]] = {}
    producers = sorted({one.producer_id for one in found})
    for address in brokers if producers else ():
        try:
            with BrokerConnection(cluster, address, client_id=client_id, deadline=deadline) as one:
                names.update(_names(one, producers, deadline))
        except ReplicatorError:
            continue  # who it is helps, that it is open is what counts
    return tuple(
        replace(one, transactional_id=names[one.producer_id][0], since_ms=names[one.producer_id][1])
        if one.producer_id in names
        else one
        for one in sorted(found, key=lambda one: (one.topic, one.partition, one.offset))
    )


def who_holds(
    cluster: ClusterPlan, place: TopicPartition, *, client_id: str, timeout_seconds: float = 3.0
) -> str:
    """Whose transaction hides the end of a partition, for people; empty where nobody says it. Blocking."""
    try:
        found = open_transactions(
            cluster, [place], client_id=client_id, timeout_seconds=timeout_seconds
        )
    except ReplicatorError:
        return ""
    first = oldest_by_partition(found).get(place)
    if first is None:
        return ""
    if first.transactional_id:
        return f"transactional id '{first.transactional_id}'"
    return f"producer id {first.producer_id}"


def oldest_by_partition(
    found: Iterable[OpenTransaction],
) -> dict[TopicPartition, OpenTransaction]:
    """Of each partition the transaction that begins first: it holds back all that follows."""
    oldest: dict[TopicPartition, OpenTransaction] = {}
    for one in found:
        known = oldest.get((one.topic, one.partition))
        if known is None or one.offset < known.offset:
            oldest[one.topic, one.partition] = one
    return oldest


def _leaders(
    connection: BrokerConnection,
    cluster: ClusterPlan,
    wanted: frozenset[TopicPartition],
    deadline: float,
) -> tuple[dict[_Address, dict[str, list[int]]], list[_Address]]:
    """The partitions by the address of their leader, and the addresses of all brokers."""
    request = topics_question(sorted({topic for topic, _ in wanted}))
    answer = connection.call(request, newest=_METADATA_VERSION, deadline=deadline)
    require_live_brokers(answer.brokers, cluster)
    brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
    places: dict[_Address, dict[str, list[int]]] = {}
    for topic in answer.topics:
        if topic.error_code:
            raise code_error(
                topic.error_code, subject=f"cluster:{cluster.alias}",
                doing=f"find the leaders of {topic.name}",
            )  # fmt: skip
        for part in topic.partitions:
            if (topic.name, part.partition_index) in wanted and part.leader_id in brokers:
                led = places.setdefault(brokers[part.leader_id], {})
                led.setdefault(topic.name, []).append(part.partition_index)
    return places, list(brokers.values())


def _of_leader(
    leader: BrokerConnection,
    cluster: ClusterPlan,
    topics: Mapping[str, list[int]],
    deadline: float,
) -> list[OpenTransaction]:
    kind = DescribeProducersRequest.TopicRequest
    wanted = DescribeProducersRequest(
        topics=[kind(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
    )
    answer = leader.call(wanted, newest=0, deadline=deadline)
    found: list[OpenTransaction] = []
    for topic in answer.topics:
        for part in topic.partitions:
            if part.error_code:
                raise code_error(
                    part.error_code, subject=f"cluster:{cluster.alias}",
                    doing=f"describe the producers of {topic.name}/{part.partition_index}",
                )  # fmt: skip
            found += [
                OpenTransaction(
                    topic.name, part.partition_index, one.current_txn_start_offset,
                    one.producer_id, one.last_timestamp,
                )
                for one in part.active_producers
                if one.current_txn_start_offset >= 0
            ]  # fmt: skip
    return found


def _names(
    connection: BrokerConnection, producers: list[int], deadline: float
) -> dict[int, tuple[str, int]]:
    """Transactional id and beginning (-1 if not told) by producer id, of what a broker coordinates."""
    listing = ListTransactionsRequest(state_filters=[], producer_id_filters=producers)
    listed = connection.call(listing, newest=0, deadline=deadline)
    names = {each.producer_id: each.transactional_id for each in listed.transaction_states}
    if not names:
        return {}
    described = connection.call(
        DescribeTransactionsRequest(transactional_ids=sorted(names.values())),
        newest=0, deadline=deadline,
    )  # fmt: skip
    since = {
        each.transactional_id: each.transaction_start_time_ms
        for each in described.transaction_states
        if each.error_code == 0
    }
    return {producer: (name, since.get(name, -1)) for producer, name in names.items()}
