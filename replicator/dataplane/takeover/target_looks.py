"""Asking the target about the partitions of a lane: what their logs are now, and the last copy in them."""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Self, cast

from replicator.dataplane.takeover.target_loss import SeenTarget
from replicator.errors import NotAuthorizedError, ReplicatorError, UnreachableError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import ClientPartition, Message, open_consumer
from replicator.kafka.clients.errors import map_kafka_error
from replicator.kafka.clients.settings import Isolation, consumer_config
from replicator.policy.copies.provenance import find_hops, hop_prefix
from replicator.topology.plan import ClusterPlan

LOOK_SECONDS = 30.0
"""For so long nothing may come of a log that is read: over a narrow line the look takes as long as its records do."""

_ANSWER_BYTES = 512 * 1024
"""The client library hands over nothing of an answer before all of it is there."""

_FIRST_LOOK = 500
_LONGER = 4
_BATCH = 500


def read_targets(
    target: ClusterPlan, partitions: Iterable[TopicPartition], *, client_id: str
) -> dict[TopicPartition, SeenTarget]:
    """The logs of target partitions; those the target cannot answer for now are absent.

    Raises:
        ReplicatorError: the target cannot be reached.
    """
    keys = sorted(set(partitions))
    if not keys:
        return {}
    admin = ClusterAdmin(target, client_id=client_id)
    try:
        described = admin.describe_topics({topic for topic, _ in keys})
        known = [
            (topic, number)
            for topic, number in keys
            if topic in described
            and number < described[topic].partitions
            and number not in described[topic].leaderless
        ]
        starts = admin.offsets(known, at="earliest", isolation="read_uncommitted")
        ends = admin.log_ends(known)
    finally:
        admin.close()
    seen: dict[TopicPartition, SeenTarget] = {}
    for key in known:
        start, end = starts.get(key), ends.get(key)
        if not isinstance(start, int) or end is None or isinstance(end, ReplicatorError):
            continue
        topic = described[key[0]]
        in_sync = dict(topic.in_sync).get(key[1], topic.replication_factor)
        seen[key] = SeenTarget(
            topic.topic_id, start, end.offset, end.leader_epoch,
            all_in_sync=in_sync >= topic.replication_factor,
        )  # fmt: skip
    return seen


@dataclass(frozen=True, slots=True)
class LastCopy:
    """The last copy found in a target partition.

    ``source_offset`` is None where there is none. ``undecided`` says that it is in a transaction without
    an outcome: one of the lane's own whose marker was lost. The lane's next commit there decides it.
    ``counted``: it was told by counting, where copies carry no marks. ``target_offset`` is where it stands, -1
    where that is not known. ``mixed``: it is the last one that carries a mark, and others may stand behind it.
    ``never_deleted``: there is none, and neither retention nor compaction can have taken any.
    """

    source_offset: int | None
    undecided: bool = False
    counted: bool = False
    target_offset: int = -1
    mixed: bool = False
    never_deleted: bool = False


def find_last_copies(
    target: ClusterPlan,
    wanted: Mapping[TopicPartition, SeenTarget],
    origins: Mapping[TopicPartition, TopicPartition],
    *,
    source_alias: str,
    client_id: str,
) -> dict[TopicPartition, LastCopy]:
    """The highest source offset among the last copies in each target partition.

    The highest of a stretch, not the last record: what was put back from quarantine stands behind newer
    records. ``origins`` are the source partitions by target partition.

    Raises:
        UnreachableError: a log could not be read to its end in time.
        ReplicatorError: the target refuses to be read.
    """
    if not wanted:
        return {}
    stable = _stable_ends(target, wanted, client_id=client_id)
    found: dict[TopicPartition, LastCopy] = {}
    with _TailReader(target, client_id, "read_committed") as settled:
        for key, seen in wanted.items():
            prefix = hop_prefix(source_alias, *origins[key])
            copy = settled.last_copy(key, seen.start, stable[key], prefix)
            found[key] = (
                LastCopy(None) if copy is None else LastCopy(copy[0], target_offset=copy[1])
            )
    undecided = _undecided(
        target, wanted, origins, stable, source_alias=source_alias, client_id=client_id
    )
    for key, unsettled in undecided.items():
        if _at(unsettled) > _at(found[key]):
            found[key] = unsettled
    none = [key for key, copy in found.items() if copy.source_offset is None]
    # Copies made under `provenance: path` say only which way they came.
    empty = [key for key in none if wanted[key].start == 0 and key not in settled.others]
    return {**found, **_whole_logs_without(target, empty, client_id=client_id)}


def _at(copy: LastCopy) -> int:
    return -1 if copy.source_offset is None else copy.source_offset


def find_undecided_copies(
    target: ClusterPlan,
    wanted: Mapping[TopicPartition, SeenTarget],
    origins: Mapping[TopicPartition, TopicPartition],
    *,
    source_alias: str,
    client_id: str,
) -> dict[TopicPartition, LastCopy]:
    """As ``find_last_copies``, of copies in transactions that have no outcome; quick where there is none.

    Raises:
        UnreachableError: a log could not be read to its end in time.
        ReplicatorError: the target refuses to be read.
    """
    if not wanted:
        return {}
    stable = _stable_ends(target, wanted, client_id=client_id)
    return _undecided(
        target, wanted, origins, stable, source_alias=source_alias, client_id=client_id
    )


def _undecided(
    target: ClusterPlan,
    wanted: Mapping[TopicPartition, SeenTarget],
    origins: Mapping[TopicPartition, TopicPartition],
    stable: Mapping[TopicPartition, int],
    *,
    source_alias: str,
    client_id: str,
) -> dict[TopicPartition, LastCopy]:
    open_ones = [key for key, seen in wanted.items() if stable[key] < seen.end]
    found: dict[TopicPartition, LastCopy] = {}
    if open_ones:
        with _TailReader(target, client_id, "read_uncommitted") as everything:
            for key in open_ones:
                prefix = hop_prefix(source_alias, *origins[key])
                last = everything.last_copy(key, stable[key], wanted[key].end, prefix)
                if last is not None:
                    found[key] = LastCopy(last[0], undecided=True, target_offset=last[1])
    return found


class _TailReader:
    """Reads the ends of target partitions, one after the other."""

    def __init__(self, target: ClusterPlan, client_id: str, isolation: Isolation) -> None:
        self._subject = f"cluster:{target.alias}"
        config = consumer_config(
            target,
            client_id=client_id,
            fetch_wait_seconds=0.01,
            partition_fetch_bytes=_ANSWER_BYTES,
            isolation=isolation,
        )
        self._consumer = open_consumer(config, subject=self._subject)
        self.others: set[TopicPartition] = set()
        """Where copies were met that do not say what they are copies of, or are others' copies."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def last_copy(
        self, key: TopicPartition, start: int, end: int, prefix: bytes
    ) -> tuple[int, int] | None:
        """Its source and target offset. Looks at longer and longer stretches from ``end`` back, until one has a copy."""
        until, size = end, _FIRST_LOOK
        while until > start:
            begin = max(start, until - size)
            found = self._read(key, begin, until, prefix)
            if found is not None:
                return found
            until, size = begin, size * _LONGER
        return None

    def _read(
        self, key: TopicPartition, start: int, until: int, prefix: bytes
    ) -> tuple[int, int] | None:
        """The highest source offset of the copies between two offsets, and where that copy stands."""
        deadline = time.monotonic() + LOOK_SECONDS
        highest: tuple[int, int] | None = None
        self._consumer.assign([ClientPartition(*key, start)])
        try:
            while time.monotonic() < deadline:
                messages = self._consumer.consume(_BATCH, 0.1)
                if any(message.error() is None for message in messages):
                    deadline = time.monotonic() + LOOK_SECONDS
                for message in messages:
                    error, offset = message.error(), message.offset()
                    if error is not None and error.code() != codes.PARTITION_EOF:
                        raise map_kafka_error(error, subject=self._subject, doing=f"read {key[0]}")
                    copied = None if error is not None else _source_offset(message, prefix)
                    if offset is None:
                        continue
                    if error is None and copied is None and _is_copy(message):
                        self.others.add(key)
                    if copied is not None and offset < until:
                        place = (copied, offset)
                        highest = place if highest is None else max(highest, place)
                    if offset + (error is None) >= until:
                        return highest
        finally:
            self._consumer.unassign()
        raise UnreachableError(
            f"cannot read {key[0]}/{key[1]} to offset {until}: nothing more of it came for {LOOK_SECONDS:g} seconds",
            subject=self._subject,
            remedy="Check that the partition has a leader.",
        )


def _whole_logs_without(
    target: ClusterPlan, empty: Collection[TopicPartition], *, client_id: str
) -> dict[TopicPartition, LastCopy]:
    """Those of logs without a copy, from their start on, that are not compacted: nothing was deleted from them."""
    if not empty:
        return {}
    admin = ClusterAdmin(target, client_id=client_id)
    try:
        settings = admin.topic_configs({topic for topic, _ in empty})
    except NotAuthorizedError:
        return {}
    finally:
        admin.close()
    policies = {name: each.get("cleanup.policy") for name, each in settings.items()}
    kept = {name for name, each in policies.items() if each is not None and each.value == "delete"}
    return {key: LastCopy(None, never_deleted=True) for key in empty if key[0] in kept}


def _stable_ends(
    target: ClusterPlan, wanted: Mapping[TopicPartition, SeenTarget], *, client_id: str
) -> dict[TopicPartition, int]:
    """Where committed reading ends: at the first open transaction, or at the end of the log."""
    admin = ClusterAdmin(target, client_id=client_id)
    try:
        stable = admin.every_offset(wanted, at="latest", isolation="read_committed")
    finally:
        admin.close()
    return {key: max(seen.start, min(stable[key], seen.end)) for key, seen in wanted.items()}


def _hops(message: Message) -> bytes | None:
    try:
        headers = cast("list[tuple[str, bytes | None]] | None", message.headers())
    except SystemError:  # a header name that is no text: this engine never writes one
        return None
    return find_hops(headers).value


def _is_copy(message: Message) -> bool:
    return _hops(message) is not None


def _source_offset(message: Message, prefix: bytes) -> int | None:
    value = _hops(message)
    last = b"" if value is None else value.rsplit(b" ", 1)[-1]
    return int(last[len(prefix) :]) if last.startswith(prefix) else None
