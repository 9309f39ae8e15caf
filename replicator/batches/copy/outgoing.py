"""What waits to be written to one partition, and what of it is on its way."""

from collections import deque
from collections.abc import Callable, Sequence

from replicator.batches.codec.header import claim, codec_of, next_sequence
from replicator.batches.codec.joined import joined
from replicator.batches.copy.transactions import ProducerIdentity
from replicator.batches.network.buffers import Buffer
from replicator.errors import StoredFormatError

REQUESTS_IN_FLIGHT = 5
RETRY_SECONDS = 0.05

Key = tuple[str, int]


class Outgoing:
    """One batch on its way. ``on_written`` gets its base offset on the target (-1: not told)."""

    __slots__ = ("buffer", "count", "data", "joins", "on_written", "sequence")

    def __init__(
        self,
        data: memoryview,
        count: int,
        *,
        buffer: Buffer | None = None,
        on_written: Callable[[int], None] | None = None,
        joins: int = 0,
    ) -> None:
        """``joins``: small batches may become one with what follows, of so many bytes at most."""
        self.data = data
        self.count = count
        self.buffer = buffer
        self.on_written = on_written
        self.joins = joins
        self.sequence = -1


class PartitionOut:
    """One partition of the target; ``in_flight`` counts its batches in requests without an answer."""

    __slots__ = (
        "failed", "failed_since", "in_flight", "key", "known_until", "pending", "retry_at", "sequence",
        "unacknowledged",
    )  # fmt: skip

    def __init__(self, key: Key) -> None:
        self.key = key
        self.pending: deque[Outgoing] = deque()
        self.unacknowledged: deque[Outgoing] = deque()
        self.in_flight = 0
        self.sequence = 0
        self.known_until = 0.0
        self.failed = False
        self.failed_since = 0.0
        self.retry_at = 0.0

    def next(self, now: float) -> Outgoing | None:
        """What may be sent now, if anything."""
        if self.failed:
            if self.in_flight or now < self.retry_at:
                return None
            if self.unacknowledged:
                return self.unacknowledged[0]
            self.failed = False
        most = REQUESTS_IN_FLIGHT if now < self.known_until else 1
        return self.pending[0] if self.pending and self.in_flight < most else None

    def join_first(self) -> int:
        """Makes one batch of the small ones that wait in front; returns by how many bytes that changes them."""
        first = self.pending[0]
        together, size, codec = 0, 0, codec_of(first.data)
        for batch in self.pending:
            size += len(batch.data)
            if not batch.joins or size > first.joins or codec_of(batch.data) != codec:
                break
            together += 1
        if together < 2:
            return 0
        parts = [self.pending.popleft() for _ in range(together)]
        try:
            data = joined([batch.data for batch in parts])
        except StoredFormatError:
            first.joins = 0  # a reader of the target sees what a reader of the source sees
            self.pending.extendleft(reversed(parts))
            return 0
        for batch in parts:
            if batch.buffer is not None:
                batch.buffer.release()
        count = sum(batch.count for batch in parts)
        self.pending.appendleft(Outgoing(memoryview(data), count, on_written=_told(parts)))
        return len(data) - sum(len(batch.data) for batch in parts)

    def sent(self, batch: Outgoing, identity: ProducerIdentity, *, transactional: bool) -> None:
        """The batch goes into a request; one that goes for the first time gets its sequence number."""
        self.in_flight += 1
        if self.failed:
            return
        self.pending.popleft()
        self.unacknowledged.append(batch)
        batch.sequence = self.sequence
        self.sequence = next_sequence(self.sequence, batch.count)
        claim(
            batch.data,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=batch.sequence,
            transactional=transactional,
        )

    def not_taken(self, now: float) -> None:
        """Everything unacknowledged has to be sent again, one after the other, in a moment."""
        if not self.failed:
            self.failed, self.failed_since = True, now
        self.retry_at = now + RETRY_SECONDS


def _told(parts: Sequence[Outgoing]) -> Callable[[int], None]:
    """Tells each part of a joined batch where it was written."""

    def written(base_offset: int) -> None:
        at = base_offset
        for batch in parts:
            if batch.on_written is not None:
                batch.on_written(at)
            at += batch.count if base_offset >= 0 else 0

    return written
