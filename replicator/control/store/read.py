"""Reading the control topic of a cluster to its end."""

from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import InputError, NotFoundError
from replicator.identifiers import control_topic
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.topology.plan import ClusterPlan, PairPlan, Plan

READ_SECONDS = 15.0


def read_control(
    topology: str,
    cluster: ClusterPlan,
    *,
    client_id: str,
    timeout_seconds: float = READ_SECONDS,
    past_open_transactions: bool = False,
    known_to_exist: bool = False,
    reaches: int = 0,
) -> ControlState:
    """The control topic of a cluster, read to its end; the last three arguments as ``read_compacted`` has them.

    Raises:
        ClusterError: the cluster does not answer, or has no control topic (``NotFoundError``).
    """
    read = read_compacted(
        cluster,
        control_topic(topology),
        client_id=client_id,
        timeout_seconds=timeout_seconds,
        past_open_transactions=past_open_transactions,
        known_to_exist=known_to_exist,
        reaches={0: reaches},
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
