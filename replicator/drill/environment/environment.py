"""What a drill needs of its environment, be it a sandbox or a real link."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from replicator.failover.report.report import TransitionReport
from replicator.failover.rules.request import OnStep
from replicator.testing.checker.routes import Naming
from replicator.testing.kit.endpoints import Endpoint
from replicator.topology.plan import PairPlan, Plan


@dataclass(frozen=True, slots=True)
class Scene:
    """The flow under drill.

    Attributes:
        plan: the topology in force.
        pair: the flow's clusters.
        link: name of the link.
        source: where applications write at first.
        target: the other cluster.
        behind: both clusters by alias as the checker reads them, not affected by any fault.
        topic: on the source.
        copy: its name on the target.
        naming: for the checker.
        group: the consumer group of the drill.
        real: whether this is a real link.
        fenced_by_word: whether a switchover relies on the operator to stop writers: the drill's own
            are then stopped when its fence step begins.
        starts: by cluster, where a topic that others use ended when the drill began; empty where
            the drill has a topic of its own.
    """

    plan: Plan
    pair: PairPlan
    link: str
    source: Endpoint
    target: Endpoint
    behind: Mapping[str, Endpoint]
    topic: str
    copy: str
    naming: Naming
    group: str
    real: bool
    fenced_by_word: bool
    starts: Mapping[str, Mapping[tuple[str, int], int]] = field(default_factory=dict)

    @property
    def shared(self) -> bool:
        """Whether others write to the topic too: then only the drill's own records are checked."""
        return bool(self.starts)


class Environment(Protocol):
    """The environment of one drill."""

    def ready(self) -> Scene:
        """Sets everything up and waits until records are copied.

        Raises:
            ReplicatorError: it could not be set up.
        """
        ...

    @property
    def clears_fault(self) -> bool:
        """Whether the drill can clear the fault; a killed worker stays dead."""
        ...

    def aim(self) -> None:
        """Chooses the target of the fault, so that injecting it takes no time."""
        ...

    def inject_fault(self) -> str:
        """Injects the fault; returns once it is in force, with what was done."""
        ...

    def clear_fault(self) -> str:
        """Clears the fault; returns what was done."""
        ...

    def change_roles(self, *, on_step: OnStep) -> TransitionReport:
        """Runs the role change that the drill is about.

        Raises:
            ReplicatorError: refused or failed.
        """
        ...

    def check(self, *, last_write_at: float) -> None:
        """Checks the abort conditions.

        Args:
            last_write_at: wall-clock seconds of the newest acknowledged write, 0 before any.

        Raises:
            AbortedError: an abort condition is met, or a worker ended unexpectedly.
        """
        ...


Notify = Callable[[str, str], None]
"""Called with a step's name and its result (empty when it begins)."""
