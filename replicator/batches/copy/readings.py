"""The partitions that are read, and the broker that each is read from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from replicator.batches.network.brokers import connection_to
from replicator.batches.network.leaders import Leaders
from replicator.errors import TransientBrokerError

Key = tuple[str, int]

FAILING_SECONDS = 5.0
"""How long a partition may have no leader, or none that answers for it, before that is told."""

_RETRY_SECONDS = 0.1
_REPLICA_SECONDS = 300.0
_NEVER, _ALWAYS = float("-inf"), float("inf")


class Reading:
    """One partition that is read, over its leader's connection of this ``number``.

    ``offset`` is the next one, ``last_epoch`` that of the record before.
    """

    __slots__ = (
        "failed_since", "key", "last_epoch", "number", "offset", "paused", "replica", "replica_until", "retry_at",
    )  # fmt: skip

    def __init__(self, key: Key, offset: int, last_epoch: int, number: int = 0) -> None:
        self.key = key
        self.number = number
        self.offset = offset
        self.last_epoch = last_epoch
        self.failed_since = float("inf")
        self.paused = False
        self.retry_at = 0.0
        self.replica = -1
        self.replica_until = 0.0


class Readings:
    """For one thread. Where each is read from is worked out again when something of it has changed.

    A lane asks after every step, and most lanes have many partitions that rest.
    """

    def __init__(self, leaders: Leaders, *, connections: int) -> None:
        self._leaders = leaders
        self._connections = connections
        self._by_key: dict[Key, Reading] = {}
        self._failing: set[Reading] = set()
        self._added = 0
        self._retry_at = 0.0
        self._by_node: Mapping[int, Sequence[Reading]] = {}
        self._seen: object = None
        self._holds_until = _NEVER

    def get(self, key: Key) -> Reading | None:
        """A partition that is read now."""
        return self._by_key.get(key)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._by_key)

    def put(self, key: Key, offset: int, last_epoch: int) -> None:
        """Reads a partition from an offset on, over the connection that it had if it was read before."""
        before = self._by_key.get(key)
        number = self._added % self._connections if before is None else before.number
        self._added += before is None
        self.remove([key])
        self._by_key[key] = Reading(key, offset, last_epoch, number)

    def remove(self, keys: Iterable[Key]) -> None:
        """Reads partitions no longer."""
        for key in keys:
            reading = self._by_key.pop(key, None)
            if reading is not None:
                self._failing.discard(reading)
        self._changed()

    def pause(self, keys: Iterable[Key], *, paused: bool) -> None:
        """Holds partitions back, or lets them go on."""
        for key in keys:
            if key in self._by_key:
                self._by_key[key].paused = paused
        self._changed()

    def prefer(self, reading: Reading, node: int, now: float) -> None:
        """Reads from a replica near by for a while."""
        reading.replica, reading.replica_until = node, now + _REPLICA_SECONDS
        self._changed()

    def lost(self, node: int) -> None:
        """A connection is gone; what was read from a replica over it is read from its leader."""
        for reading in self._by_key.values():
            if connection_to(reading.replica, reading.number) == node:
                reading.replica = -1
        self._changed()

    def retry_later(self, reading: Reading, now: float) -> None:
        """Asks for a partition again in a moment, of the broker that leads it then."""
        reading.retry_at = self._retry_at = now + _RETRY_SECONDS
        reading.replica = -1
        self._fails(reading, now)
        self._leaders.refresh()
        self._changed()

    def seconds_to_retry(self, now: float) -> float:
        """Until a partition that could not be read is asked for again; infinite where none is."""
        return self._retry_at - now if self._retry_at > now else _ALWAYS

    def answered(self, readings: Iterable[Reading]) -> None:
        """A broker has answered for these partitions."""
        if self._failing:
            for reading in self._failing.intersection(readings):
                self._failing.remove(reading)
                reading.failed_since = _ALWAYS

    def failing(self, now: float) -> list[Key]:
        """Partitions that no leader has answered for in FAILING_SECONDS."""
        return [
            reading.key for reading in self._failing if now - reading.failed_since > FAILING_SECONDS
        ]

    def by_node(self, now: float) -> Mapping[int, Sequence[Reading]]:
        """What is to be read of which connection; the same objects again until something is different."""
        seen = self._leaders.seen
        if seen is not self._seen or now >= self._holds_until:
            self._seen, self._holds_until = seen, _ALWAYS
            self._by_node = self._worked_out(now)
        return self._by_node

    def _worked_out(self, now: float) -> dict[int, list[Reading]]:
        by_node: dict[int, list[Reading]] = {}
        for reading in self._by_key.values():
            if reading.paused:
                continue
            if now < reading.retry_at:
                self._holds_until = min(self._holds_until, reading.retry_at)
                continue
            leader = self._leaders.of(*reading.key)
            if leader is None:
                self._holds_until = _NEVER
                self._fails(reading, now)
                continue
            node = leader[0]
            if reading.replica >= 0 and now < reading.replica_until:
                self._holds_until = min(self._holds_until, reading.replica_until)
                node = reading.replica
            by_node.setdefault(connection_to(node, reading.number), []).append(reading)
        return by_node

    def _fails(self, reading: Reading, now: float) -> None:
        reading.failed_since = min(reading.failed_since, now)
        if self._by_key.get(reading.key) is reading:
            self._failing.add(reading)

    def _changed(self) -> None:
        self._holds_until = _NEVER


def no_leader(topic: str, partition: int) -> TransientBrokerError:
    """Why a partition that is ``failing`` cannot be read."""
    place = f"{topic}/{partition}"
    return TransientBrokerError(
        f"cannot read {place}: no leader has answered for it in {FAILING_SECONDS:g} seconds",
        subject=place,
        remedy="Check that the brokers which hold its replicas run. It is tried again by itself.",
    )
