"""What a failover loses, stated before the operator is asked. Pure.

Where the old cluster still answers, its ends are known and the loss is exact. Where it does not, the last
contact says where its logs ended and how fast they grew: what was written since is estimated at that
rate, rounded up, for the whole time since the contact. So the result is an upper bound for writers
that kept their rate and stopped no later than now.
"""

import math
from collections.abc import Iterable, Mapping

from replicator.control.store.role_records import ContactRecord
from replicator.failover.rules.report import Loss, TopicLoss
from replicator.identifiers import TopicPartition

UNDER_WAY_SECONDS = 1.0
"""What writers wrote within this time never counts as copied: the rate is a mean, and records that
were written above it and copied would otherwise hide those written last."""


def loss_by_ends(
    lag: Mapping[TopicPartition, int], oldest_seconds: Mapping[str, float] | None = None
) -> Loss:
    """Exact: records by partition that are on the old cluster and not on the new one."""
    ages = oldest_seconds or {}
    topics: dict[str, int] = {}
    for (topic, _), records in lag.items():
        topics[topic] = topics.get(topic, 0) + records
    return Loss(
        tuple(
            TopicLoss(topic, records, ages.get(topic, 0.0) if records else 0.0)
            for topic, records in sorted(topics.items())
        ),
        exact=True,
    )


def loss_by_contact(
    contact: ContactRecord, positions: Mapping[TopicPartition, int], *, now_ms: int
) -> Loss:
    """Estimated: what the last contact knew and was not copied since, and what may have come after.

    Args:
        contact: the last contact with the old cluster.
        positions: next source offset to copy, by partition.
        now_ms: when the command looks.
    """
    silent_seconds = max(0.0, (now_ms - contact.at_ms) / 1000)
    topics: list[TopicLoss] = []
    for one in contact.topics:
        known = 0
        past = 0
        for number, end in enumerate(one.ends):
            position = positions.get((one.topic, number), 0)
            known += max(0, end - position)
            past += max(0, position - end)
        since = math.ceil(one.records_per_second * silent_seconds)
        under_way = math.ceil(one.records_per_second * UNDER_WAY_SECONDS)
        records = known + max(under_way, since - past)
        late = known / one.records_per_second if one.records_per_second else 0.0
        seconds = silent_seconds + late if records else 0.0
        topics.append(TopicLoss(one.topic, records, seconds))
    return Loss(tuple(topics), exact=False)


def unknown_loss(topics: Iterable[str]) -> Loss:
    """Nothing is known of the old cluster: no contact was ever recorded."""
    return Loss(
        tuple(TopicLoss(topic, 0, 0.0) for topic in sorted(topics)), exact=False, known=False
    )
