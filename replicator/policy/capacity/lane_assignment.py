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
MAX_AUTO_LANES = 8


def lane_of(topic: str, partition: int, count: int) -> int:
    """The lane, from 0 to `count` - 1, that owns this source partition.

    Raises:
        ValueError: when there are no lanes.
    """
    if count < 1:
        raise ValueError("a flow has at least one lane")
    return (_topic_number(topic) + partition) % count


def auto_lanes(source_partitions: int) -> int:
    """What `lanes: auto` means when a flow is first applied."""
    return max(1, min(source_partitions, MAX_AUTO_LANES))


@lru_cache(maxsize=65536)
def _topic_number(topic: str) -> int:
    return int.from_bytes(blake2b(topic.encode(), digest_size=8).digest(), "big")
