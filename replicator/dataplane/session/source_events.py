"""What the source's client reports beside records: ends of partitions, errors, ids of topics."""

from collections.abc import Callable, Iterable

from replicator.dataplane.copy.source_message import SourceMessage
from replicator.dataplane.health.damaged_source import damaged
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.takeover.seek import NEEDS_CHECK
from replicator.errors import ReplicatorError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError, KafkaException
from replicator.kafka.clients.errors import map_kafka_error

_DAMAGED = frozenset(
    {
        codes.BAD_MESSAGE,
        codes.BAD_COMPRESSION,
        codes.NOT_IMPLEMENTED,  # an unknown format of batches
        KafkaError.INVALID_MSG,
    }
)
"""After these the client goes on somewhere else, at an offset that it made up (librdkafka 2.16)."""


class SourceEvents:
    """Of one session; used by the lane's thread only."""

    def __init__(
        self,
        table: PartitionTable,
        *,
        on_problem: Callable[[str, KafkaError | None], None],
        on_failure: Callable[[PartitionState, ReplicatorError], None],
    ) -> None:
        """``on_problem`` is told of the connection, ``on_failure`` of a partition that cannot be read."""
        self._table = table
        self._on_problem = on_problem
        self._on_failure = on_failure
        self._topic_ids: dict[str, str] = {}
        self._to_check: set[PartitionState] = set()
        self._to_suspend: set[PartitionState] = set()

    def require_check(self, state: PartitionState) -> None:
        """Nothing more is copied of the partition until its source log was looked at."""
        state.needs_check = True
        self._to_check.add(state)

    def take_to_check(self) -> set[PartitionState]:
        """The partitions that came to need a check since the last call."""
        found, self._to_check = self._to_check, set()
        return found

    def take_to_suspend(self) -> set[PartitionState]:
        """The partitions that could not be read since the last call; they are tried again later."""
        found, self._to_suspend = self._to_suspend, set()
        return found

    def on_event(self, message: SourceMessage) -> PartitionState | None:
        """Takes in what is not a record; returns a partition whose position moved, if one did.

        Raises:
            KafkaException: the consumer is of no more use.
        """
        error = message.error()
        if error is None:
            return None
        of_topic = self._table.get(message.topic() or "", {})
        state = of_topic.get(message.partition())
        code = error.code()
        if code == codes.PARTITION_EOF:
            if state is not None and not state.problem and not state.needs_check:
                state.health.at_end()
                return _at_end(state, message.offset())
        elif state is not None and code in NEEDS_CHECK:
            if state.needs_check or state.problem:
                return None  # it comes of an event before, and the partition is not read any more
            # Only the text of the error says that the log was cut.
            state.diverged = state.diverged or "truncation" in error.str().lower()
            self.require_check(state)
        elif error.fatal():
            raise KafkaException(error)
        elif of_topic:
            self._suspend(of_topic.values() if state is None else (state,), error)
        else:
            self._on_problem("source", error)
        return None

    def _suspend(self, states: Iterable[PartitionState], error: KafkaError) -> None:
        """Keeps an error with the partitions it is about: all of a topic where it names none."""
        for state in states:
            if state.problem or state.needs_check:
                continue
            place = f"{state.topic}/{state.partition}"
            mapped = (
                damaged(state, error.str())
                if error.code() in _DAMAGED
                else map_kafka_error(error, subject=place, doing=f"read {place}")
            )
            self.suspend(state, mapped)

    def suspend(self, state: PartitionState, error: ReplicatorError) -> None:
        """Keeps why a partition cannot be read; the session reads nothing of it until it is tried again."""
        self._on_failure(state, error)
        state.needs_check = True
        self._to_suspend.add(state)

    def on_topic_id(self, topic: str, topic_id: str) -> None:
        """The consumer has learned a topic's id: from now on it reads the topic of that id."""
        self._topic_ids[topic] = topic_id
        for state in self._table.get(topic, {}).values():
            if not state.problem and not state.needs_check and self.reads_another_topic(state):
                self.require_check(state)

    def topic_id(self, topic: str) -> str:
        """The id of the topic that the consumer reads under this name; empty where it named none yet."""
        return self._topic_ids.get(topic, "")

    def reads_another_topic(self, state: PartitionState) -> bool:
        """Whether the consumer would read a topic of the same name with another id."""
        known = self.topic_id(state.topic)
        return bool(known and state.topic_id) and known != state.topic_id


def _at_end(state: PartitionState, end: int) -> PartitionState | None:
    """Control markers and aborted records have offsets but no records: step over them."""
    state.source_end = max(state.source_end, end)
    if end <= state.position:
        return None
    state.position = end
    return state
