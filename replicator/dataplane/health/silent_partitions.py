"""Partitions that have records to read and bring none, without a word of the client. Pure.

librdkafka (2.16) reports a batch that fails its checksum, but reads one whose length is damaged again and
again and says nothing. What it reads ahead or what a throttle holds back is no silence: only rounds in
which the lane was free to read, and worked off no backlog of other partitions, count.
"""

from collections.abc import Iterable, Mapping

from replicator.dataplane.health.drained_backlog import DrainedBacklog
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.identifiers import TopicPartition

SILENT_ROUNDS = 4
"""Rounds of a lane's recheck, two seconds apart, until the source is asked what it has."""

MOST_DOUBLINGS = 5
"""Twice as many each time that reading anew did not help: it loses what was on its way."""


class SilentPartitions:
    """Of one session; used by the lane's thread only."""

    def __init__(self) -> None:
        self._rounds: dict[PartitionState, tuple[int, int]] = {}
        self._told: dict[PartitionState, tuple[int, int]] = {}
        self._backlog = DrainedBacklog()

    def suspects(
        self, states: Iterable[PartitionState], unheard: Mapping[TopicPartition, int]
    ) -> list[PartitionState]:
        """Takes in one round; the partitions that stood still behind their log's end for too long.

        ``unheard`` has ends of logs of which the client knows nothing.
        """
        states = list(states)
        counted = not self._backlog.goes_on(states)
        rounds: dict[PartitionState, tuple[int, int]] = {}
        for state in states:
            end = max(state.source_end, unheard.get(state.key, -1))
            if not state.is_read or end <= state.position:
                continue
            position, count = self._rounds.get(state, (-1, 0))
            rounds[state] = (state.position, count + counted if position == state.position else 0)
        self._rounds = rounds
        if not counted:
            return []
        return [state for state, (_, count) in rounds.items() if self._is_silent(state, count)]

    def _is_silent(self, state: PartitionState, count: int) -> bool:
        if state.source_end <= state.position:
            return count >= SILENT_ROUNDS  # not read anew
        position, told = self._told.get(state, (-1, 0))
        if position != state.position:
            told = 0
        silent = count >= SILENT_ROUNDS << min(told, MOST_DOUBLINGS)
        if silent:
            self._told[state] = (state.position, told + 1)
        return silent

    def forget(self) -> None:
        """The lane was not free to read: begin to count anew."""
        self._rounds.clear()
