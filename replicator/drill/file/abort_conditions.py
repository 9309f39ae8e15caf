"""The conditions that abort a drill on a real link. Pure but for reading the status."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replicator.clock import Clock
from replicator.drill.file.errors import AbortedError
from replicator.drill.file.plan import Abort

LOOK_SECONDS = 1.0

Status = Mapping[str, Any]
ProblemKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StatusLook:
    """What one status of the link showed.

    ``lag_seconds`` is None while it is not known. ``problems`` are codes with their subjects.
    """

    lag_seconds: float | None
    problems: frozenset[ProblemKey]


def look_at(status: Status, link: str) -> StatusLook:
    """The link's part of a status."""
    flows = [flow for flow in status["flows"] if flow["link"] == link]
    lags = [flow["lagSeconds"] for flow in flows if flow["lagSeconds"] is not None]
    problems = frozenset(
        (problem["code"], problem["subject"]) for flow in flows for problem in flow["problems"]
    )
    return StatusLook(max(lags) if lags else None, problems)


def reasons_to_abort(
    abort: Abort, look: StatusLook, *, known: frozenset[ProblemKey], write_silence_seconds: float
) -> Sequence[str]:
    """Every condition that is met, in words.

    Args:
        abort: the conditions of the drill file.
        look: the link now.
        known: problems that were there before the drill began.
        write_silence_seconds: since a write of the drill was last acknowledged.
    """
    reasons = []
    limit = abort.max_lag_seconds
    if limit is not None and look.lag_seconds is not None and look.lag_seconds > limit:
        reasons.append(f"the lag is {look.lag_seconds:.1f} s, maxLagSeconds is {limit:g}")
    limit = abort.max_write_silence_seconds
    if limit is not None and write_silence_seconds > limit:
        reasons.append(
            f"no write was acknowledged for {write_silence_seconds:.1f} s, "
            f"maxWriteSilenceSeconds is {limit:g}"
        )
    reasons += [
        f"{code} {subject} came up"
        for code, subject in sorted(look.problems - known)
        if code in abort.on_problems
    ]
    return reasons


class Watch:
    """Checks a link at most once a second, however often it is called."""

    def __init__(self, abort: Abort, *, look: Callable[[], StatusLook], clock: Clock) -> None:
        self._abort = abort
        self._look = look
        self._clock = clock
        self._known = look().problems
        self._due = clock.monotonic()

    def check(self, *, last_write_at: float) -> None:
        """Checks the link, if a second has passed.

        Args:
            last_write_at: wall-clock seconds of the newest acknowledged write, 0 before any.

        Raises:
            AbortedError: a condition is met.
        """
        if self._clock.monotonic() < self._due:
            return
        self._due = self._clock.monotonic() + LOOK_SECONDS
        reasons = reasons_to_abort(
            self._abort,
            self._look(),
            known=self._known,
            write_silence_seconds=self._clock.now() - last_write_at if last_write_at else 0.0,
        )
        if reasons:
            raise AbortedError(f"aborted: {'; '.join(reasons)}")
