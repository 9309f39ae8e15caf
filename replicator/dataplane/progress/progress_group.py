"""Showing positions in the lane's group on the source, so that ordinary lag tools see every flow."""

from collections.abc import Callable, Iterable

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.progress.shown_positions import ShownPositions
from replicator.kafka.clients.client import ClientPartition, Consumer, KafkaError, KafkaException


class ProgressGroup:
    """Commits positions now and then; nothing depends on them. For the lane's thread."""

    def __init__(
        self,
        consumer: Consumer,
        *,
        now: float,
        on_answer: Callable[[KafkaError | None], None],
        not_taken: Callable[[], bool],
    ) -> None:
        """``not_taken``: whether the last answer was that the group has not taken our positions."""
        self._consumer = consumer
        self._on_answer = on_answer
        self._not_taken = not_taken
        self._positions = ShownPositions(now)

    def show(self, states: Callable[[], Iterable[PartitionState]], now: float) -> None:
        """Commits what moved since the last time, if that is long enough ago (monotonic seconds)."""
        if not self._positions.due(now):
            return
        if self._not_taken():
            self._positions.forget()  # a partition that rests would not be shown again for minutes
        moved = self._positions.moved(states())
        if not moved:
            return
        self._positions.shown(moved)
        offsets = [ClientPartition(*place, offset) for place, offset in moved.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._on_answer(error.args[0])
