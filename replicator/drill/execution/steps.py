"""The steps of a drill: when each began, how long it took, and its result."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.errors import ReplicatorError
from replicator.interruption import ctrl_c_as_itself


@dataclass(frozen=True, slots=True)
class Step:
    """One step; ``at`` is wall-clock seconds.

    ``part`` says whose step it is: ``drill``, ``fault``, or ``roles`` for those of a role change.
    """

    name: str
    at: float
    seconds: float
    result: str
    ok: bool
    part: str


class StepOutcome:
    """The result of a step, set before it ends."""

    def __init__(self) -> None:
        self.result = ""


class StepLog:
    """Records steps and notifies a listener of each."""

    def __init__(self, clock: Clock, *, notify: Callable[[str, str], None]) -> None:
        self._clock = clock
        self._notify = notify
        self._steps: list[Step] = []

    @property
    def steps(self) -> tuple[Step, ...]:
        """In the order in which they began."""
        return tuple(sorted(self._steps, key=lambda step: step.at))

    @contextlib.contextmanager
    def step(self, name: str, *, part: str = "drill") -> Iterator[StepOutcome]:
        """Times what is done inside; an error is recorded and raised again."""
        outcome = StepOutcome()
        at, began = self._clock.now(), self._clock.monotonic()
        self._notify(name, "")
        try:
            with ctrl_c_as_itself():
                yield outcome
        except ReplicatorError as error:
            self._add(name, at, began, error.message, ok=False, part=part)
            raise
        except KeyboardInterrupt:
            self._add(name, at, began, "interrupted", ok=False, part=part)
            raise
        self._add(name, at, began, outcome.result, ok=True, part=part)

    def add(self, step: Step) -> None:
        """Adds a step that was timed elsewhere."""
        self._steps.append(step)
        self._notify(
            f"  {step.name}", f"{step.seconds:.1f} s{f': {step.result}' if step.result else ''}"
        )

    def _add(self, name: str, at: float, began: float, result: str, *, ok: bool, part: str) -> None:
        seconds = self._clock.monotonic() - began
        self._steps.append(Step(name, at, seconds, result, ok, part))
        self._notify(name, f"{seconds:.1f} s{f': {result}' if result else ''}")
