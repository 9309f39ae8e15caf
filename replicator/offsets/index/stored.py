"""What the checkpoints topic says of each source partition: how far it was copied, and its index.

Followed, not read again and again: the topic grows with every commit until it is compacted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from replicator.formats.checkpoint import (
    ADOPTED,
    Checkpoint,
    decode_checkpoint,
    encode_key,
    replaces,
)
from replicator.formats.left_out import LeftOut
from replicator.identifiers import ClusterAlias, TopicPartition, checkpoints_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_log import LogTail
from replicator.offsets.index.index import IndexEntry, decode_index
from replicator.topology.plan import ClusterPlan

DELETED_MS = -1
"""The time of a checkpoint that was deleted: older than any other."""

FETCH_WAIT_SECONDS = 1.0
"""What is written meanwhile ends the wait at the broker."""


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """One source partition: the checkpoint (None before the first) and the entries of its index."""

    checkpoint: Checkpoint | None = None
    entries: Mapping[int, IndexEntry] = field(default_factory=dict)

    @property
    def copied_to(self) -> int | None:
        """Every source record below is on the target or was dropped; None before the first."""
        return None if self.checkpoint is None else self.checkpoint.offset

    @property
    def topic_id(self) -> str:
        """The source topic's id that the checkpoint counts in; empty before the first."""
        return "" if self.checkpoint is None else self.checkpoint.topic_id

    @property
    def target_losses(self) -> int:
        """How often records of the copy were lost, and copied again to other places."""
        return 0 if self.checkpoint is None else self.checkpoint.target_loss.count

    @property
    def left_out(self) -> LeftOut:
        """Source records that were passed without a copy."""
        return LeftOut() if self.checkpoint is None else self.checkpoint.left_out

    @property
    def adopted(self) -> bool:
        """Whether another program had copied before: its copies say nothing of their place."""
        return self.checkpoint is not None and ADOPTED in self.checkpoint.extra


class StoredPartitions:
    """Everything the checkpoints topic says, folded record by record. Pure."""

    def __init__(self) -> None:
        self._lanes: dict[int, dict[bytes, Checkpoint]] = {}
        self._entries: dict[TopicPartition, dict[int, IndexEntry]] = {}

    def of(self, topic: str, partition: int) -> StoredPartition:
        """What is stored of a source partition."""
        key = encode_key(topic, partition)
        held: Checkpoint | None = None
        for lane in self._lanes.values():
            if (found := lane.get(key)) is not None and replaces(found, held):
                held = found
        return StoredPartition(held, self._entries.get((topic, partition), {}))

    def fold(self, lane: int, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Takes in records of one partition of the topic, in its order; partitions in any order.

        A lane change moves a checkpoint and deletes it where it stood, and which of the two is read
        first is not known: a deleted one stands until another lane's was read. Deleted index entries
        are passed over: the readers of the index see to those that a newer entry outdates.

        Raises:
            StoredFormatError: for an unknown version, or text that is not ours.
        """
        checkpoints = self._lanes.setdefault(lane, {})
        for record_key, value in records:
            if value is None:
                if record_key in checkpoints:
                    checkpoints[record_key] = replace(checkpoints[record_key], at_ms=DELETED_MS)
                continue
            checkpoint = decode_checkpoint(record_key, value)
            if checkpoint is not None:
                checkpoints[record_key] = checkpoint
                continue
            for key, entries in decode_index({record_key: value}).items():
                held = self._entries.setdefault(key, {})
                for entry in entries:
                    old = held.get(entry.slot)
                    if old is None or entry.number >= old.number:
                        held[entry.slot] = entry


class CheckpointsView:
    """Follows the checkpoints topic of one pair of clusters; for one thread at a time."""

    def __init__(
        self,
        topology: str,
        source: str,
        target: ClusterPlan,
        *,
        admin: ClusterAdmin,
        client_id: str,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._topic = checkpoints_topic(topology, ClusterAlias(source))
        self._target = target
        self._admin = admin
        self._client_id = client_id
        self._timeout_seconds = timeout_seconds
        self._tail: LogTail | None = None
        self._partitions = 0
        self._stored = StoredPartitions()

    def refresh(self) -> StoredPartitions:
        """What is stored now; empty where the pair was never used.

        Raises:
            ReplicatorError: the target cannot be read.
        """
        count = self._count()
        if count == 0:
            return self._stored
        if self._tail is None or count != self._partitions:
            self.close()
            self._partitions = count
            self._tail = LogTail(
                self._target,
                self._topic,
                range(count),
                client_id=self._client_id,
                fetch_wait_seconds=FETCH_WAIT_SECONDS,
            )
            loaded = self._tail.load(timeout_seconds=self._timeout_seconds, known_to_exist=True)
            self._stored = StoredPartitions()
            for lane, records in loaded.items():
                self._stored.fold(lane, records.items())
        while grown := self._tail.poll_partitions(0.0):
            for lane, entries in grown.items():
                self._stored.fold(lane, entries)
        return self._stored

    def close(self) -> None:
        """Gives the connections back."""
        if self._tail is not None:
            self._tail.close()
        self._tail = None

    def _count(self) -> int:
        described = self._admin.describe_topics([self._topic]).get(self._topic)
        return 0 if described is None else described.partitions
