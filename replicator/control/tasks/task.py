"""Duties: what the controller of a pair does beside topics and lanes, each at its own pace.

A duty is one file with one class. It runs only where lane 0 is owned, keeps nothing that must outlive
it but what it stores, and may be repeated or interrupted at any time. One that fails is a problem of
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
from replicator.control.store.state import ControlState
from replicator.errors import FencedError, ReplicatorError, UnreachableError
from replicator.identifiers import LinkName
from replicator.kafka.admin import ClusterAdmin
from replicator.observability.snapshot import TaskMetrics
from replicator.problem import Problem
from replicator.topology.plan import PairPlan, Plan

RETRY_SECONDS = 30.0
"""The longest pause of a task that fails, unless its own interval is longer."""

Entry = tuple[bytes, bytes | None]
"""Key and value of a record of the control topic; None takes it away."""

LOGGER = structlog.get_logger("replicator.control")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What every duty may use.

    Attributes:
        client_id: to be extended with the duty's name.
        store: writes entries to the target's control topic as the controller; raises FencedError
            when another controller took over.
        control: what the target's control topic said a moment ago.
        figures: counters of each link of the pair, read by scrapes at any time.
        admins: the controller's clients of both clusters, which it closes itself. Thread-safe; each
            client that is not opened saves threads that wake up all the time.
    """

    plan: Plan
    pair: PairPlan
    clock: Clock
    client_id: str
    store: Callable[[Sequence[Entry]], Awaitable[None]]
    control: Callable[[], ControlState]
    figures: Mapping[LinkName, TaskMetrics]
    admins: tuple[ClusterAdmin, ...] = ()


class PeriodicTask(Protocol):
    """One periodic duty; all calls come from the controller's event loop."""

    name: str
    interval_seconds: float

    async def turn(self) -> tuple[Problem, ...]:
        """Does its work once and returns what is wrong for people to see.

        Blocking calls go through ``replicator.blocking.finished``: a cancelled turn must not be
        closed under them.

        Raises:
            ReplicatorError: the whole turn failed; it is tried again with back-off.
        """
        ...

    def close(self) -> None:
        """Gives connections back."""
        ...


class TaskRunner:
    """Turns of one duty until cancelled.

    Attributes:
        problems: what the last turn found, or why it failed.
    """

    def __init__(self, task: PeriodicTask, *, flow: str, clock: Clock) -> None:
        self.problems: tuple[Problem, ...] = ()
        self._duty = task
        self._flow = flow
        self._clock = clock

    async def run(self) -> None:
        """Turns at the duty's pace; an overrun starts the next turn at once, never two at a time."""
        failures = 0
        try:
            while True:
                began = self._clock.monotonic()
                try:
                    self.problems = await self._duty.turn()
                    failures = 0
                except FencedError:
                    pass  # another controller has the duty now; this one is about to be told
                except ReplicatorError as error:
                    failures += 1
                    self._failed(error)
                except Exception as error:
                    failures += 1
                    LOGGER.exception(
                        "duty failed unexpectedly", flow=self._flow, task=self._duty.name
                    )
                    self._failed(ReplicatorError(f"{self._duty.name}: unexpected: {error!r}"))
                pause = interval = self._duty.interval_seconds
                if failures:
                    backoff = Backoff(2 * interval, max(interval, RETRY_SECONDS))
                    pause = backoff.seconds(failures, random.random)
                await asyncio.sleep(max(0.0, began + pause - self._clock.monotonic()))
        finally:
            self._duty.close()

    def _failed(self, error: ReplicatorError) -> None:
        # Whether a cluster can be reached decides on readiness; a duty that lacks a right does not.
        about = error.subject if isinstance(error, UnreachableError) else ""
        problem = Problem(
            error.code,
            about or self._flow,
            f"{self._duty.name}: {error.message}",
            error.remedy or "It is tried again by itself.",
        )
        if (problem,) != self.problems:
            LOGGER.warning(
                "duty failed", flow=self._flow, task=self._duty.name, error=error.paragraph()
            )
        self.problems = (problem,)
