"""How far MirrorMaker 2 came: the source offsets that its Connect workers store on the target.

TopicPartition: a JSON array of the connector's name and ``{"cluster", "partition", "topic"}`` (names of the
source); value: ``{"offset": n}``, the last record that the target acknowledged, so that n + 1 is the
next one to copy. Source: ``MirrorUtils.wrapPartition`` and ``MirrorSourceTask`` of Apache Kafka, and
``OffsetStorageWriter`` of Connect. Keys of its other two connectors name no topic of the source.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from replicator.errors import RefusedError, ReplicatorError, StoredFormatError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.topology.plan import ClusterPlan

READ_SECONDS = 60.0


_CONNECTORS = frozenset({"group", "sourceClusterAlias"})
"""Fields that only the checkpoint and heartbeat connectors have in their keys."""


@dataclass(frozen=True, slots=True)
class ConnectorProgress:
    """The last source offset that was copied, per partition; partitions without one are absent.

    ``unconfirmed`` are partitions for which several connectors stored different offsets. The lowest
    counts: what the others copied beyond it may be copied again, and nothing is left out.
    """

    last_copied: dict[TopicPartition, int]
    unconfirmed: frozenset[TopicPartition] = frozenset()


def decode_progress(records: Iterable[tuple[bytes, bytes]], cluster: str) -> ConnectorProgress:
    """The progress of the flows out of one cluster.

    Args:
        records: the last value of every key of the offsets topic.
        cluster: MirrorMaker 2's alias of the source.

    Raises:
        StoredFormatError: a record of a source connector is not what Connect writes; its progress
            cannot be told, and nothing is guessed.
    """
    stored: dict[TopicPartition, set[int]] = {}
    for raw_key, raw_value in records:
        where = _partition(raw_key)
        if where is None or where.get("cluster") != cluster:
            continue
        try:
            key = (str(where["topic"]), _number(where["partition"]))
            offset = _number(orjson.loads(raw_value)["offset"])
        except (KeyError, TypeError, ValueError) as error:
            raise StoredFormatError(
                f"MirrorMaker 2's progress cannot be read: {raw_key[:120]!r} says {raw_value[:80]!r}",
                remedy="Name the release of MirrorMaker 2 that wrote it; nothing was changed.",
            ) from error
        stored.setdefault(key, set()).add(offset)
    return ConnectorProgress(
        {key: min(offsets) for key, offsets in stored.items()},
        frozenset(key for key, offsets in stored.items() if len(offsets) > 1),
    )


def read_progress(
    target: ClusterPlan, admin: ClusterAdmin, topic: str, cluster: str, *, client_id: str
) -> ConnectorProgress:
    """Reads the offsets topic to its end.

    Raises:
        RefusedError: there is no such topic, or a transaction is open in it, so that what will hold
            in the end is not known yet.
        ClusterError: the target does not answer.
    """
    partitions = admin.topic_partitions().get(topic)
    if partitions is None:
        raise RefusedError(
            f"the cluster has no topic '{topic}', where MirrorMaker 2 keeps how far it came",
            subject=f"cluster:{target.alias}",
            remedy="If it is called otherwise, name it in the properties file (offset.storage.topic).",
        )
    keys = [(topic, number) for number in range(partitions)]
    ends = admin.offsets(keys, "latest", isolation="read_uncommitted")
    committed = admin.offsets(keys, "latest", isolation="read_committed")
    if any(_below(committed[key], ends[key]) for key in keys):
        raise RefusedError(
            f"MirrorMaker 2 left a transaction open in '{topic}'",
            subject=f"cluster:{target.alias}",
            remedy="The cluster takes it back after a minute at most, by default; try again then.",
        )
    read = read_compacted(
        target, topic, range(partitions), client_id=client_id, timeout_seconds=READ_SECONDS,
        known_to_exist=True,
    )  # fmt: skip
    return decode_progress((entry for part in read.values() for entry in part.items()), cluster)


def _below(committed: int | ReplicatorError, end: int | ReplicatorError) -> bool:
    if isinstance(committed, ReplicatorError):
        raise committed
    if isinstance(end, ReplicatorError):
        raise end
    return committed < end


def _partition(raw_key: bytes) -> dict[str, Any] | None:
    """The second half of a key; None for one that is no source partition of MirrorMaker 2."""
    try:
        parts = orjson.loads(raw_key)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[1], dict):
        return None
    where: dict[str, Any] = parts[1]
    return None if where.keys() & _CONNECTORS else where


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not an offset or a partition")
    return value
