"""The range that a lane copies record by record, because the target refused a record in it."""

from collections.abc import Collection

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import RecordRefusedError, RecordTooLargeError
from replicator.identifiers import TopicPartition


class RetryRange:
    """How far each partition is copied record by record; for the lane's thread.

    Invariant: a range is never behind the lane before something was copied in it. Else a session that
    has read nothing yet would end it, and the next one would meet the same record at full speed.
    """

    def __init__(self) -> None:
        self._until: dict[TopicPartition, int] = {}
        self._unknown = False

    def __bool__(self) -> bool:
        """Whether there is a range to copy."""
        return bool(self._until)

    def refused(self, error: RecordRefusedError, states: Collection[PartitionState]) -> None:
        """Takes in what may hold the refused record, and the record itself where the client names it."""
        self.extend(states)
        if isinstance(error, RecordTooLargeError) and error.place is not None:
            self.reach(error.place)

    def extend(self, states: Collection[PartitionState]) -> None:
        """Takes in everything that was produced and is not committed."""
        for state in states:
            if state.position > state.committed >= 0:
                self._until[state.key] = max(state.position, self._until.get(state.key, 0))
        if not self._until:
            # Nothing tells where it is; a part of it was copied once any partition has moved.
            self._until = {state.key: state.position for state in states}
            self._unknown = True

    def reach(self, place: tuple[str, int, int]) -> None:
        """Takes in a record that could not be produced: topic, partition and offset."""
        if self._unknown:
            self.clear()
        key = (place[0], place[1])
        self._until[key] = max(place[2] + 1, self._until.get(key, 0))

    def is_past(self, states: Collection[PartitionState]) -> bool:
        """Whether every partition that can be copied is behind its part of the range."""
        if self._unknown:
            return any(state.position > self._until.get(state.key, -1) >= 0 for state in states)
        return not any(
            state.position < self._until.get(state.key, 0)
            for state in states
            if not state.problem and not state.needs_check
        )

    def clear(self) -> None:
        """Back to full speed."""
        self._until = {}
        self._unknown = False
