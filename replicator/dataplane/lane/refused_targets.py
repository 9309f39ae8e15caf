"""Which partitions wait because the target takes no writes of them, before a record of theirs is in a transaction."""

from collections.abc import Callable, Iterable, Mapping

from replicator.clock import Clock
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.takeover import OnFailure
from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import TopicPartition

Refusals = Callable[[Iterable[PartitionState]], Mapping[TopicPartition, ReplicatorError] | None]
"""Asks which of these partitions the target takes no writes of; by target partition, None without an answer."""


class RefusedTargets:
    """Of one session; for the lane's thread."""

    def __init__(self, refusals: Refusals, *, clock: Clock, on_failure: OnFailure) -> None:
        self._refusals = refusals
        self._clock = clock
        self._on_failure = on_failure

    def waiting(self, states: Iterable[PartitionState]) -> set[PartitionState]:
        """Those that the target takes no writes of now; one that was refused is asked about when it is time.

        Before anything of them is written: a transaction with one of them in it could not end.
        """
        now = self._clock.monotonic()
        waiting: set[PartitionState] = set()
        asked: set[PartitionState] = set()
        refused_before: set[PartitionState] = set()
        for state in states:
            failure = state.health.failure
            if failure is not None and failure.side == "target":
                refused_before.add(state)
                if state.health.retry_at > now:
                    waiting.add(state)
                    continue
            elif not state.may_refuse:
                continue
            asked.add(state)
        refused = self.refused(asked)
        if refused is not None:
            return waiting | refused
        # Without an answer what the target last said of a partition still holds.
        for state in asked & refused_before:
            state.health.put_off(now)
        return refused_before

    def refused(self, states: Iterable[PartitionState]) -> set[PartitionState] | None:
        """Asks the target which of these partitions take no writes, and keeps why; None without an answer."""
        states = list(states)
        refusals = self._refusals(states) if states else {}
        if refusals is None:
            return None
        refused: set[PartitionState] = set()
        for state in states:
            error = refusals.get((state.target_topic, state.partition))
            if error is None:
                state.health.takes_writes()
            elif state.health.failure is not None or not isinstance(error, NotFoundError):
                # A topic that was created just now is not known everywhere yet.
                self._on_failure(state, "target", error)
                refused.add(state)
        return refused
