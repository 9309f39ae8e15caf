"""Who is in consumer groups, asked of their coordinators, who delete them too.

confluent-kafka's calls for it (2.16.1) do not survive a coordinator that goes away with the request on its way:
the client never asks again, or an assertion of the library ends the process (librdkafka issue 4605).
"""

import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.protocol import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from replicator.wire.groups.coordinators import GroupCoordinators, group_refusal
from replicator.wire.groups.group_description import GroupDescription, Member

_DESCRIBE_VERSION = 6
_DELETE_VERSION = 2
_LIST_VERSION = 5
"""The first that tells a group's kind, and so whether there are groups of the newer protocol (KIP-848)."""

_GROUP_ID_NOT_FOUND = 69
_NEWER = "consumer"


class GroupStates:
    """Describes and deletes groups of one cluster. For one thread at a time."""

    def __init__(self, coordinators: GroupCoordinators) -> None:
        self._coordinators = coordinators

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
        told = self._coordinators.told(names, _described, timeout_seconds=timeout_seconds)
        for group, answer in told.items():
            if isinstance(answer, ReplicatorError):
                raise answer
            found[group] = answer
        return found

    def delete(
        self, names: Iterable[str], *, timeout_seconds: float = 10.0
    ) -> dict[str, ReplicatorError | None]:
        """Deletes groups with their positions; None for each that is gone, else why not.

        A group that does not exist is a NotFoundError; one whose first answer was lost may be deleted and become one.

        Raises:
            ReplicatorError: the cluster refuses our login.
        """
        return self._coordinators.told(names, _deleted, timeout_seconds=timeout_seconds)


def _described(
    connection: BrokerConnection, names: list[str], deadline: float
) -> dict[str, GroupDescription | ReplicatorError]:
    found: dict[str, GroupDescription | ReplicatorError] = {}
    request = DescribeGroupsRequest(groups=names, include_authorized_operations=False)
    answer = connection.call(request, newest=_DESCRIBE_VERSION, deadline=deadline)
    absent: list[str] = []
    for each in answer.groups:
        if each.error_code == _GROUP_ID_NOT_FOUND or each.group_state == "Dead":
            absent.append(each.group_id)
        elif each.error_code:
            found[each.group_id] = group_refusal(each.error_code, each.group_id, "describe")
        else:
            found[each.group_id] = _description(each)
    return {**found, **_of_newer_protocol(connection, absent, deadline)}


def _deleted(
    connection: BrokerConnection, names: list[str], deadline: float
) -> dict[str, ReplicatorError | None]:
    answer = connection.call(
        DeleteGroupsRequest(groups_names=names), newest=_DELETE_VERSION, deadline=deadline
    )
    return {
        each.group_id: group_refusal(each.error_code, each.group_id, "delete")
        if each.error_code
        else None
        for each in answer.results
    }


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
