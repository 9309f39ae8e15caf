"""Automatic failover: probes links that declare a witness, and promotes when all probes agree.

Off unless a link declares it. It runs in workers that serve a cluster of the link, and acts like any
operator: it takes the link's lock, states the loss, and is refused while another transition is open.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from replicator.clock import Clock
from replicator.errors import ReplicatorError
from replicator.failover.external.witness_client import reaches, witness_reaches, write_sightings
from replicator.failover.rules.request import Question, StepEvent, TransitionRequest
from replicator.failover.rules.witness_decision import WitnessLook, judge, keep, patience_seconds
from replicator.failover.run.runner import run_transition
from replicator.policy.procedure import Automatic
from replicator.topology.plan import LinkPlan, Plan
from replicator.topology.roles import Role

log = structlog.get_logger("failover")

RETRY_SECONDS = 30.0
"""How long after a refused promotion the next one is tried."""


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
        self._retry_at = 0.0
        self._refusal = ""

    def stop(self) -> None:
        """Stops probing soon; does not wait."""
        self._stopping.set()

    def run(self) -> None:
        """Probes at the file's interval; an error is logged, and the next probe is on time."""
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            try:
                self._check()
            except ReplicatorError as error:
                log.warning("not promoted", link=self._link.name, error=error.paragraph())
                self._retry_at = self._clock.monotonic() + RETRY_SECONDS
            except Exception:  # a thread that ended silently would never promote anything
                log.exception("a probe failed unexpectedly", link=self._link.name)
            left = began + self._automatic.interval_seconds - self._clock.monotonic()
            self._stopping.wait(max(0.1, left))

    def _check(self) -> None:
        role = self._role()
        reached = self._probe()
        now_ms = round(self._clock.now() * 1000)
        self._send_sightings([alias for alias, answers in reached.items() if answers], now_ms)
        if role.state != "mirroring":
            self._looks = ()
            return
        witness = witness_reaches(self._plan, self._automatic, role.active, now_ms=now_ms)
        now = self._clock.monotonic()
        self._looks = keep(
            (*self._looks, WitnessLook(now, reached[role.active], witness)), self._automatic
        )
        verdict = judge(self._looks, self._automatic, now_seconds=now)
        if verdict.promote and now >= self._retry_at:
            self._promote(role, verdict.reason)

    def _probe(self) -> dict[str, bool]:
        """Which clusters answer one probe in time; both are probed at the same time."""
        aliases = [str(alias) for alias in self._link.clusters]
        seconds = patience_seconds(self._automatic)

        def ask(alias: str) -> bool:
            return reaches(self._plan.cluster(alias), timeout_seconds=seconds)

        with ThreadPoolExecutor(len(aliases), thread_name_prefix="probe") as pool:
            return dict(zip(aliases, pool.map(ask, aliases), strict=True))

    def _send_sightings(self, reached: list[str], now_ms: int) -> None:
        if not self._automatic.witness_cluster or not reached:
            return
        try:
            write_sightings(
                self._plan, self._automatic.witness_cluster, reached,
                worker=self._worker, now_ms=now_ms,
            )  # fmt: skip
        except ReplicatorError as error:
            log.info(
                "sightings were not written to the witness",
                link=self._link.name,
                error=error.message,
            )

    def _promote(self, role: Role, reason: str) -> None:
        to = next(str(alias) for alias in self._link.clusters if alias != role.active)
        log.warning("promoting automatically", link=self._link.name, to=to, reason=reason)
        request = TransitionRequest(
            kind="failover", link=self._link.name, to=to, by=f"witness@{self._worker}",
            accept_loss=True, contact_seconds=60.0 + 2 * self._automatic.after_seconds,
        )  # fmt: skip
        self._refusal = ""
        report = run_transition(
            self._plan, request, clock=self._clock, on_step=self._on_step, answer=self._allowed
        )
        log.warning("promoted automatically" if report.outcome == "done" else "not promoted",
                    link=self._link.name, outcome=report.outcome, reason=self._refusal or report.reason)  # fmt: skip
        self._looks = ()
        if report.outcome != "done":
            self._retry_at = self._clock.monotonic() + RETRY_SECONDS

    def _allowed(self, question: Question) -> bool:
        self._refusal = why_refused(question, most=self._automatic.max_lost_records)
        return not self._refusal

    def _on_step(self, event: StepEvent) -> None:
        if event.state == "done":
            log.info("step done", link=self._link.name, step=event.step, result=event.text)


def why_refused(question: Question, *, most: int) -> str:
    """Why nobody is promoted at this loss without a person; empty where it may be. Pure."""
    if question.old_side_answers:
        return "the side that would be left answers again"  # since the last probe
    if not question.loss_known:
        return f"how much would be lost is not known; a person may accept it: {question.text}"
    if question.lost_records > most:
        return f"{question.lost_records} records would be lost, {most} may be (maxLostRecords)"
    return ""


def witnessed(
    plan: Plan,
    serves: Callable[[str], bool],
    role: Callable[[str], Role],
    *,
    worker: str,
    clock: Clock,
) -> tuple[AutomaticFailover, ...]:
    """A thread, not started, for every link with a witness of which this worker serves a cluster."""
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
