"""The consumer of a lane whose source is near: one client that asks again at once, and one that asks in paces.

The settings of a client are fixed when it is opened, so there is another one for the time in which records come briskly. Both read for a
moment when one takes over from the other: the next one begins at the lane's positions, what it brings a second time the engine knows by
its offset, and it is alone as soon as it has brought anything. Nothing waits for it meanwhile.
"""

from collections.abc import Callable, Iterable

from replicator.clock import Clock
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.seek import read_from
from replicator.errors import ReplicatorError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import (
    ClientPartition,
    ClusterMetadata,
    Consumer,
    KafkaException,
    Message,
)

PACED_FETCH_BYTES, PACED_FETCH_SECONDS = 64 * 1024, 0.004
"""An answer is this large, or as old as this: 250 fetches a second where there were a thousand. More is a backlog, which comes at once."""

TAKE_OVER_SECONDS, AGAIN_SECONDS = 5.0, 60.0
"""How long the next client may take to bring anything, and when it is tried again if it did not."""

SERVED_SECONDS = 1.0
"""The client that rests is served so often: it learns of another password then."""

_LONGEST_POLL_SECONDS = 0.005
"""How long one of two is waited for while the other may bring something."""


class PacedConsumer:
    """As the library's consumer, as far as a lane uses it; for the lane's thread only."""

    def __init__(
        self,
        consumer: Consumer,
        *,
        open_paced: Callable[[], Consumer],
        close_paced: Callable[[Consumer], None],
        clock: Clock,
    ) -> None:
        """``consumer`` is the one that asks again at once; the other is made and ended by the calls, as often as it is needed."""
        self._plain = self._active = consumer
        self._open_paced = open_paced
        self._close_paced = close_paced
        self._clock = clock
        self._paced: Consumer | None = None
        self._next: Consumer | None = None
        self._held: set[tuple[str, int]] = set()
        self._next_until = self._served_at = 0.0
        self._not_before = clock.monotonic()

    @property
    def paced(self) -> bool:
        """Whether the one that asks in paces is read."""
        return self._active is not self._plain

    def go(self, *, paced: bool, states: Callable[[], Iterable[PartitionState]]) -> None:
        """Begins to go over to the one that is wanted, unless it is there, on its way, or was tried just now.

        ``states`` are those of the lane; it goes on at their positions with those that are assigned.
        """
        if paced == self.paced or self._next is not None or self._held:
            return
        now = self._clock.monotonic()
        if now < self._not_before:
            return
        self._not_before = now + AGAIN_SECONDS
        assigned = {(item.topic, item.partition) for item in self._active.assignment()}
        try:
            if paced:
                self._paced = self._next = self._open_paced()
            else:
                self._next = self._plain
            self._next_until = now + TAKE_OVER_SECONDS
            read_from(self._next, [state for state in states() if state.key in assigned])
        except (KafkaException, ReplicatorError):
            self._stay()  # the one that is read tells what there is to tell

    def consume(self, most: int, timeout: float) -> list[Message]:
        """Up to ``most`` of what has come."""
        return self._of_next(most) or self._served().consume(most, timeout)

    def poll(self, timeout: float) -> Message | None:
        """One of what has come, or comes within ``timeout`` seconds."""
        found = self._of_next(1)
        if found:
            return found[0]
        if self._next is not None:
            timeout = min(timeout, _LONGEST_POLL_SECONDS)
        return self._served().poll(timeout)

    def incremental_assign(self, partitions: list[ClientPartition]) -> None:
        """As the library's."""
        self._stay()
        self._active.incremental_assign(partitions)

    def incremental_unassign(self, partitions: list[ClientPartition]) -> None:
        """As the library's."""
        self._stay()
        self._held -= {(item.topic, item.partition) for item in partitions}
        self._active.incremental_unassign(partitions)

    def seek(self, partition: ClientPartition) -> None:
        """As the library's."""
        self._stay()
        self._active.seek(partition)

    def pause(self, partitions: list[ClientPartition]) -> None:
        """As the library's; nothing changes hands while a partition is paused."""
        self._stay()
        self._held |= {(item.topic, item.partition) for item in partitions}
        self._active.pause(partitions)

    def resume(self, partitions: list[ClientPartition]) -> None:
        """As the library's."""
        self._held -= {(item.topic, item.partition) for item in partitions}
        self._active.resume(partitions)

    def assignment(self) -> list[ClientPartition]:
        """As the library's."""
        return self._active.assignment()

    def get_watermark_offsets(
        self, partition: ClientPartition, *, cached: bool = False
    ) -> tuple[int, int]:
        """As the library's."""
        return self._active.get_watermark_offsets(partition, cached=cached)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """As the library's."""
        found: ClusterMetadata = self._active.list_topics(topic, timeout)
        return found

    def close(self) -> None:
        """Closes both."""
        for client in (self._plain, self._paced):
            if client is not None:
                client.close()

    def _of_next(self, most: int) -> list[Message]:
        """What the next one has brought, if there is one."""
        if self._next is None:
            return []
        found = self._next.consume(most, 0.0)
        if any(map(_read, found)):
            self._take_over(self._next)
        elif self._clock.monotonic() > self._next_until:
            self._stay()
        return found

    def _take_over(self, client: Consumer) -> None:
        """It is alone from now on."""
        _unassign_all(self._active)
        self._active, self._next = client, None
        self._close_what_rests()

    def _stay(self) -> None:
        """The one that is read stays alone."""
        if self._next is not None:
            _unassign_all(self._next)
            self._next = None
        self._close_what_rests()

    def _close_what_rests(self) -> None:
        """A client that is open costs threads that wake up all the time; the plain one is needed again."""
        if self._paced is not None and self._active is self._plain:
            self._close_paced(self._paced)
            self._paced = None

    def _served(self) -> Consumer:
        """The one that is read; the other one is served where it is time."""
        if self.paced and self._next is None:
            now = self._clock.monotonic()
            if now - self._served_at >= SERVED_SECONDS:
                self._served_at = now
                self._plain.poll(0)
        return self._active


LaneConsumer = Consumer | PacedConsumer
"""What a lane reads from."""


def _read(message: Message) -> bool:
    """Whether it shows that its client reads: a record, or the end of a partition."""
    error = message.error()
    return error is None or error.code() == codes.PARTITION_EOF


def _unassign_all(consumer: Consumer) -> None:
    consumer.incremental_unassign(consumer.assignment())
