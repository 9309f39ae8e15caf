"""Storing positions for a consumer group that nobody is a member of.

What a consumer does that is given its partitions by hand: OffsetCommit without a member or a generation. The
group's coordinator takes it as long as the group has no members.
"""

import time
from collections.abc import Mapping

from replicator.errors import (
    GroupInUseError,
    ReplicatorError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import FindCoordinatorRequest, OffsetCommitRequest

_FIND_VERSION, _GROUP = 3, 0
_COMMIT_VERSION = 9
"""The newest that names topics; from 10 on they have ids."""

_NO_MEMBER, _NO_GENERATION = "", -1
_MOVING = frozenset({14, 15, 16})  # loading, not available, not the coordinator
_GROUP_REFUSED = 30
_HAS_MEMBERS = frozenset({22, 25, 27, 113})
"""Illegal generation, unknown member, rebalance, stale epoch: answers to one who is no member where there are some."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 1.0

_TOPIC = OffsetCommitRequest.OffsetCommitRequestTopic
_PARTITION = _TOPIC.OffsetCommitRequestPartition


class GroupPositions:
    """One group of one cluster; keeps the connection to its coordinator. For one thread at a time."""

    def __init__(self, cluster: ClusterPlan, group: str, *, client_id: str, doing: str) -> None:
        """``doing`` is what errors say was tried, to go after "cannot". Nothing is sent yet."""
        self._cluster = cluster
        self._group = group
        self._client_id = client_id
        self._doing = doing
        self._subject = f"cluster:{cluster.alias}"
        self._connection: BrokerConnection | None = None

    def store(
        self, positions: Mapping[TopicPartition, int], *, timeout_seconds: float
    ) -> dict[TopicPartition, ReplicatorError]:
        """Stores next offsets; returns why not for those partitions that were refused alone.

        Waits for coordinators that move, load or go away. Without an answer in time nobody knows
        whether the positions are stored; storing them again is safe.

        Raises:
            NotAuthorizedError: our user lacks READ on the group.
            GroupInUseError: the group has members, whose positions these would be.
            ReplicatorError: the cluster does not answer in time, or refuses us.
        """
        deadline, pause = time.monotonic() + timeout_seconds, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._stored(positions, deadline)
            except (UnreachableError, TransientBrokerError):
                self.close()
                if time.monotonic() + pause >= deadline:
                    raise
                time.sleep(pause)  # another broker has to become the coordinator
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Hangs up; the next positions find the coordinator anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _stored(
        self, positions: Mapping[TopicPartition, int], deadline: float
    ) -> dict[TopicPartition, ReplicatorError]:
        if self._connection is None:
            self._connection = self._coordinator(deadline)
        request = _request(self._group, positions)
        answer = self._connection.call(request, newest=_COMMIT_VERSION, deadline=deadline)
        refused: dict[TopicPartition, ReplicatorError] = {}
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code:
                    place = (topic.name, part.partition_index)
                    refused[place] = self._refusal(part.error_code, place)
        return refused

    def _refusal(self, code: int, place: TopicPartition) -> ReplicatorError:
        """Why one partition was refused; raised where it is the group that was."""
        if code in _HAS_MEMBERS:
            raise GroupInUseError(self._group, subject=self._subject, doing=self._doing)
        if code in _MOVING or code == _GROUP_REFUSED:
            raise self._error(code)
        return code_error(
            code, subject=self._subject, doing=f"{self._doing}: position of {place[0]}/{place[1]}"
        )

    def _coordinator(self, deadline: float) -> BrokerConnection:
        with any_broker(self._cluster, client_id=self._client_id, deadline=deadline) as asked:
            request = FindCoordinatorRequest(key=self._group, key_type=_GROUP)
            answer = asked.call(request, newest=_FIND_VERSION, deadline=deadline)
        if answer.error_code:
            raise self._error(answer.error_code)
        return BrokerConnection(
            self._cluster, (answer.host, answer.port), client_id=self._client_id, deadline=deadline
        )

    def _error(self, code: int) -> ReplicatorError:
        right = "READ (to commit offsets) on the group"
        return code_error(code, subject=self._subject, doing=self._doing, right=right)


def _request(group: str, positions: Mapping[TopicPartition, int]) -> OffsetCommitRequest:
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for (topic, partition), offset in positions.items():
        by_topic.setdefault(topic, []).append((partition, offset))
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id=_NO_MEMBER,
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[
            _TOPIC(
                name=topic,
                partitions=[
                    _PARTITION(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                    for partition, offset in offsets
                ],
            )
            for topic, offsets in by_topic.items()
        ],
    )
