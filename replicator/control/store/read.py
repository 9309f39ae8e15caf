"""Reading the control topic and the checkpoints topic of a pair, to their ends."""

from collections.abc import Mapping

from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import (
    InputError,
    NotFoundError,
)
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.identifiers import (
    TopicPartition,
    checkpoints_topic,
    control_topic,
)
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.compacted_log import read_compacted
from replicator.topology.plan import ClusterPlan, PairPlan, Plan

READ_SECONDS = 15.0


def read_control(
    topology: str,
    cluster: ClusterPlan,
    *,
    client_id: str,
    timeout_seconds: float = READ_SECONDS,
    settled: bool = False,
) -> ControlState:
    """The control topic of a cluster, read to its end; ``settled`` as ``read_compacted`` has it.

    Raises:
        ClusterError: the cluster does not answer, or has no control topic (``NotFoundError``).
    """
    read = read_compacted(
        cluster,
        control_topic(topology),
        client_id=client_id,
        timeout_seconds=timeout_seconds,
        settled=settled,
    )
    return EMPTY.fold(read[0].items())


def require_control(plan: Plan, pair: PairPlan, *, client_id: str) -> ControlState:
    """The target's control topic.

    Raises:
        InputError: the pair was never applied, so nothing is on record.
        ClusterError: the target does not answer.
    """
    try:
        return read_control(plan.topology, pair.target, client_id=client_id)
    except NotFoundError as error:
        raise InputError(
            "it was never applied: its target has no control topic",
            subject=pair.id,
            remedy="Run 'replicator apply', or start a worker.",
        ) from error


def read_checkpoints(
    pair: PairPlan, topic: str, partitions: range, *, client_id: str
) -> dict[int, Mapping[bytes, bytes]]:
    """The last value of each key, per checkpoints partition."""
    if not partitions:
        return {}
    return dict(
        read_compacted(
            pair.target, topic, partitions, client_id=client_id, timeout_seconds=READ_SECONDS
        )
    )


def read_all_checkpoints(
    plan: Plan, pair: PairPlan, *, client_id: str
) -> dict[TopicPartition, Checkpoint]:
    """The newest checkpoint of every source partition; empty before the first.

    Raises:
        ClusterError: the target does not answer.
    """
    name = checkpoints_topic(plan.topology, pair.source.alias)
    with ClusterAdmin(pair.target, client_id=client_id) as target:
        described = target.describe_topics([name]).get(name)
    if described is None:
        return {}
    found: dict[TopicPartition, Checkpoint] = {}
    stored = read_checkpoints(pair, name, range(described.partitions), client_id=client_id)
    for records in stored.values():
        for key, checkpoint in decode_checkpoints(records).items():
            held = found.get(key)
            if held is None or checkpoint.at_ms >= held.at_ms:
                found[key] = checkpoint
    return found
