"""A lane's share of its flow's budget: the bucket, and who is served first while it is short."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from replicator.dataplane.progress.pacing import held_back
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.kafka.clients.client import ClientPartition
from replicator.policy.capacity.throttling import TokenBucket
from replicator.policy.values import Priority, Throttle

_FIRST_BATCH_RECORDS = 10
_FIRST_RECORD_BYTES = 100


class Pausable(Protocol):
    """What reads partitions and can hold them back: the client's consumer, or the batches session."""

    def pause(self, partitions: list[ClientPartition], /) -> None:
        """Reads nothing of them."""
        ...

    def resume(self, partitions: list[ClientPartition], /) -> None:
        """Reads them again."""
        ...


class LaneThrottle:
    """Used by the lane's thread only; a new share is set in place without a restart."""

    def __init__(self, throttle: Throttle, *, now: float) -> None:
        self._throttle = throttle
        self._bucket: TokenBucket | None = None
        self._held: frozenset[tuple[str, int]] = frozenset()
        self._held_lately: frozenset[tuple[str, int]] = frozenset()
        self._mean_bytes: float | None = None
        self.set(throttle, now=now)

    def set(self, throttle: Throttle, *, now: float) -> None:
        """Uses another share from now on; a debt is kept."""
        self._throttle = throttle
        limited = throttle.bytes_per_second is not None or throttle.records_per_second is not None
        if not limited:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = TokenBucket(throttle, now=now)
        else:
            self._bucket.change(throttle, now=now)

    @property
    def share(self) -> Throttle:
        """What the lane may copy now."""
        return self._throttle

    @property
    def held(self) -> frozenset[tuple[str, int]]:
        """Partitions that make way for others of higher priority now: they stand still on purpose."""
        return self._held

    def take_held(self) -> frozenset[tuple[str, int]]:
        """The partitions that made way at some moment since the last call."""
        lately, self._held_lately = self._held_lately, self._held
        return lately

    def spent(self, records: int, size: int, now: float) -> None:
        """Takes what was copied from the bucket; it may go into debt."""
        if records > 0:
            mean = size / records
            self._mean_bytes = mean if self._mean_bytes is None else (self._mean_bytes + mean) / 2
        if self._bucket is not None:
            self._bucket.take(size_bytes=size, records=records, now=now)

    def wait_seconds(self, now: float) -> float:
        """How long the lane must not read, 0 when it may."""
        return 0.0 if self._bucket is None else self._bucket.wait_seconds(now=now)

    def batch_records(self, most: int) -> int:
        """A batch no larger than a tenth of a second of the budget, so that debt stays small.

        How large records are is known from those before; the first batch of all is a small one.
        """
        records = self._throttle.records_per_second
        if records is not None:
            most = min(most, records // 10)
        size = self._throttle.bytes_per_second
        if size is not None:
            most = min(most, self._fitting(size / 10))
        return max(1, most)

    def records_in(self, size: int, most: int) -> int:
        """About how many records so many bytes are, one at least; ``most`` at most.

        It is ``most`` while nothing was copied: the first that a client hands over is what one fetch brought.
        """
        return most if self._mean_bytes is None else max(1, min(most, self._fitting(size)))

    def _fitting(self, size: float) -> int:
        if self._mean_bytes is None:
            return _FIRST_BATCH_RECORDS
        return int(size / max(self._mean_bytes, 1.0))

    def batch_bytes(self, most: int) -> int:
        """As ``batch_records``, for a reader that asks for bytes; a source gives one batch at least."""
        size = self._throttle.bytes_per_second
        if size is not None:
            most = min(most, size // 10)
        records = self._throttle.records_per_second
        if records is not None:
            mean = self._mean_bytes or _FIRST_RECORD_BYTES
            most = min(most, int(records / 10 * mean))
        return max(1, most)

    def hold(self, consumer: Pausable, states: Sequence[PartitionState]) -> None:
        """While short, pauses partitions of lower priority as long as higher ones have a backlog."""
        running = [state for state in states if not state.problem and not state.needs_check]
        priorities: dict[tuple[str, int], Priority] = {
            state.key: state.work.priority for state in running
        }
        if len(set(priorities.values())) < 2:
            held: frozenset[tuple[str, int]] = frozenset()
        else:
            backlog = [state.key for state in running if state.source_end > state.position]
            held = held_back(priorities, backlog)
        if held == self._held:
            return
        release = [key for key in self._held - held if key in priorities]
        if release:
            consumer.resume([ClientPartition(*key) for key in release])
        pause = [key for key in held - self._held if key in priorities]
        if pause:
            consumer.pause([ClientPartition(*key) for key in pause])
        self._held = held
        self._held_lately |= held

    def release_all(
        self, consumer: Pausable, states: Callable[[], Iterable[PartitionState]]
    ) -> None:
        """Lets every held partition run again, once there is no shortage."""
        if not self._held:
            return
        known = {state.key for state in states()}
        keys = [ClientPartition(*key) for key in self._held if key in known]
        if keys:
            consumer.resume(keys)
        self._held = frozenset()
