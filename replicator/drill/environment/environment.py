"""Where a drill takes place: what plays need of a sandbox or of a real link alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from replicator.failover.rules.report import TransitionReport
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
        target: the other side.
        behind: both clusters by alias as the judge reads them, around any fault.
        topic: on the source.
        copy: its name on the target.
        naming: for the judge.
        group: the consumer group of the drill.
        real: whether these are clusters of somebody.
        fenced_by_word: whether a switchover counts on its writers being stopped by somebody: the
            drill's own are then stopped when it says so.
        starts: by cluster, where a topic that others use ended when the drill began; empty for one
            of the drill's own.
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
        """Whether others write to the topic too: then only the drill's own records are judged."""
        return bool(self.starts)


class Environment(Protocol):
    """One place for one drill."""

    def ready(self) -> Scene:
        """Makes everything that is needed and waits until records cross.

        Raises:
            ReplicatorError: it did not come about.
        """
        ...

    @property
    def clears_fault(self) -> bool:
        """Whether the fault is ended by the drill; a killed worker stays dead."""
        ...

    def aim(self) -> None:
        """Finds what will be broken, so that breaking it takes no time."""
        ...

    def inject_fault(self) -> str:
        """Begins the fault; returns once it is in force, with what was done."""
        ...

    def clear_fault(self) -> str:
        """Ends the fault; returns what was done."""
        ...

    def change_roles(self, *, on_step: OnStep) -> TransitionReport:
        """Runs the role change that the drill is about.

        Raises:
            ReplicatorError: refused or failed.
        """
        ...

    def check(self, *, last_write_at: float) -> None:
        """Looks whether the drill may go on.

        Args:
            last_write_at: wall-clock seconds of the newest acknowledged write, 0 before any.

        Raises:
            AbortedError: a condition to abort is met, or a worker ended by itself.
        """
        ...


Tell = Callable[[str, str], None]
"""Hears of a step: its name, and what came of it (empty when it begins)."""
