"""What the protocol proxy does to which request: a frozen list of rules, and the count that applies it.

Pure: the same requests in the same order always meet the same faults.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Api(IntEnum):
    """Keys of the requests that rules name most; any other key may be used as a number."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    SYNC_GROUP = 14
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    DESCRIBE_CLUSTER = 60


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the proxy saw it; ``topics`` are the names it mentions."""

    api: int
    version: int
    client_id: str = ""
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests: by api key, topic, client and version, from the ``nth`` of them on, so many of them.

    ``nth`` counts from 1; ``times`` None means all that follow. ``from_version`` tells two client libraries
    of one client id apart: the lowest version that is meant.
    """

    api: int
    topic: str | None = None
    client_id: str | None = None
    from_version: int = 0
    nth: int = 1
    times: int | None = 1

    def is_about(self, request: Request) -> bool:
        """Whether the request is one of those that are counted."""
        return (
            self.api == request.api
            and self.topic in (None, *request.topics)
            and self.client_id in (None, request.client_id)
            and request.version >= self.from_version
        )

    def includes(self, number: int) -> bool:
        """Whether the request with this number among them is meant."""
        return number >= self.nth and (self.times is None or number < self.nth + self.times)


@dataclass(frozen=True, slots=True)
class Hold:
    """The request stays in the proxy until ``until`` was answered, or the proxy is told to release.

    With ``reset`` the client's connection is reset at once, so that it connects again and repeats the
    request; the held one is later delivered on the connection on which it came. Without, the
    connection stands still.
    """

    until: Match | None = None
    reset: bool = True


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The broker gets the request, the client a reset; the same bytes come again later.

    They come once ``until`` was answered; without it, once the client's own repetition was.
    """

    until: Match | None = None


@dataclass(frozen=True, slots=True)
class DropRequest:
    """The broker never gets the request; with ``reset`` the client notices at once."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class DropResponse:
    """The broker does what it was asked, the client gets no answer; ``reset`` as above."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Delay:
    """The request, or its response, comes later by so many seconds, and what is behind it too."""

    request_seconds: float = 0.0
    response_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The client gets an error code (a number of the protocol).

    ``forwarded``: the broker did what it was asked, and only the answer is changed; in an answer that
    names topics only those that the match names.
    """

    error: int
    forwarded: bool = False


@dataclass(frozen=True, slots=True)
class HideApis:
    """For requests of ApiVersions: the answer lacks these keys, as an older broker's does.

    ``highest`` limits the versions of others: pairs of key and version.
    """

    keys: frozenset[int] = frozenset()
    highest: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NameNoBrokers:
    """For requests of Metadata: the answer names topics, but no broker.

    So a broker answers that is up and has not heard of any live one yet, not even of itself.
    """


@dataclass(frozen=True, slots=True)
class LimitRate:
    """Requests and their responses pass at so many bytes a second."""

    bytes_per_second: float


Verb = (
    Hold
    | Duplicate
    | DropRequest
    | DropResponse
    | Delay
    | Answer
    | HideApis
    | NameNoBrokers
    | LimitRate
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One fault: what happens to which requests."""

    match: Match
    verb: Verb


class Script:
    """Counts requests against a list of rules; for one thread."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: Sequence[Rule] = tuple(rules)
        self._seen = [0] * len(self.rules)
        self._applied = [0] * len(self.rules)

    def apply(self, request: Request) -> tuple[Rule, ...]:
        """Counts the request and returns the rules that change what happens to it, in their order."""
        found = []
        for place, rule in enumerate(self.rules):
            if rule.match.is_about(request):
                self._seen[place] += 1
                if rule.match.includes(self._seen[place]):
                    self._applied[place] += 1
                    found.append(rule)
        return tuple(found)

    def applied(self, rule: Rule) -> int:
        """How many requests the rule has met; equal rules count as one."""
        return sum(
            count for each, count in zip(self.rules, self._applied, strict=True) if each == rule
        )


class Countdown:
    """Waits for the requests of one match: done when the first one that it means was answered."""

    def __init__(self, match: Match) -> None:
        self._match = match
        self._seen = 0

    def is_over(self, request: Request) -> bool:
        """Counts an answered request; True for the awaited one."""
        if not self._match.is_about(request):
            return False
        self._seen += 1
        return self._match.includes(self._seen)
