"""Whether the client that reads the source reports of logs what their cluster refutes, again and again.

It asks the brokers it is connected to who leads. Where that is one alone, and that one is cut off from the controllers, it
stays there for as long as that lasts: told that logs were cut, end before the position, or have nothing more. Only
another client helps, which may meet another broker first.
"""

from collections.abc import Iterable

from replicator.backoff import Backoff
from replicator.identifiers import TopicPartition

PATIENCE = Backoff(2.0, 60.0)
"""So long after its first report a client may go on with the same; longer after each that was replaced."""

FORGOTTEN_SECONDS = 300.0
"""After so long without a report of a partition, or without a client that was misled, patience is as at first."""


class MisledClients:
    """Of one lane, for its thread; outlives sessions. Times are monotonic seconds.

    Attributes:
        another_helps: whether the client of this session is to be replaced.
    """

    def __init__(self) -> None:
        self.another_helps = False
        self._reported: dict[TopicPartition, tuple[float, float]] = {}
        self._replaced = 0
        self._replaced_at = 0.0

    def session_begins(self) -> None:
        """With a new client, which has reported nothing."""
        self.another_helps = False
        self._reported.clear()

    def refuted(self, places: Iterable[TopicPartition], *, now: float) -> None:
        """The client reported of these partitions what is not so."""
        if now - self._replaced_at > FORGOTTEN_SECONDS:
            self._replaced = 0
        patience = PATIENCE.seconds(self._replaced + 1)
        misled = False
        for place in places:
            first, last = self._reported.get(place, (now, now))
            if now - last > FORGOTTEN_SECONDS:
                first = now
            self._reported[place] = (first, now)
            misled = misled or now - first >= patience
        if misled and not self.another_helps:
            self.another_helps = True
            self._replaced += 1
            self._replaced_at = now
