"""Positions of consumer groups, set from outside."""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from replicator.testing.kit.endpoints import Endpoint
from replicator.testing.kit.waiting import wait_until

_TIMEOUT_SECONDS = 60.0
_NOT_YET = {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE}
"""What the first commit on a new cluster may hear: its groups' topic is being made."""


def commit_positions(
    cluster: Endpoint,
    group: str,
    positions: Mapping[tuple[str, int], int],
    *,
    metadata: str = "",
) -> None:
    """Leaves a group where a consumer that stopped there would have left it.

    Args:
        cluster: which.
        group: a group without members.
        positions: next offset to read, by topic and partition.
        metadata: kept beside each offset.

    Raises:
        KafkaException: the broker said no.
        NotInTimeError: the cluster has no coordinator for too long.
    """
    wanted = [
        TopicPartition(topic, number, offset, metadata=metadata)
        for (topic, number), offset in positions.items()
    ]
    consumer = Consumer({**cluster.client_settings(), "group.id": group})
    try:
        wait_until(
            lambda: _committed(consumer, wanted),
            timeout_seconds=_TIMEOUT_SECONDS,
            describe=f"a coordinator of group {group}",
        )
    finally:
        consumer.close()


def _committed(consumer: Consumer, wanted: list[TopicPartition]) -> bool:
    try:
        consumer.commit(offsets=wanted, asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() in _NOT_YET:
            return False
        raise
    return True
