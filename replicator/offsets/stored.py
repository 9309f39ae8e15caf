"""What the checkpoints topic says of each source partition: how far it was copied, and its index.

Followed, not read again and again: the topic grows with every commit until it is compacted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from replicator.errors import StoredFormatError
from replicator.identifiers import ClusterAlias, checkpoints_topic
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.compacted_log import LogTail
from replicator.offsets.index import IndexEntry, decode_index
from replicator.topology.plan import ClusterPlan

VERSION = 1

FETCH_WAIT_SECONDS = 1.0
"""What is written meanwhile ends the wait at the broker."""


@dataclass(slots=True)
class StoredPartition:
    """One source partition: the checkpoint (None before the first) and the entries of its index.

    ``adopted``: another program had copied before; its copies say nothing of their place.
    """

    copied_to: int | None = None
    topic_id: str = ""
    at_ms: int = -1
    adopted: bool = False
    entries: dict[int, IndexEntry] = field(default_factory=dict)


class StoredPartitions:
    """Everything the checkpoints topic says, folded record by record. Pure."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], StoredPartition] = {}

    def of(self, topic: str, partition: int) -> StoredPartition:
        """What is stored of a source partition."""
        return self._lines.get((topic, partition)) or StoredPartition()

    def fold(self, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Takes records in, in any order over the partitions of the topic.

        Tombstones are passed over: they only take away what stands elsewhere by now (a lane change)
        or what a newer entry outdates, and the readers of the index see to that.

        Raises:
            StoredFormatError: for an unknown version, or text that is not ours.
        """
        for key, value in records:
            if value is None:
                continue
            for where, entries in decode_index({key: value}).items():
                held = self._lines.setdefault(where, StoredPartition()).entries
                for entry in entries:
                    old = held.get(entry.slot)
                    if old is None or entry.number >= old.number:
                        held[entry.slot] = entry
            self._checkpoint(key, value)

    def _checkpoint(self, key: bytes, value: bytes) -> None:
        try:
            where: Mapping[str, Any] = orjson.loads(key)
            if where["kind"] != "checkpoint":
                return
            what: Mapping[str, Any] = orjson.loads(value)
            if what["v"] != VERSION:
                raise StoredFormatError(
                    f"a checkpoint has version {what['v']}, this release reads {VERSION}",
                    remedy="Run the release that wrote it, or a newer one.",
                )
            line = self._lines.setdefault((where["topic"], where["partition"]), StoredPartition())
            if what["at"] >= line.at_ms:
                line.copied_to, line.topic_id = int(what["offset"]), str(what["topicId"])
                line.at_ms = int(what["at"])
                line.adopted = "adopted" in what
        except (KeyError, TypeError, ValueError) as error:
            raise StoredFormatError(
                f"a checkpoint record cannot be read ({error})",
                remedy="Something else wrote into the checkpoints topic; nothing was guessed.",
            ) from error


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
        self._lines = StoredPartitions()

    def refresh(self) -> StoredPartitions:
        """What is stored now; empty where the pair was never used.

        Raises:
            ReplicatorError: the target cannot be read.
        """
        count = self._count()
        if count == 0:
            return self._lines
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
            loaded = self._tail.load(timeout_seconds=self._timeout_seconds)
            self._lines = StoredPartitions()
            for records in loaded.values():
                self._lines.fold(records.items())
        while entries := self._tail.poll(0.0):
            self._lines.fold(entries)
        return self._lines

    def close(self) -> None:
        """Gives the connections back."""
        if self._tail is not None:
            self._tail.close()
        self._tail = None

    def _count(self) -> int:
        described = self._admin.describe_topics([self._topic]).get(self._topic)
        return 0 if described is None else described.partitions
