"""What a lane keeps across its sessions, and lends to each of them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from replicator.clock import Clock
from replicator.dataplane.context.idle_poller import IdleWait
from replicator.dataplane.context.lane_throttle import LaneThrottle
from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_health import Side
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.changed_logs import ChangedLogs
from replicator.errors import ReplicatorError
from replicator.kafka.clients.client import ThrottleEvent
from replicator.policy.capacity.answer_size import AnswerSize
from replicator.policy.capacity.broker_quota import BrokerQuota
from replicator.policy.capacity.crossing_codec import CrossingCodec
from replicator.problem import Problem


@dataclass(frozen=True, slots=True)
class LaneContext:
    """Used by the lane's thread only.

    ``give_up`` says whether the lane must not wait for the target any longer; ``on_flow`` is told that the target takes
    what is on its way, so that nobody asks why not. ``examine`` decides anew
    where partitions go on that need a check. ``on_failure`` is told that a partition could not be read or
    written, and on which side. ``idle_wait`` waits for the next record of an idle lane;
    None waits in the client.
    """

    clock: Clock
    counters: LaneCounters
    throttle: LaneThrottle
    quarantine: QuarantineWriter
    problems: ConnectionProblems
    source_quota: BrokerQuota
    target_quota: BrokerQuota
    give_up: Callable[[], bool]
    on_flow: Callable[[], None]
    examine: Callable[[set[PartitionState]], None]
    on_failure: Callable[[PartitionState, Side, ReplicatorError], None]
    idle_wait: IdleWait | None = None
    changed_logs: ChangedLogs = field(default_factory=ChangedLogs)
    answers: AnswerSize = field(default_factory=AnswerSize)
    crossing: CrossingCodec = field(default_factory=CrossingCodec)

    def on_source_throttle(self, event: ThrottleEvent) -> None:
        """The client library says for how long a broker of the source holds it back."""
        self._throttled(self.source_quota, event)

    def on_target_throttle(self, event: ThrottleEvent) -> None:
        """The same of the target."""
        self._throttled(self.target_quota, event)

    def held_back(self) -> tuple[Problem | None, Problem | None]:
        """That a quota of the source, and one of the target, holds the lane back now."""
        now = self.clock.monotonic()
        return self.source_quota.problem(now), self.target_quota.problem(now)

    def _throttled(self, quota: BrokerQuota, event: ThrottleEvent) -> None:
        quota.answered(
            event.broker_id, event.throttle_time, used_bytes=0, now=self.clock.monotonic()
        )
        self.counters.throttle_wait_seconds += event.throttle_time
