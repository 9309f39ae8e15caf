"""The controller of a pair in a thread of its own, started and stopped with lane 0."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping

from replicator.clock import Clock
from replicator.control.controller.controller import PairController
from replicator.control.store.followers import ControlSubscription
from replicator.control.store.state import ControlState
from replicator.control.tasks.task import TaskContext, TaskRunner
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.observability.snapshot import TaskMetrics
from replicator.problem import Problem
from replicator.topology.plan import PairPlan, Plan

STOP_SECONDS = 5.0


class ControllerThread(threading.Thread):
    """Owns an event loop and the controller's clients; public methods are thread-safe.

    Attributes:
        pair: what it controls.
        figures: what the periodic tasks counted, by link.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        pair: PairPlan,
        follower: ControlSubscription,
        clock: Clock,
        client_id: str,
        controls: Callable[[], Mapping[str, ControlState]] = dict,
    ) -> None:
        """``controls`` are the control topics that the worker follows, by cluster."""
        super().__init__(name=f"controller-{pair.id}", daemon=True)
        self._plan = plan
        self.pair = self._pair = pair
        self._follower = follower
        self._clock = clock
        self._client_id = f"{client_id}-controller"
        self._controls = controls
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._controller: PairController | None = None
        self._runners: tuple[TaskRunner, ...] = ()
        self._stopping = False
        self.figures = {flow.link: TaskMetrics() for flow in pair.flows}

    def run(self) -> None:
        """Runs rounds until stopped."""
        asyncio.set_event_loop(self._loop)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._work())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def wake(self) -> None:
        """Asks for a round now."""
        self._post(lambda: self._controller.wake() if self._controller is not None else None)

    def problems(self) -> tuple[Problem, ...]:
        """What keeps the controller from doing its work at present."""
        controller = self._controller
        return () if controller is None else controller.problems

    def task_problems(self) -> tuple[Problem, ...]:
        """What its periodic tasks found wrong; records are copied all the same."""
        return tuple(problem for runner in self._runners for problem in runner.problems)

    def ask_to_stop(self) -> None:
        """Has the rounds ended soon; does not wait."""
        if self._stopping:
            return  # a second cancellation would disturb what the first one has it close
        self._stopping = True
        self._post(lambda: self._task.cancel() if self._task is not None else None)

    def stop(self) -> None:
        """Ends the rounds; the next controller finishes what this one began."""
        self.ask_to_stop()
        if self.is_alive():
            self.join(STOP_SECONDS)

    def _post(self, call: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(call)

    async def _work(self) -> None:
        self._task = asyncio.current_task()
        if self._stopping:
            return
        with (
            ClusterAdmin(self._pair.source, client_id=self._client_id) as source_admin,
            ClusterAdmin(self._pair.target, client_id=self._client_id) as target_admin,
        ):
            self._controller = PairController(
                self._pair,
                self._plan,
                source_admin=source_admin,
                target_admin=target_admin,
                clock=self._clock,
                client_id=self._client_id,
                log=self._follower,
                task_problems=self.task_problems,
            )
            try:
                await self._serve(self._controller, (source_admin, target_admin))
            finally:
                self._controller.close()

    async def _serve(self, controller: PairController, admins: tuple[ClusterAdmin, ...]) -> None:
        """The controller's rounds, and beside them its periodic tasks."""
        context = TaskContext(
            plan=self._plan,
            pair=self._pair,
            clock=self._clock,
            client_id=self._client_id,
            store=controller.store,
            control=lambda: self._follower.state,
            figures=self.figures,
            admins=admins,
            controls=self._controls,
        )
        async with asyncio.TaskGroup() as group:
            rounds = group.create_task(controller.run())
            # The tasks are slow to import, and lanes do not need them.
            await controller.begun.wait()
            from replicator.control.tasks.registry import tasks_of

            self._runners = tuple(
                TaskRunner(task, flow=self._pair.id, clock=self._clock)
                for task in tasks_of(context)
            )
            for runner in self._runners:
                group.create_task(runner.run())
            await rounds
