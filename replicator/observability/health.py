"""Alive and ready: two different questions, both answered with reasons.

Alive asks whether this process's own loops still run; only a restart helps, so nothing outside
the process may make it false. Ready asks whether the worker does what it is there for. Pure: the
clock is passed in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replicator.clock import Clock

MOST_FAILING = 20
"""Partitions that an answer names one by one."""


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """An answer and the reasons for it; no reason when the answer is yes.

    ``details`` are worth knowing whatever the answer is.
    """

    ok: bool
    reasons: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


class Liveness:
    """Which named loops beat in time. Safe to beat from several threads (single assignments).

    Invariant: a loop that was started and not stopped must beat within its limit.
    """

    def __init__(self, *, clock: Clock, deaths: Callable[[], Sequence[str]] = lambda: ()) -> None:
        """``deaths`` says which threads of the process are missing: they were ended by an error."""
        self._clock = clock
        self._deaths = deaths
        self._limits: dict[str, float] = {}
        self._beats: dict[str, float] = {}

    def start(self, name: str, *, limit_seconds: float) -> None:
        """From now on the loop must beat at least every ``limit_seconds``."""
        self._beats[name] = self._clock.monotonic()
        self._limits[name] = limit_seconds

    def beat(self, name: str) -> None:
        """The loop ran; one that was never started, or was stopped, is not watched."""
        if name in self._limits:
            self._beats[name] = self._clock.monotonic()

    def stop(self, name: str) -> None:
        """The loop ended on purpose."""
        self._limits.pop(name, None)

    def verdict(self) -> HealthVerdict:
        """Alive when every watched loop has beaten within its limit and no thread is missing."""
        now = self._clock.monotonic()
        reasons = tuple(
            f"loop '{name}' last ran {silent_seconds:.1f} s ago, limit {limit_seconds:g} s"
            for name, limit_seconds in sorted(self._limits.copy().items())
            if (silent_seconds := now - self._beats[name]) > limit_seconds
        )
        reasons = (*reasons, *self._deaths())
        return HealthVerdict(not reasons, reasons)


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """Whether a cluster this worker needs answers, and if not, why."""

    alias: str
    reachable: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PairHealth:
    """This worker's part in one ordered pair of clusters.

    ``joined`` is true once the membership group has given an assignment, be it empty: a worker in
    reserve is ready. ``failing`` says which of its ``partitions`` do not move, and why.
    """

    flow: str
    joined: bool
    lanes_assigned: int
    lanes_running: int
    partitions: int = 0
    failing: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CanaryHealth:
    """The canary of one flow of one link that this worker controls; no age before the first came."""

    flow: str
    link: str
    age_seconds: float | None
    round_trip_seconds: float
    lost: int

    def words(self) -> str:
        """One line for people."""
        came = (
            "none came yet"
            if self.age_seconds is None
            else f"last came {self.age_seconds:.1f} s ago after {self.round_trip_seconds:.3f} s"
        )
        return f"{self.flow} {self.link}: canary {came}, {self.lost} lost"


@dataclass(frozen=True, slots=True)
class ReadinessFacts:
    """Everything readiness depends on; ``missing`` are threads of the worker that an error ended."""

    clusters: Sequence[ClusterHealth]
    pairs: Sequence[PairHealth]
    draining: bool = False
    missing: Sequence[str] = ()
    canaries: Sequence[CanaryHealth] = ()
    logins: Sequence[str] = ()


def readiness(facts: ReadinessFacts) -> HealthVerdict:
    """Ready when clusters answer, assignments have come, assigned lanes run, and it is no drain.

    Canaries are shown and decide nothing: a slow flow is not cured by restarting or leaving out a worker.
    Nor is a login that will not hold: who is not ready then is told by the cluster that refuses it.
    Nor is a partition that does not move; a worker of which none moves is not ready.
    """
    reasons: list[str] = []
    if facts.draining:
        reasons.append("the worker is draining")
    reasons.extend(facts.missing)
    for cluster in facts.clusters:
        if not cluster.reachable:
            why = f": {cluster.detail}" if cluster.detail else ""
            reasons.append(f"cluster '{cluster.alias}' cannot be reached{why}")
    for pair in facts.pairs:
        if not pair.joined:
            reasons.append(f"{pair.flow}: lanes are not assigned yet")
        elif pair.lanes_running < pair.lanes_assigned:
            reasons.append(
                f"{pair.flow}: {pair.lanes_running} of {pair.lanes_assigned} assigned lanes run"
            )
        if pair.failing and len(pair.failing) >= pair.partitions:
            reasons.append(f"{pair.flow}: none of {pair.partitions} partitions moves")
    failing = [f"{pair.flow}: {words}" for pair in facts.pairs for words in pair.failing]
    shown = failing[:MOST_FAILING]
    if len(failing) > len(shown):
        shown.append(f"{len(failing) - len(shown)} more partitions do not move")
    details = (*shown, *facts.logins, *(canary.words() for canary in facts.canaries))
    return HealthVerdict(not reasons, tuple(reasons), details)
