"""What a cluster's quotas (KIP-219) and a narrow line do to a lane, and how much is worth sending at once. Pure.

A broker whose quota is used up answers at once, says for how long it holds the client back, and reads nothing of that
connection until then. How long follows from what came in its window (ten seconds by default): 20 MB at once where
200 kB/s are allowed are 90 s, longer than a transaction may be open. So a lane sends little at first, more while nobody
holds it back, and about as much as a second's worth once somebody did.

A narrow line does not say that it is narrow: answers come late. What takes longer than a connection may owe an answer, or
a transaction may be open, would be sent again and again and never get through. So it is two seconds' worth at most there.
"""

from replicator.problem import Problem

MOST_BYTES = 32 * 1024 * 1024
"""What no lane has on its way to one broker: nothing is bounded any more."""

FIRST_BYTES = 1024 * 1024
"""What a lane sends to a cluster of which it knows nothing yet."""

LEAST_BYTES = 16 * 1024

LONGEST_SECONDS = 20.0
"""What is longer is the debt of one burst, and twice as long as the window that it is counted in: then a new connection
is made, which is not held back. The quota holds all the same: what is sent by then is little."""

RAISE_QUOTA = (
    "Raise the quota of the user or client id with which replicator logs in there "
    "(kafka-configs.sh --describe --entity-type users), or set the link's throttle below it."
)

SLOW_SECONDS = 2.0
"""An answer that takes longer, and not because of a quota, is one to less than was sent at once."""

_AIM_SECONDS = 1.0
_LEAST_PART = 1 / 8
_GROWTH, _GROWTH_AFTER = 2.0, 1.25
_TOLD_SECONDS = 15.0
_SLIGHT_SECONDS = 0.1


class BrokerQuota:
    """Of one cluster and one lane, over all its sessions; for one thread.

    Attributes:
        most_bytes: how much may be without an answer, or be asked for at once.
    """

    def __init__(self, alias: str, *, first_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = first_bytes
        self._alias = alias
        self._until: dict[int, float] = {}
        self._cut: set[int] = set()
        self._was_held = False
        self._changed_at = float("-inf")
        self._carried_since, self._carried_bytes = float("-inf"), 0
        self._told_until = 0.0

    @property
    def bounded(self) -> bool:
        """Whether ``most_bytes`` is less than what a lane would send."""
        return self.most_bytes < MOST_BYTES

    def answered(
        self,
        node: int,
        seconds: float,
        *,
        used_bytes: int,
        now: float,
        answered_bytes: int = 0,
        took_seconds: float = 0.0,
    ) -> None:
        """A broker answered, and holds this connection back for so long.

        ``used_bytes`` were without an answer before, or came with it; of those the answer is about ``answered_bytes``,
        and took ``took_seconds``.
        """
        if seconds <= 0:
            # What was sent before the last change says nothing of it.
            if now - took_seconds >= self._changed_at:
                carried = max(2 * used_bytes, self._carried(answered_bytes, now))
                self._without_quota(took_seconds, used_bytes, carried, now)
            return
        self._was_held = True
        if seconds >= _SLIGHT_SECONDS:
            self._told_until = now + seconds + _TOLD_SECONDS
        self._until[node] = max(self._until.get(node, 0.0), now + min(seconds, LONGEST_SECONDS))
        if seconds > LONGEST_SECONDS:
            self._cut.add(node)
        if seconds > _AIM_SECONDS:
            self._lessen(used_bytes, seconds)

    def unanswered(self, used_bytes: int, seconds: float) -> None:
        """So much was without an answer for so long that its connection is given up."""
        self._lessen(used_bytes, seconds)

    def _carried(self, size: int, now: float) -> int:
        """What was answered within a second: of small batches little is on its way at once, and much gets through."""
        if now - self._carried_since > _AIM_SECONDS:
            self._carried_since, self._carried_bytes = now, 0
        self._carried_bytes += size
        return self._carried_bytes

    def _without_quota(
        self, took_seconds: float, used_bytes: int, carried_bytes: int, now: float
    ) -> None:
        if took_seconds > SLOW_SECONDS:
            self._was_held = True
            self._lessen(used_bytes, took_seconds)
            self._changed_at = now
        elif took_seconds <= _AIM_SECONDS and self.bounded and carried_bytes >= self.most_bytes:
            growth = _GROWTH_AFTER if self._was_held else _GROWTH
            self.most_bytes = min(MOST_BYTES, int(self.most_bytes * growth))
            self._changed_at = now
            self._carried_since, self._carried_bytes = now, 0

    def _lessen(self, used_bytes: int, seconds: float) -> None:
        part = max(_LEAST_PART, _AIM_SECONDS / seconds)
        held = min(self.most_bytes, max(used_bytes, LEAST_BYTES))
        self.most_bytes = max(LEAST_BYTES, int(held * part))

    def until(self, node: int) -> float:
        """Until when (monotonic) a broker reads nothing of this connection; 0 where it does."""
        return self._until.get(node, 0.0)

    def seconds_held(self, now: float) -> float:
        """Until the first of the connections that are held back now may be used; infinite where none is."""
        return min((at - now for at in self._until.values() if at > now), default=float("inf"))

    def take_overdue(self, now: float) -> list[int]:
        """Connections that a broker holds back for longer than is waited for: they are to be made anew."""
        due = [node for node in self._cut if now >= self._until.get(node, 0.0)]
        self._cut.difference_update(due)
        return due

    def lost(self, node: int) -> None:
        """The connection is gone, and the next one is not held back."""
        self._cut.discard(node)
        self._until.pop(node, None)

    def problem(self, now: float) -> Problem | None:
        """What an operator has to know, while it lasts."""
        if now >= self._told_until:
            return None
        return Problem(
            "QUOTA_EXCEEDED",
            f"cluster:{self._alias}",
            "a quota of the cluster holds the lane back",
            RAISE_QUOTA,
        )
