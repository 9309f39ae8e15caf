"""How a flow's budget is kept, and how it is split over its lanes.

Times are monotonic seconds and are passed in; nothing here waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.policy.values import PRIORITIES, Priority, Throttle

FLOOR_PERCENT = 10
"""Share of a budget that is dealt out equally before anything else, so that no lane starves."""


@dataclass(frozen=True, slots=True)
class LaneNeed:
    """What one lane still has to copy, and how urgent it is."""

    backlog_records: int
    backlog_bytes: int
    priority: Priority = "normal"


class TokenBucket:
    """A budget in bytes and records per second that may be overdrawn once and is then paid back.

    Debt, because a batch is already read when its size is known: it goes out whole, and the bucket
    says how long to wait until the rate holds again. The bucket saves up at most `burst_seconds`.
    """

    __slots__ = ("_burst_seconds", "_bytes", "_records", "_throttle", "_updated_at")

    def __init__(self, throttle: Throttle, *, now: float, burst_seconds: float = 0.25) -> None:
        self._throttle = throttle
        self._burst_seconds = burst_seconds
        self._bytes = (throttle.bytes_per_second or 0) * burst_seconds
        self._records = (throttle.records_per_second or 0) * burst_seconds
        self._updated_at = now

    @property
    def throttle(self) -> Throttle:
        """The rate that holds at present."""
        return self._throttle

    def change(self, throttle: Throttle, *, now: float) -> None:
        """Takes another rate from now on; debt is kept, savings are capped by the new rate."""
        self._refill(now)
        self._throttle = throttle
        self._refill(now)

    def take(self, *, size_bytes: int, records: int, now: float) -> float:
        """Takes what was just read and returns the seconds to wait before reading more."""
        self._refill(now)
        self._bytes -= size_bytes
        self._records -= records
        return self.wait_seconds(now=now)

    def wait_seconds(self, *, now: float) -> float:
        """Seconds until the debt is paid; 0 when there is none."""
        self._refill(now)
        return max(
            _repay_seconds(self._bytes, self._throttle.bytes_per_second),
            _repay_seconds(self._records, self._throttle.records_per_second),
        )

    def _refill(self, now: float) -> None:
        elapsed = max(0.0, now - self._updated_at)
        self._updated_at = max(now, self._updated_at)
        self._bytes = self._grown(self._bytes, self._throttle.bytes_per_second, elapsed)
        self._records = self._grown(self._records, self._throttle.records_per_second, elapsed)

    def _grown(self, tokens: float, rate: int | None, elapsed: float) -> float:
        if rate is None:
            return 0.0
        return min(tokens + rate * elapsed, rate * self._burst_seconds)


def split_budget(throttle: Throttle, needs: Mapping[int, LaneNeed]) -> dict[int, Throttle]:
    """Splits a flow's budget over its lanes: priorities first, then by need.

    On each axis the shares never add up to more than the budget, and as long as the budget is at
    least one per lane, every lane gets at least one.
    """
    by_bytes = _split(
        throttle.bytes_per_second,
        {lane: (need.priority, need.backlog_bytes) for lane, need in needs.items()},
    )
    by_records = _split(
        throttle.records_per_second,
        {lane: (need.priority, need.backlog_records) for lane, need in needs.items()},
    )
    return {lane: Throttle(by_bytes[lane], by_records[lane]) for lane in needs}


def _split(
    budget: int | None, needs: Mapping[int, tuple[Priority, int]]
) -> dict[int, int] | dict[int, None]:
    if budget is None or not needs:
        return dict.fromkeys(needs)
    lanes = sorted(needs)
    floor = max(budget * FLOOR_PERCENT // 100 // len(lanes), 1 if budget >= len(lanes) else 0)
    shares = dict.fromkeys(lanes, floor)
    left = budget - floor * len(lanes)
    for priority in PRIORITIES:
        wants = {lane: max(0, needs[lane][1]) for lane in lanes if needs[lane][0] == priority}
        total = sum(wants.values())
        # A backlog that the class can clear within a second needs no more than itself.
        grant = min(left, total)
        for lane, want in wants.items():
            share = grant * want // total if total else 0
            shares[lane] += share
            left -= share
    # What nobody needs yet goes to all alike, so that new records do not wait for the next split.
    each, odd = divmod(left, len(lanes))
    for place, lane in enumerate(lanes):
        shares[lane] += each + (1 if place < odd else 0)
    return shares


def _repay_seconds(tokens: float, rate: int | None) -> float:
    if rate is None or tokens >= 0:
        return 0.0
    if rate == 0:
        return 1.0  # no share at present: ask again after the next split
    return -tokens / rate
