"""Storing positions for one group of the replicator's own, which nobody is a member of."""

from collections.abc import Mapping
from typing import Any

from replicator.errors import GroupInUseError, NotAuthorizedError, ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.groups.coordinators import GroupCoordinators
from replicator.wire.groups.offset_commit import (
    COMMIT_VERSION,
    HAS_MEMBERS,
    MOVING,
    offset_commit,
)

_GROUP_REFUSED = 30

Refused = dict[TopicPartition, ReplicatorError]


class GroupPositions:
    """One group of one cluster; keeps the connection to its coordinator. For one thread at a time."""

    def __init__(self, cluster: ClusterPlan, group: str, *, client_id: str, doing: str) -> None:
        """``doing`` is what errors say was tried, to go after "cannot". Nothing is sent yet."""
        self._group = group
        self._doing = doing
        self._subject = f"cluster:{cluster.alias}"
        self._coordinators = GroupCoordinators(cluster, client_id=client_id)

    def store(self, positions: Mapping[TopicPartition, int], *, timeout_seconds: float) -> Refused:
        """Stores next offsets; returns why not for those partitions that were refused alone.

        Waits for coordinators that move, load or go away. Without an answer in time nobody knows
        whether the positions are stored; storing them again is safe.

        Raises:
            NotAuthorizedError: our user lacks READ on the group.
            GroupInUseError: the group has members, whose positions these would be.
            ReplicatorError: the cluster does not answer in time, or refuses us.
        """
        wanted = {place: (offset, "") for place, offset in positions.items()}

        def question(
            connection: BrokerConnection, _: list[str], deadline: float
        ) -> dict[str, Refused | ReplicatorError]:
            request = offset_commit(self._group, wanted)
            answer = connection.call(request, newest=COMMIT_VERSION, deadline=deadline)
            return {self._group: self._told(answer)}

        told = self._coordinators.told([self._group], question, timeout_seconds=timeout_seconds)
        answer = told[self._group]
        if isinstance(answer, NotAuthorizedError):
            raise self._error(_GROUP_REFUSED)  # also where its coordinator is not named to us
        if isinstance(answer, ReplicatorError):
            raise answer
        return answer

    def close(self) -> None:
        """Hangs up; the next positions find the coordinator anew."""
        self._coordinators.close()

    def _told(self, answer: Any) -> Refused | ReplicatorError:  # noqa: ANN401 - the protocol's classes carry no types
        refused: Refused = {}
        for topic in answer.topics:
            for part in topic.partitions:
                code, place = part.error_code, f"{topic.name}/{part.partition_index}"
                if code in HAS_MEMBERS:
                    return GroupInUseError(self._group, subject=self._subject, doing=self._doing)
                if code in MOVING or code == _GROUP_REFUSED:
                    return self._error(code)
                if code:
                    refused[topic.name, part.partition_index] = code_error(
                        code, subject=self._subject, doing=f"{self._doing}: position of {place}"
                    )
        return refused

    def _error(self, code: int) -> ReplicatorError:
        right = "READ (to commit offsets) on the group"
        return code_error(code, subject=self._subject, doing=self._doing, right=right)
