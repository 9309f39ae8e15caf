"""The lanes that the group assigned to this worker, and the spec that each was sent last."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from replicator.dataplane.transport.spec import LaneSpec


class OwnedLanes:
    """Written by the membership's thread and by the pair's; every method is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owned: set[int] = set()
        self._sent: dict[int, LaneSpec] = {}
        self._unconfirmed: set[int] = set()

    @property
    def owned(self) -> frozenset[int]:
        """All lanes of this worker."""
        with self._lock:
            return frozenset(self._owned)

    @property
    def running(self) -> tuple[int, ...]:
        """Lanes that were started, in order."""
        with self._lock:
            return tuple(sorted(self._sent))

    @property
    def unconfirmed(self) -> frozenset[int]:
        """Owned lanes that were fenced: only the group's coordinator can say whose they are."""
        with self._lock:
            return frozenset(self._unconfirmed & self._owned)

    def add(self, lanes: Iterable[int]) -> None:
        """The group gave these."""
        with self._lock:
            self._owned.update(lanes)

    def remove(self, lanes: Collection[int]) -> list[int]:
        """The group takes these back; returns those that run."""
        with self._lock:
            self._owned.difference_update(lanes)
            self._unconfirmed.difference_update(lanes)
            return [lane for lane in lanes if self._sent.pop(lane, None) is not None]

    def ended(self, lane: int, *, fenced: bool) -> None:
        """A lane ended; one that was fenced while it was ours is unconfirmed."""
        with self._lock:
            if self._sent.pop(lane, None) is not None and fenced:
                self._unconfirmed.add(lane)

    def confirm(self, lanes: Iterable[int]) -> None:
        """The coordinator says that these are ours."""
        with self._lock:
            self._unconfirmed.difference_update(lanes)

    def send(self, wanted: Mapping[int, LaneSpec], start: Callable[[LaneSpec], None]) -> list[int]:
        """Sends lanes the specs that are new, except to lanes that are not surely ours.

        Args:
            wanted: what each lane should do.
            start: called for each spec that is new, while the lane cannot be revoked: one that started
                after it was revoked would run on without an owner.

        Returns:
            lanes that run and are not wanted: to be ended by the caller.
        """
        with self._lock:
            sure = {
                lane: spec
                for lane, spec in wanted.items()
                if lane in self._owned and lane not in self._unconfirmed
            }
            gone = [lane for lane in self._sent if lane not in sure]
            for lane in gone:
                del self._sent[lane]
            for lane, spec in sure.items():
                sent = self._sent.get(lane)
                if sent is not spec and sent != spec:  # to compare them is work, and seldom needed
                    self._sent[lane] = spec
                    start(spec)
            return gone

    def end_all(self) -> list[int]:
        """Nothing runs any more; returns what did."""
        with self._lock:
            running = list(self._sent)
            self._sent.clear()
            return running

    def clear(self) -> None:
        """The worker has left its group."""
        with self._lock:
            self._owned.clear()
