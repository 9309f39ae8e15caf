"""How much of records a worker may hold, and what that means for each lane's clients. Pure.

A client decompresses what a broker sends as a whole, whatever its queues hold already, and hands it over while the
next answer is on its way. So what counts is the size of an answer, times how much larger records are than
what is stored of them, times the brokers, twice.
"""

from dataclasses import dataclass

from replicator.policy.capacity.line_settings import NEAR_SECONDS

MIB = 1024 * 1024

OWN_BYTES = 200 * MIB
"""What a worker takes without lanes."""

PROCESS_BYTES = 110 * MIB
"""What each lane process takes without records."""

USABLE_PERCENT = 85
"""How much of a limit is planned for: allocators give nothing back at once."""

UNLIMITED_BYTES = 1536 * MIB
"""For records, where nothing limits the worker."""

LEAST_BYTES = 32 * MIB
"""For records, however small the limit is; it cannot be kept then."""

NEAR_EXPANSION = 100
FAR_EXPANSION = 10
"""How much larger records may be than their batches. On a long line little would be under way if a tenfold
compression were not taken for the rule; near by that costs nothing."""

MOST_ANSWER_BYTES = 50 * MIB
LEAST_ANSWER_BYTES = 32 * 1024
MOST_QUEUE_BYTES = 48 * MIB
LEAST_QUEUE_BYTES = MIB
LEAST_UNSENT_BYTES = 4 * MIB


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """One lane's part of the worker's memory for records; ``size_bytes`` 0 is no bound.

    ``expansion``: how much larger records may be than their batches, 0 where the line decides.
    """

    size_bytes: int = 0
    expansion: int = 0


@dataclass(frozen=True, slots=True)
class LaneMemory:
    """What the clients of a lane may hold.

    Attributes:
        answer_bytes: of one answer of a broker, as it is sent; a single larger batch is sent all the same.
        queue_bytes: of records that were fetched ahead.
        unsent_bytes: of records that wait for the target.
        expansion: how much larger records may be than their batches.
        held_bytes: the sum of everything, where brokers send that much.
        kept: whether that sum is within the share.
    """

    answer_bytes: int
    queue_bytes: int
    unsent_bytes: int
    expansion: int
    held_bytes: int
    kept: bool


def records_bytes(limit_bytes: int | None, *, processes: int) -> int:
    """How much of records all lanes of a worker may hold together.

    Args:
        limit_bytes: what the worker may use in all, None without a limit.
        processes: its lane processes.
    """
    if limit_bytes is None:
        return UNLIMITED_BYTES
    own = OWN_BYTES + processes * PROCESS_BYTES
    return max(LEAST_BYTES, limit_bytes * USABLE_PERCENT // 100 - own)


def lane_share(total_bytes: int, lanes: int) -> int:
    """What one of so many lanes may hold; the same from 5 to 8 lanes, so that few changes open clients anew."""
    parts = 1
    while parts < lanes:
        parts *= 2
    return total_bytes // parts


def lane_memory(
    share: MemoryShare, *, brokers: int, line_seconds: float, partition_bytes: int
) -> LaneMemory:
    """What a lane's clients may hold.

    Args:
        share: the lane's part.
        brokers: of the source; each may answer at the same time.
        line_seconds: the round trip to the source.
        partition_bytes: what is asked of one partition at least where memory is not bounded.
    """
    expansion = share.expansion or (
        NEAR_EXPANSION if line_seconds <= NEAR_SECONDS else FAR_EXPANSION
    )
    if not share.size_bytes:
        most = max(MOST_ANSWER_BYTES, partition_bytes)
        return LaneMemory(most, MOST_QUEUE_BYTES, MOST_QUEUE_BYTES, expansion, 0, kept=True)
    part = share.size_bytes // 4
    answer = max(LEAST_ANSWER_BYTES, min(MOST_ANSWER_BYTES, part // (brokers * expansion)))
    queue = max(LEAST_QUEUE_BYTES, min(MOST_QUEUE_BYTES, part // 4))
    unsent = max(LEAST_UNSENT_BYTES, min(MOST_QUEUE_BYTES, part))
    held = 2 * (brokers * answer * expansion + queue) + unsent
    return LaneMemory(answer, queue, unsent, expansion, held, kept=held <= share.size_bytes)


def batches_memory(
    share: MemoryShare, *, brokers: int, connections: int, fetch_bytes: int, outstanding_bytes: int
) -> LaneMemory:
    """For whole batches, which stay compressed: the bytes of one fetch, and (unsent) those that wait for the target.

    Args:
        share: the lane's part.
        brokers: of the source.
        connections: to each of them, each with a fetch of its own.
        fetch_bytes: of one fetch where memory is not bounded.
        outstanding_bytes: the same for what waits for the target.
    """
    if not share.size_bytes:
        return LaneMemory(fetch_bytes, 0, outstanding_bytes, 1, 0, kept=True)
    half = share.size_bytes // 2
    fetch = max(LEAST_QUEUE_BYTES, min(fetch_bytes, half // (brokers * connections)))
    unsent = max(LEAST_UNSENT_BYTES, min(outstanding_bytes, half))
    held = brokers * connections * fetch + unsent
    return LaneMemory(fetch, 0, unsent, 1, held, kept=held <= share.size_bytes)


def shown_bytes(size: int) -> str:
    """As people read it."""
    return f"{size / MIB:.1f} MiB" if size < 10 * MIB else f"{size / MIB:.0f} MiB"
