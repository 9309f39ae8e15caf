"""Who leads small logs of one cluster, by several of its brokers, and a connection to each.

A broker that is cut off from the controllers answers as before: it leads what it led. So the word of one is not
enough where what a log does not hold decides something.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from replicator.backoff import Backoff
from replicator.errors import ReplicatorError, TransientBrokerError, UnreachableError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import split_address
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.topic_questions import (
    OFFSETS_VERSION,
    Leader,
    offsets_question,
    told_leaders,
    told_offsets,
    topics_question,
)

MOST_ASKED = 5
"""So many brokers are asked at most: first those that hold the logs, which are spread over racks."""

LEFT_OUT = Backoff(5.0, 300.0)
"""For so long a broker that did not answer is not asked again: it may be one that cannot be reached from here at all."""

_BROKER_SECONDS = 5.0
_METADATA_VERSION = 12
_NO_TOPIC, _NO_LEADER = 3, 5

_Address = tuple[str, int]


class NewestLeaders:
    """For one thread. A log of its own would connect twice: to ask who leads it, and to its leader."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str) -> None:
        self._cluster = cluster
        self._client_id = client_id
        self._subject = f"cluster:{cluster.alias}"
        self._connections: dict[_Address, BrokerConnection] = {}
        self._known: dict[TopicPartition, set[Leader]] = {}
        self._whom: list[_Address] = []
        self._silent: dict[_Address, tuple[int, float]] = {}
        """How often in a row a broker did not answer, and when it is asked again."""

    def look(self, places: Collection[TopicPartition], *, deadline: float) -> None:
        """Asks who leads these partitions now; what was known of others stays.

        Raises:
            ReplicatorError: no broker answers, or none lets us ask.
        """
        answers = self._answers(sorted({topic for topic, _ in places}), deadline)
        said = [told_leaders(answer) for answer in answers]
        for place in places:
            self._known[place] = {leaders[place] for leaders in said if place in leaders}
        self._whom = whom(answers)

    def leader(self, place: TopicPartition) -> Leader:
        """The newest that was told of a partition when it was last looked for.

        Raises:
            NotFoundError: nobody knows it.
            TransientBrokerError: brokers disagree which topic has that name.
        """
        return newest(place, self._known.get(place, ()), subject=self._subject)

    def connection(self, place: TopicPartition, *, deadline: float) -> BrokerConnection:
        """To the partition's leader; others use it too, so who finds it dead, or led by another, says ``forget``.

        Raises:
            NotFoundError: no such topic or partition.
            ReplicatorError: it has no leader now, or the cluster cannot be reached.
        """
        if place not in self._known:
            self.look([place], deadline=deadline)
        address = self.leader(place).address
        if address is None:
            raise code_error(
                _NO_LEADER, subject=self._subject, doing=f"find the leader of {place[0]}/{place[1]}"
            )
        return self._to(address, deadline)

    def ends(
        self, places: Iterable[TopicPartition], *, deadline: float, isolation_level: int = 0
    ) -> dict[TopicPartition, int]:
        """Where logs end, by those who led them at the last look; absent where that is not known.

        Level 0 counts open transactions too, level 1 what is committed alone.

        Raises:
            ReplicatorError: a leader does not answer, or brokers disagree which topic has a name.
        """
        led: dict[_Address, dict[str, list[int]]] = {}
        for place in places:
            if self._known.get(place) and (address := self.leader(place).address) is not None:
                led.setdefault(address, {}).setdefault(place[0], []).append(place[1])
        found: dict[TopicPartition, int] = {}
        for address, topics in led.items():
            try:
                answer = self._to(address, deadline).call(
                    offsets_question(topics, isolation_level=isolation_level),
                    newest=OFFSETS_VERSION,
                    deadline=deadline,
                )
            except UnreachableError:
                self._hang_up(address)
                raise
            found.update(told_offsets(answer))
        return found

    def forget(self, place: TopicPartition) -> None:
        """Hangs up on a partition's leader; it is looked for anew."""
        for leader in self._known.pop(place, ()):
            if leader.address is not None:
                self._hang_up(leader.address)

    def close(self) -> None:
        """Hangs up on all brokers; another call connects again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._known.clear()

    def _answers(self, topics: list[str], deadline: float) -> list[Any]:
        request = topics_question(topics)
        answers: list[Any] = []
        failure: ReplicatorError | None = None
        asked: set[_Address] = set()
        waiting = list(self._whom)
        bootstrap = [split_address(server) for server in self._cluster.bootstrap_servers]
        while len(answers) < MOST_ASKED:
            if not (waiting or answers):
                waiting, bootstrap = bootstrap, []
            if not waiting:
                break
            address = waiting.pop(0)
            now = time.monotonic()
            failures, again_at = self._silent.get(address, (0, now))
            if address in asked or now < again_at:
                continue
            asked.add(address)
            until = min(deadline, now + _BROKER_SECONDS)
            try:
                answer = self._to(address, until).call(
                    request, newest=_METADATA_VERSION, deadline=until
                )
                require_live_brokers(answer.brokers, self._cluster)
            except ReplicatorError as error:
                self._hang_up(address)
                again_at = time.monotonic() + LEFT_OUT.seconds(failures + 1)
                self._silent[address] = (failures + 1, again_at)
                failure = error
                continue
            self._silent.pop(address, None)
            answers.append(answer)
            waiting = whom(answers)
        if not answers:
            self._silent.clear()
            raise failure or UnreachableError(
                "no broker answers in time",
                subject=self._subject,
                remedy="Check that the brokers run and that bootstrapServers can be reached from here.",
            )
        return answers

    def _to(self, address: _Address, deadline: float) -> BrokerConnection:
        held = self._connections.get(address)
        if held is None:
            held = self._connections[address] = BrokerConnection(
                self._cluster, address, client_id=self._client_id, deadline=deadline
            )
        return held

    def _hang_up(self, address: _Address) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()


def newest(place: TopicPartition, known: Collection[Leader], *, subject: str) -> Leader:
    """The newest of what brokers say of a partition. Pure.

    Raises:
        NotFoundError: nobody knows it.
        TransientBrokerError: brokers disagree which topic has that name.
    """
    if not known:
        raise code_error(
            _NO_TOPIC, subject=subject, doing=f"find the leader of {place[0]}/{place[1]}"
        )
    ids = sorted({each.topic_id for each in known if each.topic_id})
    if len(ids) > 1:
        raise TransientBrokerError(
            f"brokers disagree which topic {place[0]} is: {' or '.join(ids)}",
            subject=subject,
            remedy="Look whether a broker has lost its connection to the controllers: it answers clients, and knows "
            "nothing of what happened since. Restart it, or mend its network.",
        )
    return max(known, key=lambda each: each.epoch)


def whom(answers: Iterable[Any]) -> list[_Address]:
    """Whom to ask, by what brokers say: first those that hold most of the partitions. Pure."""
    named: dict[_Address, int] = {}
    for answer in answers:
        held = Counter(
            node
            for topic in answer.topics
            for part in topic.partitions
            for node in (part.replica_nodes or ())
        )
        for broker in answer.brokers:
            address = (broker.host, broker.port)
            named[address] = max(named.get(address, 0), held[broker.node_id])
    return sorted(named, key=lambda address: (-named[address], address))
