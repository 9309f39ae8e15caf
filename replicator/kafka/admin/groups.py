"""Consumer groups: which there are, where they stand, and moving them.

Who is in them is asked in ``replicator.wire.groups.group_states``, where they are deleted too. Positions are read with a plain consumer of the group. The admin client's own call for it
(``list_consumer_group_offsets`` of confluent-kafka 2.16.1) can end the process with a segmentation
fault while a broker restarts.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.session import AdminSession, chunks
from replicator.kafka.clients.client import open_consumer
from replicator.kafka.clients.errors import (
    ConnectionTrouble,
    as_kafka_error,
    map_kafka_error,
    may_pass,
)
from replicator.kafka.clients.settings import consumer_config

Answer = TypeVar("Answer")

_ATTEMPT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group stands in one partition."""

    offset: int
    metadata: str
    leader_epoch: int | None


def list_groups(session: AdminSession) -> tuple[str, ...]:
    """Names of all consumer groups our user may see."""
    answer = session.result(
        lambda: session.client.list_consumer_groups(request_timeout=session.timeout_seconds),
        "list the consumer groups",
    )
    if not answer.valid and answer.errors:
        raise map_kafka_error(
            as_kafka_error(answer.errors[0]),
            subject=session.subject,
            doing="list the consumer groups",
        )
    return tuple(sorted(listing.group_id for listing in answer.valid))


def committed_offsets(
    session: AdminSession, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, CommittedOffset]:
    """Where the group stands; partitions without a position are absent."""
    doing = f"read the positions of group {group}"

    def read(consumer: Consumer, timeout: float) -> dict[TopicPartition, CommittedOffset]:
        positions: dict[TopicPartition, CommittedOffset] = {}
        for chunk in chunks(sorted(set(partitions)), session.chunk_size):
            wanted = [ClientPartition(topic, number) for topic, number in chunk]
            for part in consumer.committed(wanted, timeout=timeout):
                if part.error is not None:
                    raise map_kafka_error(part.error, subject=f"group:{group}", doing=doing)
                if part.offset != OFFSET_INVALID and part.offset >= 0:
                    # None where it is not known, whatever the library's stub says.
                    epoch: int | None = part.leader_epoch
                    positions[part.topic, part.partition] = CommittedOffset(
                        part.offset, part.metadata or "", epoch
                    )
        return positions

    return _as_group(session, group, read, doing=doing)


def commit_offsets(
    session: AdminSession, group: str, positions: Mapping[TopicPartition, tuple[int, str]]
) -> dict[TopicPartition, ReplicatorError | None]:
    """Sets positions (offset, metadata) of a group that nobody is in.

    Returns why for each partition where it was not done; a group with members refuses all.
    """
    doing = f"set positions of group {group}"

    def failure(error: KafkaError) -> ReplicatorError:
        return map_kafka_error(error, subject=f"group:{group}", doing=doing)

    def write(consumer: Consumer, timeout: float) -> dict[TopicPartition, ReplicatorError | None]:
        outcome: dict[TopicPartition, ReplicatorError | None] = {}
        for chunk in chunks(sorted(positions.items()), session.chunk_size):
            wanted = [
                ClientPartition(topic, number, offset, metadata=metadata)
                for (topic, number), (offset, metadata) in chunk
            ]
            # A commit has no deadline of its own, a question about positions has: ask first.
            consumer.committed(wanted[:1], timeout=timeout)
            try:
                done = consumer.commit(offsets=wanted, asynchronous=False)
            except KafkaException as error:
                refused = failure(as_kafka_error(error))
                if refused.retriable:
                    raise
                outcome.update((key, refused) for key, _ in chunk)  # all, with the same reason
                continue
            for part in done:
                outcome[part.topic, part.partition] = failure(part.error) if part.error else None
        return outcome

    return _as_group(session, group, write, doing=doing)


def _as_group(
    session: AdminSession, group: str, act: Callable[[Consumer, float], Answer], *, doing: str
) -> Answer:
    """Acts as a consumer that has the group's name but never joins it."""
    trouble = ConnectionTrouble()
    config = consumer_config(
        session.cluster, client_id=session.client_id, group_id=group, on_error=trouble
    )
    # The library waits this long for the coordinator, whatever a commit's caller wants.
    config["socket.timeout.ms"] = round(session.timeout_seconds * 1000)
    consumer = open_consumer(config, subject=session.subject)
    deadline = session.deadline()
    try:
        while True:
            left = deadline - time.monotonic()
            try:
                # In short attempts: why a coordinator cannot be asked is told only between them.
                return act(consumer, max(0.1, min(left, _ATTEMPT_SECONDS)))
            except KafkaException as error:
                mapped = map_kafka_error(
                    _told(consumer) or as_kafka_error(error),
                    subject=f"group:{group}",
                    doing=doing,
                    cause=trouble.cause(),
                )
                if time.monotonic() >= deadline or not may_pass(mapped):
                    raise mapped from error
    finally:
        consumer.close()


def _told(consumer: Consumer) -> KafkaError | None:
    """What the library says beside the calls, such as that we have no right to the group."""
    message = consumer.poll(0.1)
    return None if message is None else message.error()
