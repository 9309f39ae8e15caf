"""Periodic tasks: what the controller of a pair does beside topics and lanes, each at its own pace.

A task is one file with one class. It runs only in the worker that owns lane 0, keeps nothing that must
outlive it but what it stores, and may be repeated or interrupted at any time. One that fails is a problem of
the pair and is tried again; it never holds up another, nor the controller's rounds.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from replicator.backoff import Backoff
from replicator.clock import Clock
from replicator.control.records.base import Storable
from replicator.control.store.state import ControlState
from replicator.errors import FencedError, ReplicatorError, UnreachableError
from replicator.identifiers import LinkName
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.observability.snapshot import TaskMetrics
from replicator.problem import Problem
from replicator.topology.plan import PairPlan, Plan

RETRY_SECONDS = 30.0
"""The longest pause of a task that fails, unless its own interval is longer."""

LOGGER = structlog.get_logger("replicator.control")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What every task may use.

    Attributes:
        client_id: to be extended with the task's name.
        store: writes records to the target's control topic as the controller; raises FencedError
            when another controller took over.
        control: what the target's control topic said a moment ago.
        controls: the same of every cluster whose control topic the worker follows, by alias.
        figures: counters of each link of the pair, read by scrapes at any time.
        admins: the controller's clients of both clusters, which it closes itself. Thread-safe; each
            client that is not opened saves threads that wake up all the time.
    """

    plan: Plan
    pair: PairPlan
    clock: Clock
    client_id: str
    store: Callable[[Sequence[Storable]], Awaitable[None]]
    control: Callable[[], ControlState]
    figures: Mapping[LinkName, TaskMetrics]
    admins: tuple[ClusterAdmin, ...] = ()
    controls: Callable[[], Mapping[str, ControlState]] = dict


class PeriodicTask(Protocol):
    """One periodic task; all calls come from the controller's event loop."""

    name: str
    interval_seconds: float

    async def run(self) -> tuple[Problem, ...]:
        """Does its work once and returns what is wrong for people to see.

        Blocking calls go through ``replicator.blocking.finished``: a cancelled run must not be
        closed under them.

        Raises:
            ReplicatorError: the whole run failed; it is tried again with back-off.
        """
        ...

    def close(self) -> None:
        """Closes its connections."""
        ...


MOST_FENCED = 3
"""So many runs in a row that end because of another controller are told."""


class TaskRunner:
    """Runs one task again and again until cancelled.

    Attributes:
        problems: what the last run found, or why it failed.
    """

    def __init__(self, task: PeriodicTask, *, flow: str, clock: Clock) -> None:
        self.problems: tuple[Problem, ...] = ()
        self._task = task
        self._flow = flow
        self._clock = clock

    async def run(self) -> None:
        """Runs at the task's pace; after an overrun the next run starts at once, never two at a time."""
        failures = fenced = 0
        try:
            while True:
                began = self._clock.monotonic()
                try:
                    self.problems = await self._task.run()
                    failures = fenced = 0
                except FencedError as error:
                    # Another controller runs the task now, and this one is about to be stopped. One that is not
                    # would run it in vain for ever.
                    fenced += 1
                    if fenced >= MOST_FENCED:
                        self._failed(error)
                except ReplicatorError as error:
                    failures += 1
                    self._failed(error)
                except Exception as error:
                    failures += 1
                    LOGGER.exception(
                        "task failed unexpectedly", flow=self._flow, task=self._task.name
                    )
                    self._failed(ReplicatorError(f"{self._task.name}: unexpected: {error!r}"))
                pause = interval = self._task.interval_seconds
                if failures:
                    backoff = Backoff(2 * interval, max(interval, RETRY_SECONDS))
                    pause = backoff.seconds(failures, random.random)
                await asyncio.sleep(max(0.0, began + pause - self._clock.monotonic()))
        finally:
            self._task.close()

    def _failed(self, error: ReplicatorError) -> None:
        # Whether a cluster can be reached decides on readiness; a task that lacks a right does not.
        about = error.subject if isinstance(error, UnreachableError) else ""
        problem = Problem(
            error.code,
            about or self._flow,
            f"{self._task.name}: {error.message}",
            error.remedy or "It is retried automatically.",
        )
        if (problem,) != self.problems:
            LOGGER.warning(
                "task failed", flow=self._flow, task=self._task.name, error=error.paragraph()
            )
        self.problems = (problem,)
