"""Why history that is being copied does not move: asked of both clusters by the process that waits for it.

A task waits for minutes for what may pass, and says nothing meanwhile, wherever it runs. So its driver asks
about partitions that have stood still, and says what it finds as soon as it is known.
"""

from collections.abc import Callable, Iterable, Mapping

from replicator.clock import Clock
from replicator.dataplane.health.target_check import unwritable_partitions
from replicator.errors import NotAuthorizedError, ReplicatorError, TransientBrokerError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import TopicDescription, require_answers
from replicator.topology.plan import ClusterPlan

STILL_SECONDS = 10.0
"""So long a partition may stand still before both clusters are asked about it."""

CLIENT_ID = "replicator-seed"
_ASK_SECONDS = 5.0

Reasons = Mapping[TopicPartition, ReplicatorError]


class Standstill:
    """Of one run; for one thread."""

    def __init__(
        self,
        ask: Callable[[list[TopicPartition]], Reasons],
        say: Callable[[TopicPartition | None, ReplicatorError], None],
        *,
        clock: Clock,
    ) -> None:
        """``ask`` finds out why partitions stand still, as ``why_still``.

        ``say`` tells people: of a partition, or of all where it is the target that does not answer.
        """
        self._ask = ask
        self._say = say
        self._clock = clock
        self._seen: dict[TopicPartition, tuple[int, float]] = {}
        self._told: dict[TopicPartition | None, str] = {}

    def look(self, unfinished: Mapping[TopicPartition, int]) -> None:
        """Takes in how far each unfinished partition is, and says why some do not move.

        A partition that waits for its turn stands still for no reason, and nothing is said of it. Each
        reason is said once, and again after the partition has moved.
        """
        self._told.pop(None, None)
        now = self._clock.monotonic()
        still: list[TopicPartition] = []
        seen: dict[TopicPartition, tuple[int, float]] = {}
        for key, position in unfinished.items():
            before = self._seen.get(key)
            if before is None or before[0] != position:
                seen[key] = position, now
                self._told.pop(key, None)
            elif now - before[1] >= STILL_SECONDS:
                still.append(key)
                seen[key] = position, now  # asked about again only after as long
            else:
                seen[key] = before
        self._seen = seen
        for key, reason in self._ask(still).items() if still else ():
            self._tell(key, reason)

    def unknown(self, error: ReplicatorError) -> None:
        """Takes in that nobody can say how far the partitions are."""
        self._tell(None, error)

    def _tell(self, key: TopicPartition | None, reason: ReplicatorError) -> None:
        if self._told.get(key) != reason.message:
            self._told[key] = reason.message
            self._say(key, reason)


def why_still(
    source: ClusterPlan,
    target: ClusterPlan,
    targets: Mapping[str, str],
    places: Iterable[TopicPartition],
) -> dict[TopicPartition, ReplicatorError]:
    """What keeps source partitions from being read or their copies from being written. Blocking.

    Args:
        source: where they are read.
        target: where their copies are written.
        targets: the target topic of each source topic.
        places: source partitions.
    """
    asked = list(places)
    found: dict[TopicPartition, ReplicatorError] = {}
    try:
        with ClusterAdmin(source, client_id=CLIENT_ID, timeout_seconds=_ASK_SECONDS) as admin:
            described = admin.describe_each_topic({topic for topic, _ in asked})
        require_answers(described)
        for place in asked:
            reason = _unreadable(place, described.get(place[0]), str(source.alias))
            if reason is not None:
                found[place] = reason
        copies = {(targets[topic], number): (topic, number) for topic, number in asked}
        with ClusterAdmin(target, client_id=CLIENT_ID, timeout_seconds=_ASK_SECONDS) as admin:
            for copy, reason in unwritable_partitions(admin, copies).items():
                found.setdefault(copies[copy], reason)
    except ReplicatorError as error:  # a whole cluster: one partition is enough to say so
        found.setdefault(asked[0], error)
    return found


def _unreadable(
    place: TopicPartition, topic: TopicDescription | ReplicatorError | None, alias: str
) -> ReplicatorError | None:
    """Why the source gives out nothing of a partition, as far as its description tells."""
    if isinstance(topic, ReplicatorError):
        return topic
    if isinstance(topic, TopicDescription):
        granted = topic.authorized_operations
        if granted and not granted & {"READ", "ALL"}:
            return NotAuthorizedError(
                f"cannot read '{place[0]}': {alias} refuses it to our user",
                remedy="Allow READ by an ACL on the topic.",
            )
        if place[1] in topic.leaderless:
            return TransientBrokerError(
                f"cannot read {place[0]}/{place[1]}: the partition has no leader on {alias}",
                remedy="Bring the brokers back that hold its replicas; it is retried automatically.",
            )
    return None
