"""The lanes that the group gave this worker, and what each of them was last told."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from replicator.dataplane.transport.spec import LaneSpec


class OwnedLanes:
    """Written by the membership's thread and by the pair's; every method is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owned: set[int] = set()
        self._told: dict[int, LaneSpec] = {}
        self._doubtful: set[int] = set()

    @property
    def owned(self) -> frozenset[int]:
        """All lanes of this worker."""
        with self._lock:
            return frozenset(self._owned)

    @property
    def running(self) -> tuple[int, ...]:
        """Lanes that were told to run, in order."""
        with self._lock:
            return tuple(sorted(self._told))

    @property
    def unconfirmed(self) -> frozenset[int]:
        """Owned lanes that were fenced: only the group's coordinator can say whose they are."""
        with self._lock:
            return frozenset(self._doubtful & self._owned)

    def add(self, lanes: Iterable[int]) -> None:
        """The group gave these."""
        with self._lock:
            self._owned.update(lanes)

    def remove(self, lanes: Collection[int]) -> list[int]:
        """The group takes these back; returns those that run."""
        with self._lock:
            self._owned.difference_update(lanes)
            self._doubtful.difference_update(lanes)
            return [lane for lane in lanes if self._told.pop(lane, None) is not None]

    def ended(self, lane: int, *, fenced: bool) -> None:
        """A lane ended; one that was replaced while we thought it ours is doubtful."""
        with self._lock:
            if self._told.pop(lane, None) is not None and fenced:
                self._doubtful.add(lane)

    def confirm(self, lanes: Iterable[int]) -> None:
        """The coordinator says that these are ours."""
        with self._lock:
            self._doubtful.difference_update(lanes)

    def tell(self, wanted: Mapping[int, LaneSpec], start: Callable[[LaneSpec], None]) -> list[int]:
        """Gives lanes new orders, except those that are not surely ours.

        Args:
            wanted: what each lane should do.
            start: called for each order that is new, while nobody can take the lane away: one that
                started after it was taken away would run on unknown to us.

        Returns:
            lanes that run and are not wanted: to be ended by the caller.
        """
        with self._lock:
            sure = {
                lane: spec
                for lane, spec in wanted.items()
                if lane in self._owned and lane not in self._doubtful
            }
            gone = [lane for lane in self._told if lane not in sure]
            for lane in gone:
                del self._told[lane]
            for lane, spec in sure.items():
                told = self._told.get(lane)
                if told is not spec and told != spec:  # to compare them is work, and seldom needed
                    self._told[lane] = spec
                    start(spec)
            return gone

    def end_all(self) -> list[int]:
        """Nothing runs any more; returns what did."""
        with self._lock:
            running = list(self._told)
            self._told.clear()
            return running

    def clear(self) -> None:
        """The worker has left its group."""
        with self._lock:
            self._owned.clear()
