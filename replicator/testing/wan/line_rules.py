"""What a long line does to packets: pure rules, one object per direction."""

import random
from dataclasses import dataclass

_LONGEST_ROUND_TRIP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LineQuality:
    """How good a line is, in both directions alike.

    Attributes:
        round_trip_seconds: half of it is the delay of each direction.
        loss: share of the packets that are lost in each direction, 0 to 1.
        bytes_per_second: the line's rate in each direction; 0 is no limit.
        queue_seconds: how much of that rate may wait in front of the line; what comes then is lost.
        seed: of the losses; the same seed loses the packets of the same numbers.
    """

    round_trip_seconds: float = 0.1
    loss: float = 0.0
    bytes_per_second: float = 0.0
    queue_seconds: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.round_trip_seconds <= _LONGEST_ROUND_TRIP_SECONDS:
            raise ValueError("a round trip takes 0 to 10 seconds")
        if not 0 <= self.loss <= 1:
            raise ValueError("loss is a share, 0 to 1")
        if self.bytes_per_second < 0 or self.queue_seconds < 0:
            raise ValueError("rate and queue are not negative")


class LineDirection:
    """One direction: says of every packet when it arrives, if it does.

    Attributes:
        offered, lost, overflowed: packets so far; those that loss took, and those that found no room.
    """

    def __init__(self, quality: LineQuality, *, number: int) -> None:
        """``number`` 0 or 1: the two directions lose different packets."""
        self.offered = self.lost = self.overflowed = 0
        self._number = number
        self._free_at = 0.0
        self._last_at = 0.0
        self.change(quality)

    def change(self, quality: LineQuality) -> None:
        """Another line from now on; the losses begin anew at the seed."""
        self._quality = quality
        self._delay = quality.round_trip_seconds / 2
        self._random = random.Random(2 * quality.seed + self._number)

    def offer(self, now: float, size: int) -> float | None:
        """When a packet of ``size`` bytes arrives, in seconds of the clock of ``now``; None: it is lost.

        Packets never overtake each other.
        """
        quality = self._quality
        self.offered += 1
        if quality.loss and self._random.random() < quality.loss:
            self.lost += 1
            return None
        at = now
        if quality.bytes_per_second:
            begins = max(self._free_at, now)
            if begins - now > quality.queue_seconds:
                self.overflowed += 1
                return None
            at = self._free_at = begins + size / quality.bytes_per_second
        self._last_at = max(self._last_at, at + self._delay)
        return self._last_at
