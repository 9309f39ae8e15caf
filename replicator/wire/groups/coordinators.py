"""Asking the coordinators of consumer groups: which broker it is, and again while it moves or goes away.

Connections are kept. What one coordinator says, or that it says nothing, keeps no other group waiting.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from replicator.errors import ReplicatorError, TransientBrokerError, UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import FindCoordinatorRequest

_DENIED = frozenset({29, 30})
_FIND_VERSION, _MANY_AT_ONCE = 4, 4
_MOST_PLACES = 50_000
"""Of so many groups it is remembered who coordinates them; tools that make up a name for each run leave many."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 1.0

_Address = tuple[str, int]
Answer = TypeVar("Answer")
Question = Callable[[BrokerConnection, list[str], float], Mapping[str, Answer | ReplicatorError]]
"""Asks a broker about groups it coordinates, until the deadline; an error for each group that it refuses."""


class GroupCoordinators:
    """The coordinators of one cluster's groups. For one thread at a time."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str) -> None:
        self._cluster = cluster
        self._client_id = client_id
        self._places: dict[str, _Address] = {}
        self._connections: dict[_Address, BrokerConnection] = {}

    def told(
        self, names: Iterable[str], question: Question[Answer], *, timeout_seconds: float
    ) -> dict[str, Answer | ReplicatorError]:
        """What coordinators say to the question; an error for each group of which nothing is told.

        Errors that may pass are asked about again until then.

        Raises:
            ReplicatorError: the cluster refuses us.
        """
        deadline = time.monotonic() + timeout_seconds
        if len(self._places) > _MOST_PLACES:
            self._places = {}
        found: dict[str, Answer | ReplicatorError] = {}
        missing = sorted(set(names))
        pause = _FIRST_PAUSE_SECONDS
        while True:
            found.update(self._round(missing, question, deadline))
            missing = [name for name in missing if _may_pass(found[name])]
            if not missing or time.monotonic() + pause >= deadline:
                return found
            for name in missing:
                self._places.pop(name, None)
            time.sleep(pause)  # another broker has to become the coordinator
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def close(self) -> None:
        """Hangs up; the next question finds the coordinators anew."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}
        self._places = {}

    def _round(
        self, names: list[str], question: Question[Answer], deadline: float
    ) -> Iterator[tuple[str, Answer | ReplicatorError]]:
        """Each name once, with what is told about it now."""
        unknown = [name for name in names if name not in self._places]
        try:
            refused = self._find(unknown, deadline)
        except (UnreachableError, TransientBrokerError) as error:
            refused = dict.fromkeys(unknown, error)
        yield from refused.items()
        places: dict[_Address, list[str]] = {}
        for name in names:
            if name not in refused:
                places.setdefault(self._places[name], []).append(name)
        for address, groups in places.items():
            now = time.monotonic()
            soon = now + (deadline - now) / 2  # one that is dead leaves time for the others
            try:
                answers = question(self._connection(address, soon), groups, soon)
            except ReplicatorError as error:
                broken = self._connections.pop(address, None)
                if broken is not None:
                    broken.close()
                if not _may_pass(error):
                    raise
                answers = dict.fromkeys(groups, error)
            yield from answers.items()

    def _find(self, names: list[str], deadline: float) -> dict[str, ReplicatorError]:
        """Notes the coordinators of groups; returns why where that cannot be told."""
        refused: dict[str, ReplicatorError] = {}
        if not names:
            return refused
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
                        refused[name] = group_refusal(each.error_code, name, "describe")
                    else:
                        self._places[name] = (each.host, each.port)
        return refused

    def _connection(self, address: _Address, deadline: float) -> BrokerConnection:
        if address not in self._connections:
            self._connections[address] = BrokerConnection(
                self._cluster, address, client_id=self._client_id, deadline=deadline
            )
        return self._connections[address]


def group_refusal(
    code: int, group: str, doing: str, *, right: str = "", detail: str = ""
) -> ReplicatorError:
    """Our error for what a coordinator said about a group; ``doing`` as in "describe", ``right`` is what that takes."""
    right = right or f"{doing.upper()} on group '{group}'"
    if code in _DENIED:
        detail = f"the cluster refuses it to our user, who needs {right}"
    return code_error(
        code,
        subject=f"group:{group}",
        doing=f"{doing} group {group}",
        right=right,
        detail=detail,
    )


def _may_pass(answer: object) -> bool:
    return isinstance(answer, UnreachableError | TransientBrokerError)
