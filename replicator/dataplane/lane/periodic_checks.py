"""What a running lane does beside copying: statistics, and looks at partitions that may need one."""

from replicator.clock import Clock
from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.health.no_share import NoShare, has_none
from replicator.dataplane.health.standstill import Standstill
from replicator.dataplane.health.unheard_records import UnheardRecords
from replicator.dataplane.lane.lane_report import LaneReport
from replicator.dataplane.lane.partitions import LanePartitions, UnlookedTargetError
from replicator.dataplane.lane.stats_schedule import StatsSchedule
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.session.clients_protocol import SessionClients
from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.errors import ReplicatorError

RECHECK_SECONDS = 2.0
"""How often a partition the source could not answer for is asked about again."""

CHECK_TARGETS_SECONDS = 60.0
"""How often a running lane asks whether the target still holds what it acknowledged."""


LOOK_AGAIN_SECONDS, MOST_UNLOOKED = 10.0, 3
"""How soon it asks again after a look in vain, and how many of them in a row end the session."""


class PeriodicChecks:
    """Asked after every step of a session; most answers are that nothing is due."""

    def __init__(
        self,
        spec: LaneSpec,
        *,
        report: LaneReport,
        context: LaneContext,
        clock: Clock,
    ) -> None:
        self._report = report
        self._counters = context.counters
        self._context = context
        self._standstill = Standstill(
            source=spec.source, client_id=lane_client_id(spec), clock=clock
        )
        self._unheard = UnheardRecords(
            spec.source, client_id=lane_client_id(spec), clock=clock, on_failure=self._unasked
        )
        self._no_share = NoShare(spec.lane)
        self._clock = clock
        self._schedule = StatsSchedule()
        self._recheck_at = 0.0
        self._not_free_before = (0.0, 0)
        self._check_targets_at = 0.0
        self._unlooked = 0

    def session_begins(self) -> None:
        """The take-over has just looked at the target."""
        self._unlooked = 0
        self._check_targets_at = self._clock.monotonic() + CHECK_TARGETS_SECONDS

    def run_due(self, now: float, clients: SessionClients, partitions: LanePartitions) -> None:
        """Does what is due at ``now`` (monotonic seconds); what it raises ends the session."""
        clients.require_brokers(self._counters.outcome.read)
        self._publish(now, clients, partitions)
        if now >= self._check_targets_at:
            self._check_targets_at = now + self._look_at_targets(partitions)
        if now >= self._recheck_at:
            self._recheck_at = now + RECHECK_SECONDS
            partitions.recheck()
            not_free = (self._counters.throttle_wait_seconds, self._counters.full_turns)
            partitions.find_silent(
                free=not_free == self._not_free_before,
                held={*self._context.throttle.held, *clients.arriving()},
                unheard=self._unheard.ends(partitions.states.values()),
            )
            self._not_free_before = not_free

    def end(self) -> None:
        """The lane ends."""
        self._unheard.close()

    def _unasked(self, error: ReplicatorError) -> None:
        self._report.log("warning", "source could not be asked whether it has more than its client says",
                         error=error.message, remedy=error.remedy)  # fmt: skip

    def _find_still(
        self, states: list[PartitionState], clients: SessionClients, partitions: LanePartitions
    ) -> None:
        try:
            still = self._standstill.found(
                states,
                empty_polls=self._counters.empty_polls,
                throttled_seconds=self._counters.throttle_wait_seconds,
                held={*self._context.throttle.take_held(), *clients.arriving()},
            )
        except ReplicatorError as error:
            self._context.problems.on_failure(error)  # not of one partition: the source is silent
            return
        for state, why in still.items():
            clients.session.events.suspend(state, why)
        partitions.stand_still(still)

    def _find_without_share(
        self,
        now: float,
        states: list[PartitionState],
        clients: SessionClients,
        partitions: LanePartitions,
    ) -> None:
        """Names partitions that wait for a share; they are read on as soon as there is one."""
        try:
            found = self._no_share.found(
                states, self._context.throttle.share, clients.stable_ends, now=now
            )
        except ReplicatorError as error:
            self._context.problems.on_failure(error)
            return
        for state, why in found.items():
            partitions.on_failure(state, "source", why)

    def _look_at_targets(self, partitions: LanePartitions) -> float:
        """Returns in how many seconds to look again; raises what ends the session, such as too many looks in vain.

        One look in vain is no reason to abort what the lane is writing.
        """
        try:
            partitions.check_targets()
        except UnlookedTargetError as error:
            self._unlooked += 1
            self._report.log("warning", "target could not be looked at", error=error.message,
                             remedy=error.remedy)  # fmt: skip
            if self._unlooked >= MOST_UNLOOKED:
                raise
            return min(LOOK_AGAIN_SECONDS, CHECK_TARGETS_SECONDS)
        self._unlooked = 0
        return CHECK_TARGETS_SECONDS

    def _publish(self, now: float, clients: SessionClients, partitions: LanePartitions) -> None:
        outcome, problems = self._counters.outcome, self._context.problems
        # Canaries do not count: a lane that copies nothing else is idle.
        records = outcome.copied + sum(outcome.dropped.values())
        states = list(partitions.states.values())
        failing = any(state.health.failure for state in states)
        if not self._schedule.is_due(
            now,
            records=records,
            problem=problems.any()
            or failing
            or self._standstill.waiting
            or has_none(self._context.throttle.share),
        ):
            return
        if failing:
            partitions.note_recoveries()
        clients.session.read_source_ends()
        problems.clear_answered(
            commits=self._counters.commits, read=outcome.read, answers=clients.answers
        )
        if self._context.source_quota.seconds_held(now) == float("inf"):
            self._find_still(states, clients, partitions)
        self._find_without_share(now, states, clients, partitions)
        self._report.publish_changes()
