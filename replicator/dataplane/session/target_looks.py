"""Asking the target about the partitions of a lane: what their logs are now, and the last copy in them."""

import time
from collections.abc import Iterable, Mapping
from typing import cast

from replicator.dataplane.session.target_loss import SeenTarget
from replicator.errors import ReplicatorError, UnreachableError
from replicator.identifiers import TopicPartition
from replicator.kafka import codes
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.client import ClientPartition, Consumer, Message, open_consumer
from replicator.kafka.errors import map_kafka_error
from replicator.kafka.settings import consumer_config
from replicator.policy.provenance import find_hops, hop_prefix
from replicator.topology.plan import ClusterPlan

LOOK_SECONDS = 30.0
_FIRST_LOOK = 500
_LONGER = 4
_BATCH = 500
_NO_GROUP = "replicator.no-group"  # librdkafka wants a name; nothing is committed under it


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
        seen[key] = SeenTarget(described[key[0]].topic_id, start, end.offset, end.leader_epoch)
    return seen


def find_last_copies(
    target: ClusterPlan,
    wanted: Mapping[TopicPartition, SeenTarget],
    origins: Mapping[TopicPartition, TopicPartition],
    *,
    source_alias: str,
    client_id: str,
) -> dict[TopicPartition, int | None]:
    """The highest source offset among the last committed copies in each target partition.

    The highest of a stretch, not the last record: what was put back from quarantine stands behind newer
    records. ``origins`` are the source partitions by target partition.

    Raises:
        UnreachableError: a log could not be read to its end in time; an open transaction may be in it.
        ReplicatorError: the target refuses to be read.
    """
    if not wanted:
        return {}
    subject = f"cluster:{target.alias}"
    config = consumer_config(
        target, client_id=client_id, group_id=_NO_GROUP, fetch_wait_seconds=0.01
    )
    consumer = open_consumer(config, subject=subject)
    try:
        return {
            key: _last_copy(
                consumer, key, seen, hop_prefix(source_alias, *origins[key]), subject=subject
            )
            for key, seen in wanted.items()
        }
    finally:
        consumer.close()


def _last_copy(
    consumer: Consumer, key: TopicPartition, seen: SeenTarget, prefix: bytes, *, subject: str
) -> int | None:
    """Looks at longer and longer stretches from the end of the log, until one has a copy."""
    until, size = seen.end, _FIRST_LOOK
    while until > seen.start:
        start = max(seen.start, until - size)
        found = _highest(consumer, key, start, until, prefix, subject=subject)
        if found is not None:
            return found
        until, size = start, size * _LONGER
    return None


def _highest(
    consumer: Consumer,
    key: TopicPartition,
    start: int,
    until: int,
    prefix: bytes,
    *,
    subject: str,
) -> int | None:
    deadline = time.monotonic() + LOOK_SECONDS
    highest: int | None = None
    consumer.assign([ClientPartition(*key, start)])
    try:
        while time.monotonic() < deadline:
            for message in consumer.consume(_BATCH, 0.1):
                error, offset = message.error(), message.offset()
                if error is None:
                    if offset is not None and offset < until:
                        copied = _source_offset(message, prefix)
                        highest = copied if highest is None else max(highest, copied or -1)
                elif error.code() != codes.PARTITION_EOF:
                    raise map_kafka_error(error, subject=subject, doing=f"read {key[0]}")
                if offset is not None and offset + (error is None) >= until:
                    return highest
    finally:
        consumer.unassign()
    raise UnreachableError(
        f"cannot read {key[0]}/{key[1]} to offset {until} within {LOOK_SECONDS:g} seconds",
        subject=subject,
        remedy="Check that the partition has a leader, and no transaction that stays open.",
    )


def _source_offset(message: Message, prefix: bytes) -> int | None:
    try:
        headers = cast("list[tuple[str, bytes | None]] | None", message.headers())
    except SystemError:  # a header name that is no text: this engine never writes one
        return None
    value = find_hops(headers).value
    last = b"" if value is None else value.rsplit(b" ", 1)[-1]
    return int(last[len(prefix) :]) if last.startswith(prefix) else None
