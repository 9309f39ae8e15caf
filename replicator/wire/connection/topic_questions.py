"""What brokers are asked about topics and logs, and what their answers say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from replicator.identifiers import TopicPartition, topic_id_text
from replicator.wire.connection.protocol import ListOffsetsRequest, MetadataRequest

OFFSETS_VERSION = 5
"""From here on a new leader answers only once it knows all that was acknowledged."""

LATEST, EARLIEST = -1, -2
"""What stands for the end of a log, and for its start, where a time may be asked for."""


@dataclass(frozen=True, slots=True)
class Leader:
    """What a broker knows of a partition.

    No ``address`` where it has no leader; ``topic_id``, as Kafka's tools write it, is empty and ``epoch`` -1 where
    brokers have none.
    """

    topic_id: str
    epoch: int
    address: tuple[str, int] | None


def topics_question(names: Iterable[str]) -> MetadataRequest:
    """Asks for brokers, and who leads the partitions of these topics; creates none."""
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
    )


def told_leaders(answer: Any) -> dict[TopicPartition, Leader]:  # noqa: ANN401  the library has no types
    """What one broker's metadata say of partitions. Pure."""
    brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
    return {
        (topic.name, part.partition_index): Leader(
            topic_id=topic_id_text(found.bytes)
            if (found := getattr(topic, "topic_id", None)) and found.int
            else "",
            epoch=-1 if (epoch := getattr(part, "leader_epoch", None)) is None else epoch,
            address=brokers.get(part.leader_id),
        )
        for topic in answer.topics
        if not topic.error_code
        for part in topic.partitions
    }


def offsets_question(
    topics: Mapping[str, Iterable[int]], *, at: int = LATEST, isolation_level: int = 0
) -> ListOffsetsRequest:
    """Asks the leader of these partitions for offsets in them; level 0 counts what is not committed too."""
    kind = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            kind(
                name=name,
                partitions=[
                    kind.ListOffsetsPartition(
                        partition_index=number, current_leader_epoch=-1, timestamp=at
                    )
                    for number in numbers
                ],
            )
            for name, numbers in topics.items()
        ],
    )


def told_offsets(answer: Any) -> dict[TopicPartition, int]:  # noqa: ANN401  the library has no types
    """By topic and partition; what that broker does not lead, or does not let us see, is absent. Pure."""
    return {
        (topic.name, part.partition_index): part.offset
        for topic in answer.topics
        for part in topic.partitions
        if part.error_code == 0
    }
