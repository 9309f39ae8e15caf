"""Where consumer groups stand, many of them in one request, and moving groups that nobody is in.

confluent-kafka's own call for it (``list_consumer_group_offsets`` of 2.16.1) can end the process with a segmentation fault while a
broker restarts, and a consumer with a group's name, which can be asked too, has threads and connections for each group.
"""

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from replicator.errors import BrokerRefusedError, ReplicatorError, TransientBrokerError
from replicator.identifiers import TopicPartition
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.protocol import (
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from replicator.wire.groups.coordinators import GroupCoordinators, group_refusal
from replicator.wire.groups.group_description import CommittedOffset
from replicator.wire.groups.offset_commit import (
    COMMIT_VERSION,
    HAS_MEMBERS,
    MOVING,
    offset_commit,
)

Positions = Mapping[TopicPartition, CommittedOffset]
Refusals = Mapping[TopicPartition, ReplicatorError | None]
"""Why a position was not set; None where it was."""

_FETCH_VERSION, _MANY_AT_ONCE = 8, 8
_GROUPS_AT_ONCE = 100
_COMMITS_AT_ONCE = 20
_MOST_GROUPS = 20_000
"""Answers about so many groups are remembered."""


_GROUP_ID_NOT_FOUND, _UNSTABLE = 69, 88
_UNSTABLE_SECONDS = 1.0
"""How long a group is waited for that commits in a transaction which is still open."""

_CORRELATION = bytes(4)


class _UnstableError(TransientBrokerError):
    """A transaction that commits positions of a group is open."""

    def lasting(self) -> ReplicatorError:
        """The same as what is not waited for any longer."""
        return BrokerRefusedError(
            f"{self.message}, for {_UNSTABLE_SECONDS:g} s by now",
            subject=self.subject,
            remedy=self.remedy,
        )


class GroupOffsets:
    """Reads and sets positions of groups of one cluster. For one thread at a time."""

    def __init__(self, coordinators: GroupCoordinators) -> None:
        self._coordinators = coordinators
        self._last: dict[tuple[str, ...], tuple[bytes, dict[str, Positions | ReplicatorError]]] = {}
        self._asked_with: dict[str, tuple[str, ...]] = {}

    def read(
        self, names: Iterable[str], *, timeout_seconds: float = 10.0
    ) -> dict[str, Positions | ReplicatorError]:
        """All positions of each group, none of one that does not exist; or why they cannot be told.

        Offsets that a transaction commits are waited for.

        Raises:
            ReplicatorError: the cluster refuses us.
        """
        stable_until = time.monotonic() + _UNSTABLE_SECONDS

        def question(
            connection: BrokerConnection, groups: list[str], deadline: float
        ) -> dict[str, Positions | ReplicatorError]:
            found: dict[str, Positions | ReplicatorError] = {}
            newest = connection.versions.get(OffsetFetchRequest.API_KEY, (0, 0))[1]
            for chunk in _chunks(groups, _GROUPS_AT_ONCE if newest >= _MANY_AT_ONCE else 1):
                found.update(self._fetched(connection, chunk, deadline))
            if time.monotonic() >= stable_until:
                for group, answer in found.items():
                    if isinstance(answer, _UnstableError):
                        found[group] = answer.lasting()
            return found

        return self._coordinators.told(names, question, timeout_seconds=timeout_seconds)

    def set(
        self,
        positions: Mapping[str, Mapping[TopicPartition, tuple[int, str]]],
        *,
        timeout_seconds: float = 10.0,
    ) -> dict[str, Refusals | ReplicatorError]:
        """Sets positions (offset, metadata) of groups that nobody is in, some of them at once.

        A group with members refuses all of them. An error for a group that nothing is told of: it may have been moved.

        Raises:
            ReplicatorError: the cluster refuses us.
        """

        def question(
            connection: BrokerConnection, groups: list[str], deadline: float
        ) -> dict[str, Refusals | ReplicatorError]:
            found: dict[str, Refusals | ReplicatorError] = {}
            for chunk in _chunks(groups, _COMMITS_AT_ONCE):
                answers = connection.call_many(
                    [offset_commit(group, positions[group]) for group in chunk],
                    newest=COMMIT_VERSION,
                    deadline=deadline,
                )
                found.update(
                    (group, _refusals(group, answer))
                    for group, answer in zip(chunk, answers, strict=True)
                )
            return found

        return self._coordinators.told(positions, question, timeout_seconds=timeout_seconds)

    def _fetched(
        self, connection: BrokerConnection, names: tuple[str, ...], deadline: float
    ) -> dict[str, Positions | ReplicatorError]:
        """Most groups of most rounds rest: bytes that came before are not decoded again."""
        request = OffsetFetchRequest(
            group_id=names[0],
            topics=None,
            groups=[
                OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None)
                for name in names
            ],
            require_stable=True,
        )
        version, raw = connection.call_raw(request, newest=_FETCH_VERSION, deadline=deadline)
        before = self._last.pop(names, None)
        if before is not None and before[0] == raw:
            answer = before[1]
        else:
            decoded = OffsetFetchResponse.decode(_CORRELATION + raw, version=version, header=True)
            groups = decoded.groups if version >= _MANY_AT_ONCE else [decoded]
            answer = {
                name: _positions(name, each) for name, each in zip(names, groups, strict=True)
            }
        self._keep(names, raw, answer)
        return answer

    def _keep(
        self, names: tuple[str, ...], raw: bytes, answer: dict[str, Positions | ReplicatorError]
    ) -> None:
        """One answer about each group: one group more moves those behind it into other requests."""
        for name in names:
            others = self._asked_with.get(name, names)
            if others != names:
                self._last.pop(others, None)
                for other in others:
                    self._asked_with.pop(other, None)
            self._asked_with[name] = names
        self._last[names] = (raw, answer)
        while len(self._asked_with) > _MOST_GROUPS:
            oldest = next(iter(self._last))
            del self._last[oldest]
            for name in oldest:
                self._asked_with.pop(name, None)


def _positions(group: str, told: Any) -> Positions | ReplicatorError:  # noqa: ANN401 - the protocol's classes carry no types
    if told.error_code == _GROUP_ID_NOT_FOUND:
        return {}
    if told.error_code:
        return group_refusal(told.error_code, group, "read the positions of", right=_right(group))
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic in told.topics:
        for each in topic.partitions:
            if each.error_code == _UNSTABLE:
                return _UnstableError(
                    f"cannot read the positions of group {group}: a transaction that commits some of them is open",
                    subject=f"group:{group}",
                    remedy="It is read again in the next round. Look for a transactional application that hangs.",
                )
            if each.error_code:
                return group_refusal(
                    each.error_code, group, f"read the position in {topic.name} of",
                    right=f"DESCRIBE on topic '{topic.name}'",
                )  # fmt: skip
            if each.committed_offset >= 0:
                epoch = each.committed_leader_epoch
                found[topic.name, each.partition_index] = CommittedOffset(
                    each.committed_offset, _words(each.metadata), epoch if epoch >= 0 else None
                )
    return found


def _refusals(group: str, told: Any) -> Refusals | ReplicatorError:  # noqa: ANN401 - as above
    found: dict[TopicPartition, ReplicatorError | None] = {}
    for topic in told.topics:
        for each in topic.partitions:
            code, error = each.error_code, None
            if code:
                error = group_refusal(
                    code, group, "set positions of",
                    right=f"{_right(group)} and READ on topic '{topic.name}'",
                    detail="the group is in use" if code in HAS_MEMBERS else "",
                )  # fmt: skip
            if error is not None and code in MOVING:
                return error
            found[topic.name, each.partition_index] = error
    return found


def _words(metadata: str | None) -> str:
    """Without the NUL that confluent-kafka stores behind it, and takes away when it reads."""
    return (metadata or "").removesuffix("\0")


def _right(group: str) -> str:
    return f"READ on group '{group}'"


def _chunks(names: Iterable[str], size: int) -> Iterable[tuple[str, ...]]:
    rest = iter(names)
    while chunk := tuple(islice(rest, size)):
        yield chunk
