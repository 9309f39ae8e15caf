"""Positions for a group that nobody is a member of: OffsetCommit without a member or a generation.

So does a consumer that is given its partitions by hand. The group's coordinator takes it as long as the group has no members.
"""

from collections.abc import Mapping

from replicator.identifiers import TopicPartition
from replicator.wire.connection.protocol import OffsetCommitRequest

COMMIT_VERSION = 9
"""The newest that names topics; from 10 on they have ids."""

MOVING = frozenset({14, 15, 16})
"""Loading, not available, not the coordinator."""

HAS_MEMBERS = frozenset({22, 25, 27, 113})
"""Illegal generation, unknown member, rebalance, stale epoch: answers to one who is no member where there are some."""

_NO_MEMBER, _NO_GENERATION = "", -1
_TOPIC = OffsetCommitRequest.OffsetCommitRequestTopic
_PARTITION = _TOPIC.OffsetCommitRequestPartition


def offset_commit(
    group: str, positions: Mapping[TopicPartition, tuple[int, str]]
) -> OffsetCommitRequest:
    """The request for positions (next offset, metadata) of one group."""
    topics: dict[
        str, list[OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition]
    ] = {}
    for (topic, number), (offset, metadata) in sorted(positions.items()):
        topics.setdefault(topic, []).append(
            _PARTITION(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=-1,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id=_NO_MEMBER,
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[_TOPIC(name=name, partitions=each) for name, each in topics.items()],
    )
