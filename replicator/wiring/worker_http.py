"""Joins a worker to its HTTP face: what its endpoints answer."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict

from replicator.api.routes.kept_answer import KeptAnswer
from replicator.api.routes.provider import JsonObject, PauseTarget
from replicator.api.routes.topology_view import topology_view
from replicator.control.operator.pause import pause_flow, resume_flow
from replicator.control.status.collect import collect_status
from replicator.control.status.groups import survey_groups
from replicator.control.status.unowned_lanes import unowned_lanes
from replicator.control.store.worker_record import lane_logins, lane_openings, lane_problems
from replicator.control.worker.pair_view import PairView
from replicator.failover.run.history import history
from replicator.formats.lane_stats import LaneStats
from replicator.observability.health import (
    CanaryHealth,
    ClusterHealth,
    HealthVerdict,
    PairHealth,
    ReadinessFacts,
    readiness,
)
from replicator.observability.snapshot import FlowMetrics, MetricsSnapshot
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan
from replicator.wiring.worker import Worker

STATUS_SECONDS = 1.5
"""How old a status may be: consoles ask every two seconds."""

HISTORY_SECONDS = 5.0
GROUPS_SECONDS = 10.0
"""Group positions are compared record by record, which costs a few reads of each group's place."""


class WorkerProvider:
    """Answers for one worker; see ``replicator.api.routes.provider.StatusProvider``."""

    def __init__(
        self,
        worker: Worker,
        *,
        token_problem: Callable[[], str] = lambda: "",
        certificate_problem: Callable[[], str] = lambda: "",
    ) -> None:
        """``token_problem`` says why the HTTP API refuses every token; empty when it does not.

        ``certificate_problem`` says the same of a certificate that took the place of the one in use.
        """
        self._worker = worker
        self._token_problem = token_problem
        self._certificate_problem = certificate_problem
        self._status = self._kept(self._ask_status, STATUS_SECONDS)
        self._history = self._kept(
            lambda: history(worker.plan, followed=worker.known_states()), HISTORY_SECONDS
        )
        self._groups = self._kept(self._ask_groups, GROUPS_SECONDS)

    def live(self) -> HealthVerdict:
        """Whether every loop of the worker ran recently."""
        return self._worker.liveness.verdict()

    def ready(self) -> HealthVerdict:
        """Whether clusters answer and the lanes assigned to this worker run."""
        worker = self._worker
        lanes = worker.pool.stats()
        silent: dict[str, str] = {}
        pairs = []
        for view in worker.views():
            for problem in view.problems:
                if problem.subject.startswith("cluster:"):
                    silent[problem.subject.removeprefix("cluster:")] = problem.detail
            mine = [stats for stats in lanes if stats.pair == view.pair]
            for stats in mine:
                silent.update(_lane_trouble(stats))
            pairs.append(
                PairHealth(
                    flow=view.pair,
                    joined=view.joined,
                    lanes_assigned=len(view.running),
                    lanes_running=sum(stats.state == "running" for stats in mine),
                    partitions=sum(len(stats.partitions) for stats in mine),
                    failing=[words for stats in mine for words in _failing(stats)],
                )
            )
        used = {
            cluster.alias
            for pair in worker.served(worker.plan)
            for cluster in (pair.source, pair.target)
        }
        return readiness(
            ReadinessFacts(
                clusters=[
                    ClusterHealth(alias, alias not in silent, silent.get(alias, ""))
                    for alias in sorted(used)
                ],
                pairs=pairs,
                draining=worker.draining,
                missing=worker.deaths.standing(),
                canaries=self._canaries(),
                logins=self._logins(),
            )
        )

    def _logins(self) -> list[str]:
        """What will lock this worker out of a cluster, or its operators out of it."""
        found = self._worker.logins.problems()
        told = [f"login at '{alias}': {each.detail}" for alias, each in sorted(found.items())]
        lanes = {
            (alias, part.detail)
            for stats in self._worker.pool.stats()
            for alias, part in lane_logins(stats)
            if alias not in found
        }
        told += [f"login at '{alias}': {detail}" for alias, detail in sorted(lanes)]
        if token := self._token_problem():
            told.append(f"the HTTP API refuses every token: {token}")
        if certificate := self._certificate_problem():
            told.append(f"HTTPS goes on with the certificate of before: {certificate}")
        return told

    def _canaries(self) -> list[CanaryHealth]:
        """Of the flows that this worker controls."""
        now_ms = self._worker.clock.now() * 1000
        return [
            CanaryHealth(
                flow=view.pair,
                link=link,
                age_seconds=(
                    max(0.0, (now_ms - figures.canary_at_ms) / 1000)
                    if figures.canary_at_ms >= 0
                    else None
                ),
                round_trip_seconds=figures.canary_last_seconds,
                lost=figures.canary_lost,
            )
            for view in self._worker.views()
            for link, figures in (view.figures or {}).items()
        ]

    async def status(self) -> JsonObject:
        """As ``replicator status -o json``, asked of the clusters now."""
        return await self._status.get()

    def _ask_status(self) -> JsonObject:
        status = collect_status(self._worker.plan, followed=self._worker.known_states())
        self._add_own_trouble(status)
        return status

    def _ask_groups(self) -> JsonObject:
        plan = self._worker.plan
        return survey_groups(
            plan, plan.pairs, clock=self._worker.clock, followed=self._worker.known_states()
        )

    def _kept(self, ask: Callable[[], JsonObject], seconds: float) -> KeptAnswer:
        return KeptAnswer(ask, seconds=seconds, clock=self._worker.clock)

    def _add_own_trouble(self, status: JsonObject) -> None:
        """Adds what only this worker knows: a cluster that refuses us takes no record of it either."""
        views = self._worker.views()
        found = {view.pair: [*view.problems, *view.task_problems] for view in views}
        logins = self._worker.logins.problems()
        for view in views:
            found[view.pair] += [
                logins[alias] for alias in view.pair.split("->") if alias in logins
            ]
        for stats in self._worker.pool.stats():
            for part in lane_problems(stats):
                problem = Problem(part.code, part.subject, part.detail, part.remedy)
                found.setdefault(stats.pair, []).append(problem)
        refused = self._worker.reload_problem
        for words in self._worker.deaths.standing():
            missing = Problem("FAILED", "worker", words, "Restart this worker and report its log.")
            for view in views:
                found[view.pair].append(missing)
        for flow in status["flows"]:
            if refused is not None:
                found.setdefault(flow["flow"], []).append(refused)
            known = {(each["code"], each["subject"]) for each in flow["problems"]}
            for problem in found.get(flow["flow"], ()):
                if (problem.code, problem.subject) not in known:
                    known.add((problem.code, problem.subject))
                    flow["problems"].append(asdict(problem))

    async def topology(self) -> JsonObject:
        """The plan in force, without secrets."""
        return topology_view(self._worker.plan)

    async def history(self) -> JsonObject:
        """Role changes and drills on record, asked of the clusters now."""
        return await self._history.get()

    async def groups(self) -> JsonObject:
        """Groups on both sides, asked of the clusters."""
        return await self._groups.get()

    async def metrics(self) -> bytes:
        """One scrape."""
        return await asyncio.to_thread(self._scrape)

    async def pause(self, target: PauseTarget) -> JsonObject:
        """Pauses durably."""
        return await asyncio.to_thread(
            pause_flow, self._worker.plan, target.flow,
            topic=target.topic, partition=target.partition, by=self._worker.worker_id,
        )  # fmt: skip

    async def resume(self, target: PauseTarget, *, accept_gap: bool) -> JsonObject:
        """Resumes durably."""
        return await asyncio.to_thread(
            resume_flow, self._worker.plan, target.flow,
            topic=target.topic, partition=target.partition, accept_gap=accept_gap,
            by=self._worker.worker_id,
        )  # fmt: skip

    def _scrape(self) -> bytes:
        worker = self._worker
        now_ms = int(worker.clock.now() * 1000)
        views = {view.pair: view for view in worker.views()}
        lanes = worker.pool.stats()
        flows = []
        logins = worker.logins.problems()
        for pair in worker.served(worker.plan):
            view = views.get(pair.id)
            for flow in pair.flows:
                mine = [s for s in lanes if s.pair == pair.id and s.link == flow.link]
                stopped = {p.problem for s in mine for p in s.partitions if p.problem}
                stopped |= {p.failure.code for s in mine for p in s.partitions if p.failure}
                trouble = {problem.code for problem in view.problems} if view else set()
                task_problems = {problem.code for problem in view.task_problems} if view else set()
                login_codes = {
                    logins[alias].code for alias in (flow.source, flow.target) if alias in logins
                }
                login_codes |= {part.code for stats in mine for _, part in lane_logins(stats)}
                opening = {part.code for stats in mine for part in lane_openings(stats)}
                paused = view is not None and view.control.paused(flow.id, flow.link, "", -1)
                unowned = (
                    None
                    if view is None or not view.joined
                    else unowned_lanes(
                        view.control, source=pair.source.alias, link=flow.link, now_ms=now_ms
                    )
                )
                flows.append(
                    FlowMetrics(
                        link=flow.link,
                        flow=flow.id,
                        state=_state(
                            draining=worker.draining,
                            paused=paused,
                            failed=bool(trouble),
                            seeding=view is not None and _seeding(view, flow),
                        ),
                        lanes_missing=None if unowned is None else len(unowned),
                        problem_codes=tuple(
                            sorted(stopped | trouble | task_problems | login_codes | opening)
                        ),
                        tasks=view.figures.get(flow.link) if view and view.figures else None,
                    )
                )
        return worker.metrics.render(
            MetricsSnapshot(
                now_ms=now_ms,
                topology=worker.plan.topology,
                plan_hash=worker.plan.hash,
                lanes=lanes,
                flows=flows,
                links=worker.links(),
                logins=worker.logins.metrics(),
            )
        )


def _state(*, draining: bool, paused: bool, failed: bool, seeding: bool) -> str:
    """What a flow does as this worker sees it; one of ``FLOW_STATES``."""
    held = (("draining", draining), ("paused", paused), ("failed", failed), ("seeding", seeding))
    return next((name for name, holds in held if holds), "replicating")


def _seeding(view: PairView, flow: FlowPlan) -> bool:
    seeds = view.control.seeds(flow.source, flow.link)
    return any(seed.purpose == "history" and seed.state != "done" for seed in seeds)


def _failing(stats: LaneStats) -> list[str]:
    return [
        f"{each.topic}/{each.partition} does not move: {each.failure.code} {each.failure.detail}"
        for each in stats.partitions
        if each.failure is not None
    ]


def _lane_trouble(stats: LaneStats) -> dict[str, str]:
    source, _, target = stats.pair.partition("->")
    sides = ((source, stats.source_problem), (target, stats.target_problem))
    return {alias: text.partition(" ")[2].partition("\n")[0] for alias, text in sides if text}
