"""Who is in consumer groups, asked of their coordinators, who delete them too.

confluent-kafka's calls for it (2.16.1) do not survive a coordinator that goes away with the request on its way:
the client never asks again, or an assertion of the library ends the process (librdkafka issue 4605).
"""

import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from replicator.errors import ReplicatorError, TransientBrokerError, UnreachableError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
)
from replicator.wire.groups.group_description import GroupDescription, Member

_FIND_VERSION, _MANY_AT_ONCE = 4, 4
_DESCRIBE_VERSION = 6
_DELETE_VERSION = 2
_LIST_VERSION = 5
"""The first that tells a group's kind, and so whether there are groups of the newer protocol (KIP-848)."""

_MOVING = frozenset({14, 15, 16})  # loading, not available, not the coordinator
_GROUP_ID_NOT_FOUND = 69
_NEWER = "consumer"
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 1.0

_Address = tuple[str, int]
Answer = TypeVar("Answer")


class GroupStates:
    """Describes and deletes groups of one cluster; keeps its connections. For one thread at a time."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str) -> None:
        self._cluster = cluster
        self._client_id = client_id
        self._coordinators: dict[str, _Address] = {}
        self._connections: dict[_Address, BrokerConnection] = {}

    def read(
        self, names: Iterable[str], *, timeout_seconds: float = 10.0
    ) -> dict[str, GroupDescription]:
        """Each group, of any protocol type; one that does not exist is DEAD.

        Waits for coordinators that move or go away. Groups of the newer protocol have a state and no
        members here.

        Raises:
            NotAuthorizedError: our user lacks DESCRIBE on one of them.
            ReplicatorError: the cluster does not answer in time, or refuses us.
        """
        found: dict[str, GroupDescription] = {}
        self._until_told(names, found, self._read, timeout_seconds)
        return found

    def delete(
        self, names: Iterable[str], *, timeout_seconds: float = 10.0
    ) -> dict[str, ReplicatorError | None]:
        """Deletes groups with their positions; None for each that is gone, else why not.

        A group that does not exist is a NotFoundError; one whose first answer was lost may be deleted and become one.

        Raises:
            ReplicatorError: the cluster does not answer in time, or refuses our login.
        """
        told: dict[str, ReplicatorError | None] = {}
        self._until_told(names, told, self._delete, timeout_seconds)
        return told

    def _until_told(
        self,
        names: Iterable[str],
        found: dict[str, Answer],
        attempt: Callable[[list[str], dict[str, Answer], float], None],
        timeout_seconds: float,
    ) -> None:
        """Repeats ``attempt``, which adds what it is told, until all is told."""
        deadline = time.monotonic() + timeout_seconds
        missing = sorted(set(names))
        pause = _FIRST_PAUSE_SECONDS
        while missing:
            try:
                attempt(missing, found, deadline)
            except (UnreachableError, TransientBrokerError):
                self.close()
                if time.monotonic() + pause >= deadline:
                    raise
                time.sleep(pause)  # another broker has to become the coordinator
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            except ReplicatorError:
                self.close()
                raise
            missing = [name for name in missing if name not in found]

    def close(self) -> None:
        """Hangs up; the next look finds the coordinators anew."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}
        self._coordinators = {}

    def _read(self, names: list[str], found: dict[str, GroupDescription], deadline: float) -> None:
        """Adds what can be told now; a group whose coordinator moves is a TransientBrokerError at the end."""
        moving: ReplicatorError | None = None
        for connection, groups in self._by_coordinator(names, deadline):
            request = DescribeGroupsRequest(groups=groups, include_authorized_operations=False)
            answer = connection.call(request, newest=_DESCRIBE_VERSION, deadline=deadline)
            absent: list[str] = []
            for each in answer.groups:
                if each.error_code in _MOVING:
                    moving = self._refusal(each.error_code, each.group_id)
                elif each.error_code == _GROUP_ID_NOT_FOUND or each.group_state == "Dead":
                    absent.append(each.group_id)
                elif each.error_code:
                    raise self._refusal(each.error_code, each.group_id)
                else:
                    found[each.group_id] = _description(each)
            found.update(_of_newer_protocol(connection, absent, deadline))
        if moving is not None:
            raise moving

    def _delete(
        self, names: list[str], told: dict[str, ReplicatorError | None], deadline: float
    ) -> None:
        moving: ReplicatorError | None = None
        for connection, groups in self._by_coordinator(names, deadline):
            request = DeleteGroupsRequest(groups_names=groups)
            answer = connection.call(request, newest=_DELETE_VERSION, deadline=deadline)
            for each in answer.results:
                refused = (
                    self._refusal(each.error_code, each.group_id, "delete")
                    if each.error_code
                    else None
                )
                if each.error_code in _MOVING:
                    moving = refused
                else:
                    told[each.group_id] = refused
        if moving is not None:
            raise moving

    def _by_coordinator(
        self, names: list[str], deadline: float
    ) -> Iterator[tuple[BrokerConnection, list[str]]]:
        self._find([name for name in names if name not in self._coordinators], deadline)
        places: dict[_Address, list[str]] = {}
        for name in names:
            places.setdefault(self._coordinators[name], []).append(name)
        for address, groups in places.items():
            yield self._connection(address, deadline), groups

    def _find(self, names: list[str], deadline: float) -> None:
        if not names:
            return
        with any_broker(self._cluster, client_id=self._client_id, deadline=deadline) as connection:
            newest = connection.versions.get(FindCoordinatorRequest.API_KEY, (0, 0))[1]
            asked = [names] if newest >= _MANY_AT_ONCE else [[name] for name in names]
            for keys in asked:
                request = FindCoordinatorRequest(key=keys[0], key_type=0, coordinator_keys=keys)
                answer = connection.call(request, newest=_FIND_VERSION, deadline=deadline)
                one_by_one = newest < _MANY_AT_ONCE
                for each in [answer] if one_by_one else answer.coordinators:
                    name = keys[0] if one_by_one else each.key
                    if each.error_code:
                        raise self._refusal(each.error_code, name)
                    self._coordinators[name] = (each.host, each.port)

    def _connection(self, address: _Address, deadline: float) -> BrokerConnection:
        if address not in self._connections:
            self._connections[address] = BrokerConnection(
                self._cluster, address, client_id=self._client_id, deadline=deadline
            )
        return self._connections[address]

    def _refusal(self, code: int, group: str, verb: str = "describe") -> ReplicatorError:
        return code_error(
            code,
            subject=f"group:{group}",
            doing=f"{verb} group {group}",
            right=f"{verb.upper()} on group '{group}'",
        )


def _description(each: Any) -> GroupDescription:  # noqa: ANN401 - the protocol's classes carry no types
    return GroupDescription(
        group=each.group_id,
        state=_in_capitals(each.group_state),
        protocol="CLASSIC",
        members=tuple(
            Member(
                id=member.member_id,
                client_id=member.client_id,
                host=member.client_host,
                instance_id=getattr(member, "group_instance_id", None) or None,
                partitions=(
                    assigned_partitions(member.member_assignment)
                    if each.protocol_type == "consumer"
                    else ()
                ),
            )
            for member in each.members
        ),
    )


def _of_newer_protocol(
    connection: BrokerConnection, names: list[str], deadline: float
) -> Mapping[str, GroupDescription]:
    """Groups that the older question does not know: it calls those of the newer protocol dead."""
    states: dict[str, str] = {}
    if names and connection.versions.get(ListGroupsRequest.API_KEY, (0, 0))[1] >= _LIST_VERSION:
        request = ListGroupsRequest(states_filter=[], types_filter=[_NEWER])
        answer = connection.call(request, newest=_LIST_VERSION, deadline=deadline)
        states = {each.group_id: _in_capitals(each.group_state) for each in answer.groups}
    return {
        name: GroupDescription(
            name, states.get(name, "DEAD"), "CONSUMER" if name in states else "UNKNOWN", ()
        )
        for name in names
    }


def _in_capitals(state: str) -> str:
    """``PreparingRebalance`` as ``PREPARING_REBALANCE``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", state).upper()


def assigned_partitions(assignment: bytes) -> tuple[TopicPartition, ...]:
    """What a member of a classic group was given: ``ConsumerProtocolAssignment``, any version. Pure.

    Nothing where a client writes something else there; a group that is about to share them out has none.
    """
    try:
        return _assigned(assignment) if assignment else ()
    except (struct.error, UnicodeDecodeError):
        return ()


def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    found: list[TopicPartition] = []
    (topics,), at = struct.unpack_from(">i", assignment, 2), 6
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", assignment, at)
        topic = assignment[at + 2 : at + 2 + size].decode()
        at += 2 + size
        (count,) = struct.unpack_from(">i", assignment, at)
        found += [(topic, each) for each in struct.unpack_from(f">{count}i", assignment, at + 4)]
        at += 4 + 4 * count
    return tuple(sorted(found))
