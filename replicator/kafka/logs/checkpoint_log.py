"""Reading the checkpoints topic of a pair: its records as they are stored, or the checkpoints that hold.

Every reader comes through here; ``offsets.stored`` follows the same topic as it grows.
"""

from collections.abc import Iterable

from replicator.formats.checkpoint import Checkpoint, merge_checkpoints
from replicator.identifiers import ClusterAlias, TopicPartition, checkpoints_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.topology.plan import ClusterPlan, PairPlan

READ_SECONDS = 15.0


def read_checkpoint_records(
    topology: str,
    source_alias: ClusterAlias,
    target: ClusterPlan,
    lanes: Iterable[int],
    *,
    client_id: str,
    timeout_seconds: float = READ_SECONDS,
    past_open_transactions: bool = False,
) -> dict[int, dict[bytes, bytes]]:
    """The last value of each key, per lane's partition: checkpoints and offset index entries.

    Raises:
        ReplicatorError: the target does not answer, or has no such topic.
    """
    wanted = tuple(lanes)
    if not wanted:
        return {}
    return read_compacted(
        target,
        checkpoints_topic(topology, source_alias),
        wanted,
        client_id=client_id,
        timeout_seconds=timeout_seconds,
        past_open_transactions=past_open_transactions,
        known_to_exist=True,  # or nobody would know its lanes
    )


def read_checkpoints(
    topology: str, pair: PairPlan, *, client_id: str, partitions: int | None = None
) -> dict[TopicPartition, Checkpoint]:
    """The checkpoint that holds for each source partition of the pair; empty before the first.

    ``partitions`` are those of the checkpoints topic; the target is asked where they are not given.

    Raises:
        ReplicatorError: the target does not answer.
        StoredFormatError: a checkpoint cannot be read; nothing is guessed.
    """
    alias = pair.source.alias
    if partitions is None:
        name = checkpoints_topic(topology, alias)
        with ClusterAdmin(pair.target, client_id=client_id) as admin:
            described = admin.describe_topics([name]).get(name)
        partitions = 0 if described is None else described.partitions
    return merge_checkpoints(
        read_checkpoint_records(
            topology, alias, pair.target, range(partitions), client_id=client_id
        )
    )
