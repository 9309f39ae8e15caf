"""Produce requests that brokers have not answered yet, five of each at most, and what their answers say of a quota."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from replicator.batches.codec.produce_codec import Produced, decode_produce
from replicator.batches.copy.outgoing import REQUESTS_IN_FLIGHT, Key, Outgoing, PartitionOut
from replicator.batches.network.channel import Frame
from replicator.errors import HeldBackError, ReplicatorError, UnreachableError
from replicator.policy.capacity.broker_quota import RAISE_QUOTA, BrokerQuota

ANSWER_SECONDS = 30.0
"""How long an acknowledgement may take; then the connection is taken for gone."""

QUIET_SECONDS = 1.5
"""A broker that owes answers and gave none for so long may have a reason, which it can be asked for."""


@dataclass(slots=True)
class Request:
    """``since`` when (monotonic) the broker may have read it."""

    correlation: int
    size: int
    since: float
    batches: dict[Key, tuple[PartitionOut, Outgoing]]


class Unanswered:
    """Of one cluster, by node id; for one thread. Times are monotonic seconds."""

    def __init__(self, quota: BrokerQuota) -> None:
        self._quota = quota
        self._requests: dict[int, deque[Request]] = {}
        self._heard: dict[int, float] = {}

    @property
    def nodes(self) -> Collection[int]:
        """Those that were written to since they were connected to."""
        return self._requests.keys()

    def room(self, node: int) -> int:
        """How many bytes the next request to it may have; none are left at 0 and below."""
        requests = self._requests.get(node, ())
        if len(requests) >= REQUESTS_IN_FLIGHT:
            return 0
        return self._quota.most_bytes - sum(each.size for each in requests)

    def sent(self, node: int, request: Request) -> None:
        """A request is on its way, behind the others."""
        requests = self._requests.setdefault(node, deque())
        if not requests:
            self._heard[node] = request.since
        requests.append(request)

    def answered(self, node: int, frame: Frame, now: float) -> tuple[Request, list[Produced]]:
        """The oldest request to a broker, and what it says of it.

        Raises:
            UnreachableError: it answers something else.
        """
        requests = self._requests.get(node)
        if not requests or requests[0].correlation != frame.correlation:
            raise UnreachableError("a broker of the target answers what was not asked")
        used = sum(each.size for each in requests)
        request = requests.popleft()
        produced, throttle_ms = decode_produce(frame.body)
        self._heard[node] = now
        self._quota.answered(
            node,
            throttle_ms / 1000,
            used_bytes=used,
            answered_bytes=request.size,
            now=now,
            took_seconds=now - request.since,
        )
        for behind in requests:
            behind.since = max(behind.since, self._quota.until(node))
        return request, produced

    def given_up(self, now: float) -> Mapping[int, ReplicatorError]:
        """Brokers that owe an answer for too long, and why nothing more is waited for."""
        found: dict[int, ReplicatorError] = {
            node: HeldBackError("a quota of the target holds a connection back", remedy=RAISE_QUOTA)
            for node in self._quota.take_overdue(now)
        }
        for node, requests in self._requests.items():
            if node in found or not requests or now <= requests[0].since + ANSWER_SECONDS:
                continue
            size = sum(each.size for each in requests)
            self._quota.unanswered(size, now - requests[0].since)
            found[node] = UnreachableError(
                f"a broker of the target did not answer within {ANSWER_SECONDS:g} seconds",
                remedy="Check that the brokers run and that enough replicas are in sync.",
            )
        return found

    def lost(self, node: int) -> Iterable[Request]:
        """The connection is gone: what was on its way over it."""
        self._quota.lost(node)
        self._heard.pop(node, None)
        return self._requests.pop(node, ())

    def any_quiet(self, now: float) -> bool:
        """Whether a broker that owes answers gave none for a while."""
        return any(
            requests and now - self._heard.get(node, now) > QUIET_SECONDS
            for node, requests in self._requests.items()
        )
