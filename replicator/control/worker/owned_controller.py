"""The controller of one pair, as far as it runs in this worker: exactly while it owns lane 0."""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from replicator.clock import Clock
from replicator.control.controller.thread import ControllerThread
from replicator.control.lanes.lane_specs import pair_allowed_by_role
from replicator.control.store.followers import ControlFollowers, ControlSubscription
from replicator.control.store.state import ControlState
from replicator.identifiers import LinkName
from replicator.observability.snapshot import TaskMetrics
from replicator.problem import Problem
from replicator.topology.plan import PairPlan, Plan

log = structlog.get_logger("control")


@dataclass(frozen=True, slots=True)
class ControllerView:
    """What a controller says, as ``PairView`` has it."""

    problems: tuple[Problem, ...] = ()
    task_problems: tuple[Problem, ...] = ()
    figures: Mapping[LinkName, TaskMetrics] | None = None


class OwnedController:
    """Started, replaced and stopped in the pair's thread; any thread may look."""

    def __init__(self, followers: ControlFollowers, *, clock: Clock, client_id: str) -> None:
        self._followers = followers
        self._clock = clock
        self._client_id = client_id
        self._thread: ControllerThread | None = None

    def view(self) -> ControllerView:
        """What it says now; nothing where it does not run here."""
        thread = self._thread
        if thread is None:
            return ControllerView()
        return ControllerView(thread.problems(), thread.task_problems(), thread.figures)

    def supervise(
        self,
        plan: Plan,
        pair: PairPlan,
        control: ControlState,
        follower: ControlSubscription,
        *,
        owner: bool,
    ) -> None:
        """Runs it exactly while this worker owns lane 0 and a flow may run."""
        pair = pair_allowed_by_role(pair, control)
        owner = owner and bool(pair.flows)
        thread = self._thread
        if thread is not None and not (
            owner and thread.is_alive() and pair.same_flows(thread.pair)
        ):
            self.stop()
        if owner and self._thread is None:
            self._thread = ControllerThread(
                plan=plan, pair=pair, follower=follower, clock=self._clock,
                client_id=self._client_id,
                controls=lambda: self._followers.states(plan.topology),
            )  # fmt: skip
            self._thread.start()
            log.info("controller of the flow", flow=pair.id)

    def ask_to_stop(self) -> None:
        """Has it end while something else is done; ``stop`` waits for it."""
        if self._thread is not None:
            self._thread.ask_to_stop()

    def stop(self) -> None:
        """Ends it, where it runs here; ``supervise`` starts another."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()
