"""The controller of one pair: observe, decide, do, again and again.

Runs in the worker that owns lane 0. It survives clusters that do not answer and being replaced: an
error becomes a problem of the pair, and the next round tries again. Only one controller writes at a
time: opening the controller producer fences every earlier one.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog

from replicator.backoff import Backoff
from replicator.blocking import finished
from replicator.clock import Clock
from replicator.control.controller.executor import Executor
from replicator.control.controller.lane_migration import LaneMigration
from replicator.control.controller.opposite_watch import OppositeWatch
from replicator.control.controller.recent_results import RecentResults
from replicator.control.controller.single_writer import SingleWriter
from replicator.control.lanes.throttle_shares import SHARE_SECONDS, ThrottleShares
from replicator.control.observe.observer import Observer
from replicator.control.reconcile.actions import (
    ArrangeLanes,
    ClusterAction,
    EraseRecord,
    WriteRecord,
)
from replicator.control.reconcile.decide import Decision, Reconciler
from replicator.control.reconcile.topic_selection import TopicSelector
from replicator.control.records.base import Record, Storable
from replicator.control.records.pair_records import ProblemRecord
from replicator.control.records.problem_part import problem_part
from replicator.control.store.controller_writer import ControllerWriter
from replicator.control.store.follower import ControlLog, WholeControl
from replicator.control.store.state import ControlState
from replicator.errors import FencedError, ReplicatorError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.problem import Problem
from replicator.topology.plan import PairPlan, Plan

MAX_ROUNDS = 3
RETRY_SECONDS = 30.0
"""The longest pause after rounds that failed, unless the interval is longer."""

UNSEEN_SECONDS = 0.2
"""When the next round looks for a created topic that did not show in time."""

SIGHT_LOOKS = 20
SIGHT_SECONDS = 0.05
"""How often, and how far apart, a round looks for the topics it created: a second in all."""

PIECE = 200
"""Lines logged in a row on the event loop: about 10 ms."""

T = TypeVar("T")

LOGGER = structlog.get_logger("replicator.control")


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What one round did and found."""

    decision: Decision
    actions: tuple[ClusterAction | ArrangeLanes | WriteRecord | EraseRecord, ...]
    control: ControlState

    @property
    def settled(self) -> bool:
        """Whether there was nothing to do."""
        return not self.actions


class PairController:
    """Keeps the target of one pair as the plan wants it."""

    def __init__(
        self,
        pair: PairPlan,
        plan: Plan,
        *,
        source_admin: ClusterAdmin,
        target_admin: ClusterAdmin,
        clock: Clock,
        client_id: str,
        log: ControlLog | None = None,
        progress: Callable[[str], None] = lambda _: None,
        step: Callable[[str], None] = lambda _: None,
        task_problems: Callable[[], tuple[Problem, ...]] = tuple,
    ) -> None:
        """``log`` is where it reads what holds; without one it reads the whole topic each time.

        ``progress`` is called with the reason of each action done, ``step`` with each step of a lane
        change.

        ``task_problems`` returns what periodic tasks found wrong, to be shown with the rest.
        """
        self.pair = pair
        self.problems: tuple[Problem, ...] = ()
        self._plan = plan
        self._clock = clock
        self._client_id = client_id
        self._log = log or WholeControl(plan.topology, pair.target, client_id=client_id)
        self._progress = progress
        self._step = step
        self._noticed = task_problems
        self._target_admin = target_admin
        self._admins = (source_admin, target_admin)
        selector = TopicSelector(pair, [str(cluster.alias) for cluster in plan.clusters])
        self._observer = Observer(
            plan, selector, source_admin, target_admin, clock=clock, client_id=client_id
        )
        self._reconciler = Reconciler(selector)
        self._executor = Executor(target_admin)
        self._keeper = ThrottleShares(plan, pair, source_admin, client_id)
        self._writer = SingleWriter(pair, plan.topology, client_id=client_id)
        self._opposite = OppositeWatch(pair, clock=clock, client_id=client_id)
        self._wake = asyncio.Event()
        self._recent = RecentResults(clock)
        self.begun = asyncio.Event()
        """Set once a round is done: from then on there is a producer to write with."""

    def wake(self) -> None:
        """Asks for a round now rather than at the next interval."""
        self._wake.set()

    async def run(self) -> None:
        """Rounds until cancelled; errors become ``problems`` and are tried again with back-off.

        The caller closes the controller when everything that writes with it has ended.
        """
        interval = min(flow.policy.discovery_interval_seconds for flow in self.pair.flows)
        backoff = Backoff(2 * interval, max(interval, RETRY_SECONDS))
        failures = 0
        while True:
            try:
                await self.run_once()
            except ReplicatorError as error:
                failures += 1
                await self._failed(error)
            else:
                failures = 0
                self.problems = ()
                self.begun.set()
                for admin in self._admins:
                    admin.close_unused(2 * interval)
            pause = backoff.seconds(failures, random.random) if failures else interval
            await self._rest(pause)
            self._wake.clear()

    async def store(self, records: Sequence[Storable]) -> None:
        """Writes records of periodic tasks into the control topic, as the controller.

        It never opens the producer: only a round does, which reads the control topic afterwards.

        Raises:
            ClusterError: nothing was written, or it is unknown; also before the first round.
            FencedError: another controller took over.
        """
        await self._writer.store(self._writer.held(), records)

    async def share_once(self) -> tuple[Record, ...]:
        """Splits throttles anew by what lanes still have to copy; returns the records written.

        Raises:
            ClusterError: a cluster does not answer.
            FencedError: another controller took over.
        """
        writer = await self._writer.opened()
        control = await finished(self._read_control)
        shares = await finished(self._keeper.shares, control)
        await self._writer.store(writer, shares)
        return shares

    async def run_once(self, *, all_settings: bool = False) -> RoundResult:
        """One round: the pair is as it should be afterwards, as far as the clusters allow.

        Raises:
            ClusterError: a cluster does not answer; nothing is half done that the next round would
                not finish.
            FencedError: another controller took over; the next round takes it back.
        """
        actions: list[ClusterAction | ArrangeLanes | WriteRecord | EraseRecord] = []
        writer = await self._writer.opened()
        control = await finished(self._read_control)
        decision = await self._decide(control, all_settings=all_settings)
        control = await self._opposite.record(self._writer, writer, control)
        for _ in range(MAX_ROUNDS):
            if not decision.cluster_actions:
                break
            outcome = await self._executor.execute(
                decision.cluster_actions, progress=lambda action: self._progress(action.reason)
            )
            actions.extend(outcome.done)
            self._recent.remember(created=outcome.created, refusals=outcome.refusals)
            async for done in _in_pieces(outcome.done):
                LOGGER.info("done", flow=self.pair.id, action=done.identity, reason=done.reason)
            await finished(self._await_sight, frozenset(outcome.created))
            decision = await self._decide(control, all_settings=True)
        if self._recent.created:
            self._soon()
        for action in decision.actions:
            if isinstance(action, ArrangeLanes):
                control = await self._writer.alone(self._arrange, writer, action, control)
                actions.append(action)
                self._progress(action.reason)
        writes = [
            action for action in decision.actions if isinstance(action, WriteRecord | EraseRecord)
        ]
        if writes:
            control = await self._writer.alone(self._write, writer, writes, control)
            actions.extend(writes)
            async for write in _in_pieces(writes):
                self._progress(write.reason)
                LOGGER.info("recorded", flow=self.pair.id, reason=write.reason)
        return RoundResult(decision, tuple(actions), control)

    def _await_sight(self, names: frozenset[str]) -> None:
        """Waits for created topics to show, so that the same round can act on them."""
        for _ in range(SIGHT_LOOKS):
            if not names or names <= self._target_admin.topic_partitions().keys():
                return
            time.sleep(SIGHT_SECONDS)  # the brokers' time, not the one that decisions go by

    async def _rest(self, seconds: float) -> None:
        """Waits for the next round or a wake; splits throttles meanwhile where there are any."""
        deadline = self._clock.monotonic() + seconds
        while (left := deadline - self._clock.monotonic()) > 0 and not self._wake.is_set():
            step = min(left, SHARE_SECONDS) if self._keeper.needed else left
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), step)
            if self._keeper.needed:
                try:
                    await self.share_once()
                except ReplicatorError as error:
                    # The next round meets the same error and reports it.
                    LOGGER.info("throttle not split", flow=self.pair.id, error=error.message)

    def close(self) -> None:
        """Closes the producer and the connections."""
        self._observer.close()
        self._opposite.close()
        self._writer.close()

    async def _decide(self, control: ControlState, *, all_settings: bool) -> Decision:
        """In a thread: to go through many topics would hold up every task of the loop."""
        return await finished(self._observe_and_decide, control, all_settings=all_settings)

    def _observe_and_decide(self, control: ControlState, *, all_settings: bool) -> Decision:
        snapshot = self._observer.observe(
            control,
            refusals=self._recent.refusals,
            just_created=self._recent.created,
            all_settings=all_settings,
        )
        self._recent.seen(snapshot.target.sizes)
        self._opposite.look(snapshot)
        return self._reconciler.decide(replace(snapshot, task_problems=self._noticed()))

    def _read_control(self) -> ControlState:
        return self._log.read(self._target_admin)

    def _arrange(
        self, writer: ControllerWriter, action: ArrangeLanes, control: ControlState
    ) -> ControlState:
        LOGGER.info("lanes", flow=self.pair.id, reason=action.reason)
        change = LaneMigration(
            self.pair,
            self._plan.topology,
            admin=self._target_admin,
            writer=writer,
            client_id=self._client_id,
            step=self._step,
        )
        written = change.carry_out(action)
        return control.fold(
            [
                *(record.tombstone() for record in action.erased),
                *(record.encode() for record in written),
            ]
        )

    def _write(
        self,
        writer: ControllerWriter,
        actions: list[WriteRecord | EraseRecord],
        control: ControlState,
    ) -> ControlState:
        log = [
            action.record.encode() if isinstance(action, WriteRecord) else action.record.tombstone()
            for action in actions
        ]
        self._writer.write(writer, log)
        return control.fold(log)

    async def _failed(self, error: ReplicatorError) -> None:
        """Keeps the error as a problem, and writes it to the control topic where that still answers."""
        if isinstance(error, FencedError):
            LOGGER.info("another controller took over", flow=self.pair.id)
            return
        problem = Problem(
            error.code,
            error.subject or self.pair.id,
            error.message,
            error.remedy or "It is retried automatically.",
        )
        self.problems = (problem,)
        LOGGER.warning("not reconciled", flow=self.pair.id, error=error.paragraph())
        if error.subject == f"cluster:{self.pair.target.alias}":
            return
        with contextlib.suppress(ReplicatorError):
            await self._report(problem)

    async def _report(self, problem: Problem) -> None:
        writer = await self._writer.opened()
        control = await finished(self._read_control)
        source = self.pair.source.alias
        at_ms = round(self._clock.now() * 1000)
        records: list[Record] = []
        for flow in self.pair.flows:
            held = control.problems(source, flow.link)
            parts = held.problems if held is not None else ()
            if all(part.code != problem.code for part in parts):
                records.append(
                    ProblemRecord(
                        source=source,
                        link=flow.link,
                        problems=(*parts, problem_part(problem)),
                        at_ms=at_ms,
                    )
                )
        await self._writer.store(writer, records)

    def _soon(self) -> None:
        """A created topic is not visible yet: look again in a moment, not at the next interval."""
        asyncio.get_running_loop().call_later(UNSEEN_SECONDS, self._wake.set)


async def _in_pieces(items: Sequence[T]) -> AsyncIterator[T]:
    """The items, with room for the loop's other tasks every so many: a first round logs thousands."""
    for number, item in enumerate(items, 1):
        yield item
        if number % PIECE == 0:
            await asyncio.sleep(0)
