"""What the source's client reports beside records: ends of partitions, errors, ids of topics."""

from collections.abc import Callable

from replicator.dataplane.copy.source_message import SourceMessage
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.session.seek import NEEDS_CHECK
from replicator.kafka import codes
from replicator.kafka.client import KafkaError, KafkaException


class SourceEvents:
    """Of one session; used by the lane's thread only."""

    def __init__(
        self, table: PartitionTable, *, on_problem: Callable[[str, KafkaError | None], None]
    ) -> None:
        self._table = table
        self._on_problem = on_problem
        self._topic_ids: dict[str, str] = {}
        self._to_check: set[PartitionState] = set()

    def require_check(self, state: PartitionState) -> None:
        """Nothing more is copied of the partition until its source log was looked at."""
        state.needs_check = True
        self._to_check.add(state)

    def take_to_check(self) -> set[PartitionState]:
        """The partitions that came to need a check since the last call."""
        found, self._to_check = self._to_check, set()
        return found

    def on_event(self, message: SourceMessage) -> PartitionState | None:
        """Takes in what is not a record; returns a partition whose position moved, if one did.

        Raises:
            KafkaException: the consumer is of no more use.
        """
        error = message.error()
        if error is None:
            return None
        state = self._table.get(message.topic(), {}).get(message.partition())
        code = error.code()
        if code == codes.PARTITION_EOF:
            if state is not None and not state.problem and not state.needs_check:
                return _at_end(state, message.offset())
        elif state is not None and code in NEEDS_CHECK:
            # Only the text of the error says that the log was cut.
            state.diverged = state.diverged or "truncation" in error.str().lower()
            self.require_check(state)
        elif error.fatal():
            raise KafkaException(error)
        else:
            self._on_problem("source", error)
        return None

    def on_topic_id(self, topic: str, topic_id: str) -> None:
        """The consumer has learned a topic's id: from now on it reads the topic of that id."""
        self._topic_ids[topic] = topic_id
        for state in self._table.get(topic, {}).values():
            if not state.problem and not state.needs_check and self.reads_another_topic(state):
                self.require_check(state)

    def reads_another_topic(self, state: PartitionState) -> bool:
        """Whether the consumer would read a topic of the same name with another id."""
        known = self._topic_ids.get(state.topic, "")
        return bool(known and state.topic_id) and known != state.topic_id


def _at_end(state: PartitionState, end: int) -> PartitionState | None:
    """Control markers and aborted records have offsets but no records: step over them."""
    state.source_end = max(state.source_end, end)
    if end <= state.position:
        return None
    state.position = end
    state.position_epoch = -1  # the client does not give the epoch of a marker
    return state
