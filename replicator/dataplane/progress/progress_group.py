"""Showing positions in the lane's group on the source, so that ordinary lag tools see every flow."""

from collections.abc import Callable, Iterable

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.kafka.clients.client import ClientPartition, Consumer, KafkaError, KafkaException

PROGRESS_SECONDS = 5.0


class ProgressGroup:
    """Commits positions now and then; nothing depends on them. For the lane's thread."""

    def __init__(
        self,
        consumer: Consumer,
        *,
        now: float,
        on_answer: Callable[[KafkaError | None], None],
        refused: Callable[[], bool],
    ) -> None:
        """``refused``: whether the last answer was that our user may not commit to the group."""
        self._consumer = consumer
        self._on_answer = on_answer
        self._refused = refused
        self._shown_at = now
        self._sent: dict[tuple[str, int], int] = {}

    def show(self, states: Callable[[], Iterable[PartitionState]], now: float) -> None:
        """Commits what moved since the last time, if that is long enough ago (monotonic seconds)."""
        if now - self._shown_at < PROGRESS_SECONDS:
            return
        self._shown_at = now
        if self._refused():
            self._sent.clear()  # none of it was taken
        moved = [
            ClientPartition(state.topic, state.partition, state.committed)
            for state in states()
            if state.committed >= 0
            and not state.problem
            and self._sent.get(state.key) != state.committed
        ]
        if not moved:
            return
        self._sent.update({(item.topic, item.partition): item.offset for item in moved})
        try:
            self._consumer.commit(offsets=moved, asynchronous=True)
        except KafkaException as error:
            self._on_answer(error.args[0])
