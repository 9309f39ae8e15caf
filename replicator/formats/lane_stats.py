"""What lanes report to their worker: states, statistics, problems. Frozen and JSON-friendly.

A lane process sends these as JSON lines over its socket; the control room, status and metrics read
them. Nothing here decides anything.
"""

from dataclasses import dataclass, field
from typing import Literal

from replicator.formats.partition_failure import PartitionFailure

LaneState = Literal["starting", "running", "recovering", "stopped", "failed"]
PartitionStateName = Literal["waiting", "replicating", "paused", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """One partition as its lane sees it now; counters count since the lane started.

    ``source_end`` is the source's high watermark as last fetched (-1 when not yet known).
    ``timestamp_ms`` is the source timestamp of the last record read, -1 when none was. ``problem`` is
    why it was stopped by policy; ``failure`` is what keeps it from moving at present.
    """

    topic: str
    partition: int
    target_topic: str
    state: PartitionStateName
    position: int
    source_end: int
    timestamp_ms: int
    records: int
    bytes: int
    problem: str = ""
    detail: str = ""
    failure: PartitionFailure | None = None


@dataclass(frozen=True, slots=True)
class LaneStats:
    """One lane's figures. Counters count since the lane process took the lane.

    ``source_problem``, ``target_problem`` and ``progress_problem`` (why the lane's group on the source shows
    nothing) are a problem code, a blank, the detail, and on a second line the remedy. So are ``source_login`` and
    ``target_login``: why what the lane's process logs in with there will not hold; and ``source_quota`` and
    ``target_quota``: that the cluster holds the lane back; ``source_opening`` and ``target_opening``: why clients that
    the lane should go over to cannot be opened, so that it goes on with those it has. ``records_reason``: why it copies
    record by record though its orders are whole batches, in a word of ``FlowEngine``. ``latency_buckets`` are
    cumulative-free counts per bucket of LATENCY_BOUNDS_SECONDS plus one for everything above; ``latency_sum_seconds`` is their sum. ``commit_buckets`` likewise for commit
    duration.
    """

    pair: str
    link: str
    lane: int
    state: LaneState
    reason: str
    partitions: tuple[PartitionStats, ...] = ()
    records: int = 0
    bytes: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    quarantined: int = 0
    foreign_headers: int = 0
    headers_omitted: int = 0
    commits: int = 0
    aborts: int = 0
    unknown_outcomes: int = 0
    throttle_wait_seconds: float = 0.0
    latency_buckets: tuple[int, ...] = ()
    latency_sum_seconds: float = 0.0
    commit_buckets: tuple[int, ...] = ()
    commit_sum_seconds: float = 0.0
    checkpoint_at_ms: int = 0
    source_problem: str = ""
    target_problem: str = ""
    progress_problem: str = ""
    source_login: str = ""
    target_login: str = ""
    source_quota: str = ""
    target_quota: str = ""
    source_opening: str = ""
    target_opening: str = ""
    records_reason: str = ""
    pid: int = 0


LATENCY_BOUNDS_SECONDS: tuple[float, ...] = (
    0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
)  # fmt: skip
