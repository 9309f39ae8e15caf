"""What the first worker of a pair does about partitions that Spark holds, or should.

It keeps the child running that copies the history the controller asked for, hands back what a stream
left behind, and deletes what is left of ranges that ended long ago. Records are looked through only when
they changed: an idle worker asks nothing.
"""

import structlog

from replicator.clock import Clock
from replicator.control.backfill.handover import delete_expired, hand_back
from replicator.control.backfill.retention import finished
from replicator.control.backfill.spark_process import SparkProcess, asked_by_controller
from replicator.control.backfill.stream_partitions import copied_by_streams, partitions_left_behind
from replicator.control.store.state import EMPTY, ControlState
from replicator.control.worker.pair_problems import PairProblems
from replicator.errors import ReplicatorError
from replicator.topology.plan import PairPlan, Plan

AGAIN_SECONDS = 5.0
DELETE_SECONDS = 3600.0
"""How often backfill records that nobody needs any more are looked for."""

log = structlog.get_logger("control")


class BackfillSupervisor:
    """Used by the thread of its pair only."""

    def __init__(self, seeder: SparkProcess, *, clock: Clock, problems: PairProblems) -> None:
        self._seeder = seeder
        self._clock = clock
        self._problems = problems
        self._control = EMPTY
        self._history = False
        self._streams = False
        self._problem = ""
        self._again_at = 0.0
        # Not at once: a worker that takes a pair over has more urgent things to do.
        self._delete_at = clock.monotonic() + DELETE_SECONDS

    def supervise(self, plan: Plan, pair: PairPlan, control: ControlState, *, owner: bool) -> None:
        """Does what is due now; ``owner`` is whether this worker runs the pair's controller."""
        if control is not self._control:
            self._control = control
            source = pair.source.alias
            self._history = asked_by_controller(control, source)
            self._streams = bool(copied_by_streams(control, source))
        if not owner:
            self.release()
            return
        self._keep_process()
        if self._streams:
            self._hand_back(plan, pair, control)
        if self._clock.monotonic() >= self._delete_at:
            self._delete_at = self._clock.monotonic() + DELETE_SECONDS
            self._delete_expired(plan, pair, control)

    def release(self) -> None:
        """Ends the child: another worker runs the pair's controller now."""
        self._seeder.end()
        self._note(None)

    def close(self) -> None:
        """Ends the child."""
        self._seeder.close()

    def _keep_process(self) -> None:
        self._note(self._seeder.keep(wanted=self._history))

    def _note(self, problem: ReplicatorError | None) -> None:
        if problem is not None:
            self._problem = self._problems.note(problem)
        elif self._problem:
            self._problems.clear(self._problem)
            self._problem = ""

    def _delete_expired(self, plan: Plan, pair: PairPlan, control: ControlState) -> None:
        now_ms = round(self._clock.now() * 1000)
        if not finished(control, pair.source.alias, now_ms=now_ms):
            return
        try:
            deleted = delete_expired(plan, pair, clock=self._clock)
        except ReplicatorError as error:
            log.warning(
                "records of finished backfills not deleted yet", flow=pair.id, error=error.message
            )
        else:
            if deleted:
                log.info("records of finished backfills deleted", flow=pair.id, partitions=deleted)

    def _hand_back(self, plan: Plan, pair: PairPlan, control: ControlState) -> None:
        now = self._clock.monotonic()
        seeds = partitions_left_behind(pair, control, now_ms=round(self._clock.now() * 1000))
        if not seeds or now < self._again_at:
            return
        self._again_at = now + AGAIN_SECONDS
        log.info("partitions released from a stream", flow=pair.id, partitions=len(seeds))
        try:
            hand_back(plan, pair, seeds, clock=self._clock)
        except ReplicatorError as error:
            log.warning(
                "partitions not yet handed back to lanes", flow=pair.id, error=error.message
            )
