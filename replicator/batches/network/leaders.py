"""Who leads which partition of a cluster, asked in a thread of its own so that no lane waits for it."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replicator.errors import ReplicatorError
from replicator.identifiers import topic_id_text
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.protocol import MetadataRequest

_NEWEST = 12
_PAUSE_SECONDS = 0.1
_TIMEOUT_SECONDS = 5.0
_FAILED_SECONDS = 1.0
_REGULAR_SECONDS = 20.0
"""A broker that is cut off from the controllers goes on leading without an error; only asking others shows that."""


@dataclass(frozen=True, slots=True)
class LeadersSeen:
    """One answer: leader and leader epoch by partition, brokers' addresses, topics' ids of 16 bytes."""

    leaders: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    addresses: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)


class Leaders:
    """For one thread; the asking thread only hands over what it was told."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str) -> None:
        self.seen = LeadersSeen()
        self._cluster = cluster
        self._client_id = client_id
        self._topics: set[str] = set()
        self._wanted = False
        self._asked_at = float("-inf")
        self._thread: threading.Thread | None = None
        self._answer: LeadersSeen | ReplicatorError | None = None

    def follow(self, topics: Iterable[str]) -> None:
        """Wants to know about these topics too."""
        fresh = set(topics) - self._topics
        if fresh:
            self._topics |= fresh
            self._wanted = True

    def refresh(self) -> None:
        """Asks again soon: something was not as it was known."""
        self._wanted = True

    def of(self, topic: str, partition: int) -> tuple[int, int] | None:
        """Leader and epoch; None while not known, and then it is asked for."""
        found = self.seen.leaders.get((topic, partition))
        if found is None:
            self._topics.add(topic)
            self._wanted = True
        return found

    def epoch(self, place: tuple[str, int]) -> int:
        """The epoch of the partition's leader, -1 where it is not known."""
        return self.seen.leaders.get(place, (-1, -1))[1]

    def topic_id(self, topic: str) -> str:
        """The topic's id as Kafka's tools write it, empty where it is not known."""
        known = self.seen.topic_ids.get(topic, b"")
        return topic_id_text(known) if any(known) else ""

    def learn(self, topic: str, partition: int, leader: tuple[int, int]) -> bool:
        """Takes in what a response said of a newer leader; False where it is not known where it is."""
        held = self.seen.leaders.get((topic, partition), (-1, -1))
        if leader[0] not in self.seen.addresses or leader[1] <= held[1]:
            return False
        self.seen = LeadersSeen(
            {**self.seen.leaders, (topic, partition): leader},
            self.seen.addresses,
            self.seen.topic_ids,
        )
        return True

    def look(self, now: float) -> ReplicatorError | None:
        """Asks where it is time to (monotonic seconds); returns why the last question failed."""
        answer, self._answer = self._answer, None
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        if isinstance(answer, LeadersSeen):
            self.seen = _newer(self.seen, answer)
        due = self._wanted or now - self._asked_at >= _REGULAR_SECONDS
        if due and self._topics and self._thread is None and now - self._asked_at >= _PAUSE_SECONDS:
            self._wanted, self._asked_at = False, now
            self._thread = threading.Thread(
                target=self._ask, args=(sorted(self._topics),), name="leaders", daemon=True
            )
            self._thread.start()
        if isinstance(answer, ReplicatorError):
            self._wanted, self._asked_at = True, now + _FAILED_SECONDS
            return answer
        return None

    def _ask(self, topics: list[str]) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        try:
            self._answer = ask_leaders(
                self._cluster, topics, client_id=self._client_id, deadline=deadline
            )
        except ReplicatorError as error:
            self._answer = error
        except Exception as error:  # noqa: BLE001  the lane would not hear of it
            subject = f"cluster:{self._cluster.alias}"
            self._answer = ReplicatorError(f"unexpected: {error!r}", subject=subject)


def ask_leaders(
    cluster: ClusterPlan, topics: Iterable[str], *, client_id: str, deadline: float
) -> LeadersSeen:
    """Asks brokers until one knows of live ones; partitions without a leader are left out.

    Raises:
        ReplicatorError: no broker answers, or none lets us in.
    """
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
        allow_auto_topic_creation=False,
    )
    for _ in cluster.bootstrap_servers:
        with any_broker(cluster, client_id=client_id, deadline=deadline) as connection:
            answer = connection.call(request, newest=_NEWEST, deadline=deadline)
        if answer.brokers:
            break
    require_live_brokers(answer.brokers, cluster)
    found = LeadersSeen({}, {}, {})
    leaders, ids = {}, {}
    for topic in answer.topics:
        if topic.error_code:
            continue
        ids[topic.name] = topic.topic_id.bytes
        for part in topic.partitions:
            if part.leader_id >= 0:
                leaders[topic.name, part.partition_index] = (part.leader_id, part.leader_epoch)
    addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
    return LeadersSeen(leaders, addresses, ids) if answer.topics else found


def _newer(held: LeadersSeen, answer: LeadersSeen) -> LeadersSeen:
    """A broker may lag behind what another has said: of one topic's life the higher epoch holds."""
    leaders = dict(answer.leaders)
    for key, known in held.leaders.items():
        told = leaders.get(key)
        same = held.topic_ids.get(key[0]) == answer.topic_ids.get(key[0])
        if told is not None and same and known[1] > told[1] and known[0] in answer.addresses:
            leaders[key] = known
    return LeadersSeen(leaders, answer.addresses, answer.topic_ids)
