"""How much a lane asks a broker of the source for at once, after its answers did not get through the line in time. Pure.

The client library hands over nothing of an answer before all of it is there, and what it has of one is lost when a partition
is read anew. So on a line that carries little, a large answer never arrives.
"""

from replicator.backoff import Backoff
from replicator.policy.capacity.memory_shares import shown_bytes

SMALLER_BYTES = (8 * 1024 * 1024, 2 * 1024 * 1024, 512 * 1024, 128 * 1024)
"""What is asked for instead, step by step: the first costs a fast line little."""

LARGER_AGAIN = Backoff(600.0, 7200.0)
"""After so long the lane asks for one step more, as lines get better again; later each time that did not hold."""

_PARTITIONS_AT_ONCE = 8
_LEAST_PARTITION_BYTES = 32 * 1024


class AnswerSize:
    """Of one lane; outlives sessions. Times are monotonic seconds.

    Attributes:
        change: why other clients are to be opened; empty while those of this session suit.
    """

    def __init__(self) -> None:
        self.change = ""
        self._most = 0
        self._step = 0
        self._changed_at = 0.0
        self._grown = False
        self._in_vain = 0

    def session_begins(self) -> None:
        """With clients that ask for as much as this says."""
        self.change = ""

    def answer_bytes(self, most: int) -> int:
        """Of one answer of a broker, where memory and line settings allow ``most``."""
        self._most = most
        return self._bytes_at(self._step)

    def partition_bytes(self, most: int) -> int:
        """Of one partition in it: a small answer is shared out, or all others would wait for their turn."""
        if not self._step:
            return most
        part = self._bytes_at(self._step) // _PARTITIONS_AT_ONCE
        return min(most, max(_LEAST_PARTITION_BYTES, part))

    def none_came(self, *, now: float) -> None:
        """Records wait, the source answers other questions, and for seconds no answer with records came."""
        if self.change:
            return
        before = self._bytes_at(self._step)
        smaller = [
            step
            for step in range(self._step + 1, len(SMALLER_BYTES) + 1)
            if self._bytes_at(step) < before
        ]
        if not smaller:
            return
        if self._grown:
            self._in_vain += 1
        self._go_to(smaller[0], now, "no answer of the source got through the line in time")

    def look(self, *, now: float) -> None:
        """Called now and then: whether to ask for more again."""
        pause = LARGER_AGAIN.seconds(self._in_vain + 1)
        if self._step and not self.change and now - self._changed_at >= pause:
            self._grown = True
            self._go_to(self._step - 1, now, "the line may be better again")

    def _go_to(self, step: int, now: float, why: str) -> None:
        self._step, self._changed_at = step, now
        size = shown_bytes(self._bytes_at(step))
        self.change = f"{why}: another client asks a broker for {size} at once"

    def _bytes_at(self, step: int) -> int:
        return min(self._most, SMALLER_BYTES[step - 1]) if step else self._most
