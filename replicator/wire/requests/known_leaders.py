"""Who leads partitions, by every broker of a cluster: one alone may know nothing of what happened since.

A broker that is cut off from the controllers, or has just woken up, answers as before: it is the leader of what it
led, and its log ends where it ended. What it says is right in all but the time.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.leader import split_address
from replicator.wire.connection.topic_questions import told_leaders, topics_question

_METADATA_VERSION = 12
_BROKER_SECONDS = 2.0

_Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class KnownLeader:
    """The newest that any broker knows of a partition; ``topic_id`` as Kafka writes it, empty where brokers have none.

    ``leader_epoch`` is -1 where brokers tell no epochs.
    """

    topic_id: str
    leader_epoch: int


@dataclass(slots=True)
class KnownLeaders:
    """What the brokers of a cluster know.

    Attributes:
        leaders: all that is known of a partition, which is more than one only while brokers disagree.
        silent: brokers that others name and that did not answer, as ``host:port``, with the reason.
    """

    leaders: dict[TopicPartition, set[KnownLeader]] = field(default_factory=dict)
    silent: dict[str, ReplicatorError] = field(default_factory=dict)

    def newest(self, place: TopicPartition, topic_id: str) -> int:
        """The newest epoch that any broker knows of a partition of the topic with that id; -1 where none does."""
        known = self.leaders.get(place, ())
        return max((each.leader_epoch for each in known if each.topic_id == topic_id), default=-1)

    def disagree(self, place: TopicPartition) -> bool:
        """Whether brokers know different leaders of a partition, or different topics."""
        return len(self.leaders.get(place, ())) > 1

    def topic_ids(self, place: TopicPartition) -> set[str]:
        """The ids under which brokers know the partition's topic."""
        return {each.topic_id for each in self.leaders.get(place, ())}


def known_leaders(
    cluster: ClusterPlan,
    places: Collection[TopicPartition],
    *,
    client_id: str,
    timeout_seconds: float = 10.0,
) -> KnownLeaders:
    """Asks each bootstrap server, and each broker that any of those names.

    Raises:
        ReplicatorError: no broker answers.
    """
    deadline = time.monotonic() + timeout_seconds
    found = KnownLeaders()
    topics = sorted({topic for topic, _ in places})
    wanted = frozenset(places)
    named: set[_Address] = set()
    asked: dict[_Address, ReplicatorError | None] = {}
    waiting = [split_address(server) for server in cluster.bootstrap_servers]
    while waiting:
        address = waiting.pop(0)
        until = min(deadline, time.monotonic() + _BROKER_SECONDS)
        try:
            answer, brokers = _ask(cluster, address, topics, client_id, until)
        except ReplicatorError as error:
            asked[address] = error
            continue
        asked[address] = None
        for place in answer.keys() & wanted:
            found.leaders.setdefault(place, set()).add(answer[place])
        named |= brokers
        waiting += sorted(brokers - asked.keys() - set(waiting))
    if all(asked.values()):
        raise next(error for error in asked.values() if error is not None)
    found.silent = {
        f"{host}:{port}": error
        for (host, port), error in asked.items()
        if error is not None and (host, port) in named
    }
    return found


def _ask(
    cluster: ClusterPlan,
    address: _Address,
    topics: Collection[str],
    client_id: str,
    deadline: float,
) -> tuple[Mapping[TopicPartition, KnownLeader], set[_Address]]:
    request = topics_question(topics)
    with BrokerConnection(cluster, address, client_id=client_id, deadline=deadline) as connection:
        answer = connection.call(request, newest=_METADATA_VERSION, deadline=deadline)
    known = {
        place: KnownLeader(leader.topic_id, leader.epoch)
        for place, leader in told_leaders(answer).items()
    }
    return known, {(broker.host, broker.port) for broker in answer.brokers}
