"""How much history is still to be copied, and how long that will take; an estimate."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import selected_topics
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition, checkpoints_topic, is_canary_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import ClientPartition, open_consumer
from replicator.kafka.clients.settings import consumer_config
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.policy.values import Throttle
from replicator.topology.plan import ClusterPlan, PairPlan, Plan
from replicator.wire.requests.log_dirs import sizes_on_disk

CLIENT_ID = "replicator-plan"
RECORDS_PER_SECOND = 100_000
BYTES_PER_SECOND = 50_000_000
"""What one modest worker copies when nothing throttles it; the larger of the two times counts."""
SAMPLE_RECORDS = 200
SAMPLE_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class BackfillEstimate:
    """History of one topic that is not on the target yet."""

    flow: str
    topic: str
    records: int
    bytes: int
    seconds: float

    def as_json(self) -> dict[str, object]:
        """The estimate under the field names of the contract."""
        return {
            "flow": self.flow,
            "topic": self.topic,
            "records": self.records,
            "bytes": self.bytes,
            "seconds": self.seconds,
        }


def estimate_backfill(
    plan: Plan, pair: PairPlan, source: ClusterAdmin, snapshot: PairSnapshot
) -> tuple[BackfillEstimate, ...]:
    """What each topic still has to copy; topics that are caught up are left out."""
    name = checkpoints_topic(plan.topology, pair.source.alias)
    checkpoints: dict[TopicPartition, Checkpoint] = {}
    if name in snapshot.target.sizes:
        checkpoints = read_checkpoints(plan.topology, pair, client_id=CLIENT_ID)
    wanted = [
        one
        for one in selected_topics(pair, snapshot.source.sizes, snapshot.aliases)
        if one.problem is None
        and one.topic in snapshot.source.topics
        and not is_canary_topic(one.topic)
    ]
    keys = [
        (one.topic, number)
        for one in wanted
        for number in range(snapshot.source.topics[one.topic].partitions)
    ]
    starts = source.known_offsets(keys, "earliest")
    ends = source.known_offsets(keys, "latest")
    left: dict[str, int] = {}
    behind: list[TopicPartition] = []
    for one in wanted:
        for number in range(snapshot.source.topics[one.topic].partitions):
            key = (one.topic, number)
            backlog = _backlog(one.flow.policy.start_from.kind, key, checkpoints, starts, ends)
            left[one.topic] = left.get(one.topic, 0) + backlog
            if backlog:
                behind.append(key)
    on_disk = _record_sizes_on_disk(pair.source, behind, starts, ends)
    sized = {topic for topic, _ in behind if topic in on_disk}
    sampled = _record_sizes(pair.source, [key for key in behind if key[0] not in sized], starts)
    sizes = {**sampled, **on_disk}
    return tuple(
        backfill_estimate(
            flow=one.flow.id, topic=one.topic, records=left[one.topic],
            size=round(left[one.topic] * sizes.get(one.topic, 0.0)),
            throttle=one.flow.policy.throttle,
        )
        for one in wanted
        if left.get(one.topic)
    )  # fmt: skip


def backfill_estimate(
    *, flow: str, topic: str, records: int, size: int, throttle: Throttle
) -> BackfillEstimate:
    """The pure half: records and bytes against what may be copied per second."""
    seconds = max(
        records / (throttle.records_per_second or RECORDS_PER_SECOND),
        size / (throttle.bytes_per_second or BYTES_PER_SECOND),
    )
    return BackfillEstimate(flow, topic, records, size, round(seconds, 1))


def _backlog(
    start_from: str,
    key: TopicPartition,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> int:
    start, end = starts.get(key, 0), ends.get(key, 0)
    checkpoint = checkpoints.get(key)
    if checkpoint is not None:
        return max(0, end - max(checkpoint.offset, start))
    return 0 if start_from == "latest" else max(0, end - start)


def _record_sizes_on_disk(
    source: ClusterPlan,
    keys: list[TopicPartition],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[str, float]:
    """Mean bytes per offset of each topic's log, where the brokers report sizes."""
    sizes = sizes_on_disk(source, {topic for topic, _ in keys})
    offsets: dict[str, int] = {}
    known: dict[str, int] = {}
    for key in keys:
        length = ends.get(key, 0) - starts.get(key, 0)
        if length > 0 and sizes.get(key):
            offsets[key[0]] = offsets.get(key[0], 0) + length
            known[key[0]] = known.get(key[0], 0) + sizes[key]
    return {topic: known[topic] / count for topic, count in offsets.items()}


def _record_sizes(
    source: ClusterPlan, keys: list[TopicPartition], starts: Mapping[TopicPartition, int]
) -> dict[str, float]:
    """Mean bytes per record of each topic, from its first records; bounded in time."""
    if not keys:
        return {}
    consumer = open_consumer(
        consumer_config(
            source,
            client_id=CLIENT_ID,
            fetch_wait_seconds=0.05,
            partition_fetch_bytes=64 * 1024,
            queue_bytes=32 * 1024 * 1024,
        )
    )
    seen: dict[str, list[int]] = {}
    try:
        consumer.assign([ClientPartition(*key, starts.get(key, 0)) for key in keys])
        deadline = time.monotonic() + SAMPLE_SECONDS
        left = set(keys)
        while left and time.monotonic() < deadline:
            for message in consumer.consume(SAMPLE_RECORDS, 0.1):
                key = (message.topic() or "", message.partition() or 0)
                if message.error() is not None:
                    left.discard(key)
                    continue
                sizes = seen.setdefault(key[0], [])
                sizes.append(len(message.key() or b"") + len(message.value() or b""))
                if len(sizes) >= SAMPLE_RECORDS:
                    left = {other for other in left if other[0] != key[0]}
    finally:
        consumer.close()
    return {topic: sum(sizes) / len(sizes) for topic, sizes in seen.items()}
