"""What a lane keeps across its sessions, and lends to each of them."""

from collections.abc import Callable
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.dataplane.context.idle_poller import IdleWait
from replicator.dataplane.context.lane_throttle import LaneThrottle
from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_health import Side
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import ReplicatorError


@dataclass(frozen=True, slots=True)
class LaneContext:
    """Used by the lane's thread only.

    ``give_up`` says whether the lane must not wait for the target any longer. ``examine`` decides anew
    where partitions go on that need a check. ``on_failure`` is told that a partition could not be read or
    written, and on which side. ``idle_wait`` waits for the next record of an idle lane;
    None waits in the client.
    """

    clock: Clock
    counters: LaneCounters
    throttle: LaneThrottle
    quarantine: QuarantineWriter
    problems: ConnectionProblems
    give_up: Callable[[], bool]
    examine: Callable[[set[PartitionState]], None]
    on_failure: Callable[[PartitionState, Side, ReplicatorError], None]
    idle_wait: IdleWait | None = None
