"""What a failover loses, stated before the operator is asked. Pure.

Where the old cluster still answers, its ends are known and the loss is exact. Where it does not, the last
contact says where its logs ended and how fast they grew: what was written since is estimated at that
rate, rounded up, for the whole time since the contact. So the result is an upper bound for writers
that kept their rate and stopped no later than now. A contact that is too old for that, or older than
the role, bounds nothing: then the loss is unknown since that time.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from replicator.control.records.role_records import ContactRecord
from replicator.failover.report.backlog import Backlog, Unknown
from replicator.failover.report.report import Loss, TopicLoss
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition

UNDER_WAY_SECONDS = 1.0
"""What writers wrote within this time never counts as copied: the rate is a mean, and records that
were written above it and copied would otherwise hide those written last."""

OLD_SECONDS = 60.0
"""A contact is written every 10 s at least: one that is older than this ended before the failure did."""


def loss_by_backlog(backlog: Backlog, oldest_seconds: Mapping[str, float] | None = None) -> Loss:
    """Records by partition that are on the old cluster and not on the new one, by its own word.

    Exact unless transactions are open there: theirs may still be aborted.
    """
    ages = oldest_seconds or {}
    topics: dict[str, int] = {}
    for (topic, _), records in backlog.records.items():
        topics[topic] = topics.get(topic, 0) + records
    return Loss(
        tuple(
            TopicLoss(topic, records, ages.get(topic, 0.0) if records else 0.0)
            for topic, records in sorted(topics.items())
        ),
        exact=not backlog.open_from and not backlog.unknown,
        known=not backlog.unknown,
        unknown=backlog.unknown,
    )


def loss_by_contact(
    contact: ContactRecord,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    *,
    now_ms: int,
    since_ms: int = 0,
    old_seconds: float = OLD_SECONDS,
    topics: Iterable[str] = (),
) -> Loss:
    """Estimated: what the last contact knew and was not copied since, and what may have come after.

    Args:
        contact: the last contact with the old cluster.
        checkpoints: of the flow.
        now_ms: when the command looks.
        since_ms: when the role in force began; an older contact is of another time.
        old_seconds: from which age on the contact bounds nothing.
        topics: that the flow copies, by its own records.
    """
    silent_seconds = max(0.0, (now_ms - contact.at_ms) / 1000)
    found: list[TopicLoss] = []
    unknown: list[Unknown] = []
    for one in contact.topics:
        known = 0
        past = 0
        for number, end in enumerate(one.ends):
            checkpoint = checkpoints.get((one.topic, number))
            position = checkpoint.offset if checkpoint is not None else 0
            if end < 0:
                unknown.append(Unknown(one.topic, "it was not read at the last contact", number))
            elif checkpoint is not None and checkpoint.problem:
                unknown.append(Unknown(one.topic, f"copying stopped: {checkpoint.problem}", number))
            known += max(0, end - position)
            past += max(0, position - max(0, end))
        since = math.ceil(one.records_per_second * silent_seconds)
        under_way = math.ceil(one.records_per_second * UNDER_WAY_SECONDS)
        records = known + max(under_way, since - past)
        late = known / one.records_per_second if one.records_per_second else 0.0
        seconds = silent_seconds + late if records else 0.0
        found.append(TopicLoss(one.topic, records, seconds))
    contacted = {one.topic for one in contact.topics}
    unknown += [
        Unknown(topic, "it was not there at the last contact")
        for topic in sorted(topics)
        if topic not in contacted
    ]
    if contact.at_ms < since_ms or silent_seconds > old_seconds:
        moment = datetime.fromtimestamp(contact.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        unknown = [Unknown(topic, f"unknown since {moment}") for topic in sorted(contacted)]
    return Loss(tuple(found), exact=False, known=not unknown, unknown=tuple(unknown))


def unknown_loss(topics: Iterable[str]) -> Loss:
    """Nothing is known of the old cluster: no contact was ever recorded."""
    return Loss(
        tuple(TopicLoss(topic, 0, 0.0) for topic in sorted(topics)), exact=False, known=False
    )
