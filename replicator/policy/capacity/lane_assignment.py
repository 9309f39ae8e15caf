"""Which lane owns a source partition.

The answer is a contract on the wire: checkpoints of a partition are looked for in the checkpoints
partition of its lane, so every version and every language must give the same number. It is

    (first 8 bytes of BLAKE2b(topic), big-endian, + partition) mod count

The topic is hashed and the partition added, rather than both hashed, so that one topic's partitions
spread over the lanes evenly: a topic of 8 partitions keeps all 8 lanes busy.
"""

from functools import lru_cache
from hashlib import blake2b

MAX_LANES = 256
FEW_LANES = 8
"""As many as a flow of few partitions has: they use the cores of two or three workers."""

PARTITIONS_PER_LANE = 250
"""A lane goes through all of its partitions when it takes over, looks around, and stores checkpoints."""


def lane_of(topic: str, partition: int, count: int) -> int:
    """The lane, from 0 to `count` - 1, that owns this source partition.

    Raises:
        ValueError: when there are no lanes.
    """
    if count < 1:
        raise ValueError("a flow has at least one lane")
    return (_topic_number(topic) + partition) % count


def auto_lanes(source_partitions: int, workers: int = 0) -> int:
    """What `lanes: auto` means for a flow of so many partitions that so many workers share.

    No lane without a partition, and a lane for PARTITIONS_PER_LANE of them; two for each worker, so that the
    loss of one is shared by the others.
    """
    useful = max(FEW_LANES, -(-source_partitions // PARTITIONS_PER_LANE), 2 * workers)
    return max(1, min(source_partitions, useful, MAX_LANES))


@lru_cache(maxsize=65536)
def _topic_number(topic: str) -> int:
    return int.from_bytes(blake2b(topic.encode(), digest_size=8).digest(), "big")
