"""Which topics begin with a bulk copy of their history: looked up once, when a topic is first taken.

The decision is written in the transaction that makes the topic ``active``, so that no lane
ever copies what Spark is to copy.
"""

from collections.abc import Iterable, Mapping

from replicator.control.reconcile.cluster_view import TopicFacts
from replicator.control.reconcile.topic_selection import SelectedTopic
from replicator.control.records.pair_records import BackfillRecord, TopicRecord
from replicator.control.store.state import ControlState
from replicator.identifiers import TopicPartition, is_canary_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.log_dirs import sizes_on_disk

CONTROLLER = "controller"
"""``by`` of a backfill that no operator asked for: workers run it by themselves."""


def initial_backfill_topics(
    source: ClusterPlan,
    admin: ClusterAdmin,
    wanted: Iterable[SelectedTopic],
    topics: Mapping[str, TopicFacts],
) -> dict[TopicPartition, int]:
    """Bytes on disk of partitions with records, of topics that ``may_begin_with_backfill``.

    0 where brokers do not report sizes.

    Raises:
        ClusterError: the source does not answer.
    """
    asked = [one for one in wanted if one.topic in topics]
    keys = [(one.topic, n) for one in asked for n in range(topics[one.topic].partitions)]
    if not keys:
        return {}
    starts = admin.known_offsets(keys, "earliest")
    ends = admin.known_offsets(keys, "latest")
    sizes = sizes_on_disk(source, {topic for topic, _ in keys})
    return {
        key: sizes.get(key, 0) for key in keys if ends.get(key, 0) > starts.get(key, ends.get(key, 0))
    }  # fmt: skip


def may_begin_with_backfill(one: SelectedTopic, control: ControlState) -> bool:
    """Whether the topic is taken for the first time by a flow that wants its history in bulk."""
    policy = one.flow.policy
    held = control.topic(one.flow.source, one.flow.link, one.topic)
    return (
        policy.bulk_sync.mode != "never"
        and policy.runtime == "workers"
        and policy.start_from.kind != "latest"
        and one.problem is None
        and not is_canary_topic(one.topic)
        and (held is None or not held.activated)
    )


def initial_backfill_records(
    one: SelectedTopic, record: TopicRecord, histories: Mapping[TopicPartition, int], *, at_ms: int
) -> tuple[BackfillRecord, ...]:
    """The backfill records to write with a topic's first active record; none when lanes are to copy it."""
    bulk = one.flow.policy.bulk_sync
    held = {key: size for key, size in histories.items() if key[0] == one.topic}
    whole = sum(held.values())
    if not held or (bulk.mode == "auto" and whole < bulk.threshold_bytes):
        return ()
    return tuple(
        BackfillRecord(
            source=str(one.flow.source),
            link=str(one.flow.link),
            topic=one.topic,
            partition=number,
            state="seeding",
            at_ms=at_ms,
            by=CONTROLLER,
        )
        for _, number in sorted(held)
        if number < record.working_partitions
    )
