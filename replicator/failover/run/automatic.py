"""Promotion by itself: watches links that have a witness, and fails over when all agree.

Off unless a link declares it. It runs in workers, never where the passive side is not served, and it is
an operator like any other: it takes the link's lock, states the loss, and is refused where a person is
at work on the link.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from replicator.clock import Clock
from replicator.errors import ReplicatorError
from replicator.failover.clusters.witness_client import note_sightings, reaches, witness_reaches
from replicator.failover.rules.request import Question, StepEvent, TransitionRequest
from replicator.failover.rules.witness_decision import WitnessLook, judge, keep, patience_seconds
from replicator.failover.run.runner import run_transition
from replicator.policy.procedure import Automatic
from replicator.topology.plan import LinkPlan, Plan
from replicator.topology.roles import Role

log = structlog.get_logger("failover")

ATTEMPT_SECONDS = 30.0
"""How long a refused promotion rests before it is tried again."""


class AutomaticFailover(threading.Thread):
    """Watches one link until stopped."""

    def __init__(
        self,
        plan: Plan,
        link: LinkPlan,
        automatic: Automatic,
        *,
        role: Callable[[], Role],
        worker: str,
        clock: Clock,
    ) -> None:
        """``role`` gives the link's role as this worker knows it."""
        super().__init__(name=f"witness-{link.name}", daemon=True)
        self._plan = plan
        self._link = link
        self._automatic = automatic
        self._role = role
        self._worker = worker
        self._clock = clock
        self._stopping = threading.Event()
        self._looks: tuple[WitnessLook, ...] = ()
        self._rests_until = 0.0

    def stop(self) -> None:
        """Ends the watch soon; does not wait."""
        self._stopping.set()

    def run(self) -> None:
        """Looks at the pace of the file; what fails is said and tried again."""
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            try:
                self._turn()
            except ReplicatorError as error:
                log.warning("not promoted", link=self._link.name, error=error.paragraph())
                self._rests_until = self._clock.monotonic() + ATTEMPT_SECONDS
            except Exception:  # whatever it was, a watch that ends in silence promotes nothing ever
                log.exception("a look failed unexpectedly", link=self._link.name)
            left = began + self._automatic.interval_seconds - self._clock.monotonic()
            self._stopping.wait(max(0.1, left))

    def _turn(self) -> None:
        role = self._role()
        reached = self._probe()
        now_ms = round(self._clock.now() * 1000)
        self._tell([alias for alias, answers in reached.items() if answers], now_ms)
        if role.state != "mirroring":
            self._looks = ()
            return
        witness = witness_reaches(self._plan, self._automatic, role.active, now_ms=now_ms)
        now = self._clock.monotonic()
        self._looks = keep(
            (*self._looks, WitnessLook(now, reached[role.active], witness)), self._automatic
        )
        verdict = judge(self._looks, self._automatic, now_seconds=now)
        if verdict.promote and now >= self._rests_until:
            self._promote(role, verdict.reason)

    def _probe(self) -> dict[str, bool]:
        """Which sides answer us within the patience of one look, asked at the same time."""
        aliases = [str(alias) for alias in self._link.clusters]
        seconds = patience_seconds(self._automatic)

        def ask(alias: str) -> bool:
            return reaches(self._plan.cluster(alias), timeout_seconds=seconds)

        with ThreadPoolExecutor(len(aliases), thread_name_prefix="probe") as pool:
            return dict(zip(aliases, pool.map(ask, aliases), strict=True))

    def _tell(self, reached: list[str], now_ms: int) -> None:
        if not self._automatic.witness_cluster or not reached:
            return
        try:
            note_sightings(
                self._plan, self._automatic.witness_cluster, reached,
                worker=self._worker, now_ms=now_ms,
            )  # fmt: skip
        except ReplicatorError as error:
            log.info("the witness was not told", link=self._link.name, error=error.message)

    def _promote(self, role: Role, reason: str) -> None:
        to = next(str(alias) for alias in self._link.clusters if alias != role.active)
        log.warning("promoting by itself", link=self._link.name, to=to, reason=reason)
        request = TransitionRequest(
            kind="failover", link=self._link.name, to=to, by=f"witness@{self._worker}",
            accept_loss=True,
        )  # fmt: skip
        report = run_transition(
            self._plan, request, clock=self._clock, on_step=self._heard, answer=self._allowed
        )
        log.warning("promoted by itself" if report.outcome == "done" else "not promoted",
                    link=self._link.name, outcome=report.outcome, reason=report.reason)  # fmt: skip
        self._looks = ()
        if report.outcome != "done":
            self._rests_until = self._clock.monotonic() + ATTEMPT_SECONDS

    def _allowed(self, question: Question) -> bool:
        if question.old_side_answers:
            return False  # it came back between the last look and the command
        return question.loss_known and question.lost_records <= self._automatic.max_lost_records

    def _heard(self, event: StepEvent) -> None:
        if event.state == "done":
            log.info("step done", link=self._link.name, step=event.step, result=event.text)


def witnessed(
    plan: Plan,
    serves: Callable[[str], bool],
    role: Callable[[str], Role],
    *,
    worker: str,
    clock: Clock,
) -> tuple[AutomaticFailover, ...]:
    """A watch, not started, for every link with a witness of which this worker serves a side."""
    return tuple(
        AutomaticFailover(
            plan, link, link.procedure.automatic,
            role=partial(role, link.name), worker=worker, clock=clock,
        )
        for link in plan.links
        if link.procedure.automatic is not None
        and link.standby
        and any(serves(str(alias)) for alias in link.clusters)
    )  # fmt: skip
