"""What was observed about a pair of clusters, frozen: the only input of the decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.control.reconcile.cluster_view import ClusterView
from replicator.control.store.state import EMPTY, ControlState
from replicator.problem import Problem


@dataclass(frozen=True, slots=True)
class PairSnapshot:
    """Both clusters and the control topic at one moment.

    Attributes:
        at_ms: when it was taken, milliseconds since the epoch.
        aliases: all aliases of the topology.
        source: topics of the source; facts of those that flows take.
        target: topics of the target; facts of those that flows write.
        target_brokers: how many brokers the target has.
        control: the control topic of the target.
        misplaced: source topics whose checkpoints stand outside their lanes.
        checkpoints_exist: whether anything was ever checkpointed for the pair.
        refusals: what brokers refused lately, by identity of the action.
        task_problems: what the controller's periodic tasks found wrong.
        histories: bytes of source partitions with records, of topics that may begin in bulk.
        absences: source topics on record that the source does not list, with what it says of them by name:
            None where it does not know them, else why it did not say.
        just_created: target topics created so recently that metadata may not show them yet.
    """

    at_ms: int
    aliases: tuple[str, ...]
    source: ClusterView
    target: ClusterView
    target_brokers: int
    control: ControlState = EMPTY
    misplaced: frozenset[str] = frozenset()
    checkpoints_exist: bool = False
    refusals: Mapping[str, Problem] = field(default_factory=dict)
    absences: Mapping[str, Problem | None] = field(default_factory=dict)
    just_created: frozenset[str] = frozenset()
    task_problems: tuple[Problem, ...] = ()
    histories: Mapping[tuple[str, int], int] = field(default_factory=dict)
