"""What metrics are made from: one snapshot of a worker per scrape. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replicator.formats.lane_stats import LaneStats, PartitionStats


@dataclass(frozen=True, slots=True)
class OpenTransactionMetrics:
    """Open source transactions that records of one flow wait behind: age of the oldest, and how many."""

    seconds: float = 0.0
    records: int = 0


@dataclass(slots=True)
class TaskMetrics:
    """What the controller's periodic tasks counted for one flow; counters only grow while it lives.

    ``translations`` are group positions carried over, by grade. ``groups_synced_at_ms`` is -1 before
    the first sync. ``canary_buckets`` are round trips in buckets of the metric's bounds, empty before
    the first; ``canary_at_ms`` is when one came last, ``canary_last_seconds`` how long it took.
    """

    translations: dict[str, int] = field(default_factory=dict)
    groups_synced_at_ms: int = -1
    canary_buckets: list[int] = field(default_factory=list)
    canary_sum_seconds: float = 0.0
    canary_lost: int = 0
    canary_at_ms: int = -1
    canary_last_seconds: float = 0.0
    open_transactions: OpenTransactionMetrics = OpenTransactionMetrics()


@dataclass(frozen=True, slots=True)
class FlowMetrics:
    """One flow of one link as the worker knows it.

    ``lanes_missing`` is None while this worker does not know who owns the flow's lanes; ``tasks``
    where another worker is the flow's controller.
    """

    link: str
    flow: str
    state: str
    lanes_missing: int | None = None
    problem_codes: tuple[str, ...] = ()
    tasks: TaskMetrics | None = None


@dataclass(frozen=True, slots=True)
class LinkMetrics:
    """One link with roles: the role of each of its clusters, and what its last change took.

    ``duration_seconds`` and ``lost_records`` are None where no change is on record; ``open_seconds`` is
    the age of the change under way, None without one. ``fences`` are pairs of cluster and method.
    """

    link: str
    epoch: int
    roles: Mapping[str, str]
    duration_seconds: float | None = None
    lost_records: int | None = None
    open_kind: str = ""
    open_seconds: float | None = None
    fences: Sequence[tuple[str, str]] = ()
    problem_codes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LoginMetrics:
    """For how long something that clients of a cluster log in with still holds; see ``LOGIN_KINDS``."""

    cluster: str
    kind: str
    seconds_left: float


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """Everything one scrape needs: the topology's name, the lanes owned now, the flows this worker serves, links' roles."""

    now_ms: int
    topology: str
    plan_hash: str
    lanes: Sequence[LaneStats]
    flows: Sequence[FlowMetrics]
    links: Sequence[LinkMetrics] = ()
    logins: Sequence[LoginMetrics] = ()


def lag_records(partition: PartitionStats) -> int | None:
    """Records left to read; None while position or end is not known."""
    if partition.source_end < 0 or partition.position < 0:
        return None
    return max(0, partition.source_end - partition.position)


def lag_seconds(partition: PartitionStats, *, now_ms: int) -> float | None:
    """Age of the last record read where any is left, 0 where none is; None when not known."""
    left = lag_records(partition)
    if left is None:
        return None
    if left == 0:
        return 0.0
    if partition.timestamp_ms < 0:
        return None
    return max(0.0, (now_ms - partition.timestamp_ms) / 1000)
