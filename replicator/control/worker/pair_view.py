"""Who a worker is, and how one of its pairs stands. Frozen."""

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.control.store.state import ControlState
from replicator.identifiers import LinkName
from replicator.observability.snapshot import TaskMetrics
from replicator.problem import Problem


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who this worker is, as others see it; ``instance_id`` makes its membership static.

    ``memory_bytes`` is what it may use in all, None without a limit.
    """

    id: str
    host: str
    pid: int
    http: str
    instance_id: str | None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PairView:
    """What readiness, status and metrics ask of a pair.

    ``problems`` keep the pair from its work; ``task_problems`` are those of the controller's tasks, beside
    which records move on. ``figures`` are what the tasks count, live; None where another worker is
    the controller.
    """

    pair: str
    joined: bool
    owned: tuple[int, ...]
    running: tuple[int, ...]
    control: ControlState
    problems: tuple[Problem, ...]
    task_problems: tuple[Problem, ...]
    figures: Mapping[LinkName, TaskMetrics] | None
