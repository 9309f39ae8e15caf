"""Target partitions that have another leader, or are another topic's, than when the lane last looked at them.

Copies may be lost there, and what others write behind them makes the log as long as it was. Once the lane has
written there too, its own last copy hides those before it: so it looks before it stores what it wrote.
"""

from collections.abc import Iterable
from typing import Protocol

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import LogChangedError
from replicator.identifiers import TopicPartition


class KnownLogs(Protocol):
    """What a client that writes there has learned since."""

    def epoch(self, place: TopicPartition, /) -> int:
        """The epoch of the partition's leader, -1 where it is not known."""
        ...

    def topic_id(self, topic: str, /) -> str:
        """The topic's id, empty where it is not known."""
        ...


class ChangedLogs:
    """Of one lane, over all its sessions; used by its thread only."""

    def __init__(self) -> None:
        self._known: dict[TopicPartition, tuple[int, str]] = {}
        self._met: dict[TopicPartition, tuple[int, str]] = {}

    def met(self, place: TopicPartition) -> tuple[int, str]:
        """The leader epoch and topic id that the lane met last, by its client or by a look; -1 and empty for none."""
        return self._met.get(place, (-1, ""))

    def looked(self, place: TopicPartition, epoch: int, topic_id: str) -> None:
        """The lane has looked at the log of that leader and topic, and believes what it saw."""
        self._met[place] = (epoch, topic_id)

    def forget(self, place: TopicPartition) -> None:
        """The lane writes there no longer."""
        self._met.pop(place, None)
        self._known.pop(place, None)

    def confirm(self, states: Iterable[PartitionState], now: KnownLogs) -> None:
        """Before the open unit is stored, of the partitions in it.

        What a session was ended for once ends no other: a cluster may say one thing in its metadata and another
        where the lane looks.

        Raises:
            LogChangedError: the take-over has to look; nothing of the unit is stored.
        """
        changed: list[tuple[TopicPartition, str]] = []
        for state in states:
            place = (state.target_topic, state.partition)
            epoch, topic_id = now.epoch(place), now.topic_id(state.target_topic)
            why = state.target.changed(epoch, topic_id)
            if why and self._known.get(place) != (epoch, topic_id):
                self._known[place] = self._met[place] = (epoch, topic_id)
                changed.append((place, why))
        if changed:
            (topic, partition), why = min(changed)
            others = f", and {len(changed) - 1} more changed" if len(changed) > 1 else ""
            raise LogChangedError(
                f"{topic}/{partition} of the target {why}{others}: the lane looks whether copies were lost",
                subject=f"{topic}/{partition}",
            )
