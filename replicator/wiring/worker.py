"""The composition root of a worker: which parts there are and who knows whom."""

import os
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from replicator.clock import Clock, SystemClock
from replicator.control.backfill.spark_process import SparkProcess
from replicator.control.roles.figures import link_metrics
from replicator.control.roles.link_facts import link_facts
from replicator.control.roles.watch import RoleWatch
from replicator.control.store.followers import ControlFollowers
from replicator.control.store.gap_journal import GapJournal
from replicator.control.store.state import ControlState
from replicator.control.worker.edit_check import refuse_contradictions
from replicator.control.worker.login_watch import LoginWatch
from replicator.control.worker.pair_runner import PairRunner
from replicator.control.worker.pair_view import PairView, WorkerIdentity
from replicator.control.worker.topology_watch import TopologyWatch
from replicator.dataplane.process.process_pool import LanePool
from replicator.dataplane.process.spawn import LaneChild
from replicator.dataplane.transport.messages import LaneStopped, LogLine, LostRange
from replicator.errors import AliasConflictError, InputError
from replicator.formats.lane_stats import LATENCY_BOUNDS_SECONDS
from replicator.identifiers import FlowId, worker_client_id
from replicator.observability.health import Liveness
from replicator.observability.metrics import Metrics
from replicator.observability.snapshot import LinkMetrics
from replicator.policy.capacity.memory_shares import MemoryShare, records_bytes, shown_bytes
from replicator.problem import Problem, problem_of
from replicator.topology.file.load import require_plan
from replicator.topology.plan import PairPlan, Plan
from replicator.topology.roles import Role, orient
from replicator.wiring.failover_watches import FailoverWatches
from replicator.wiring.thread_deaths import ThreadDeaths

log = structlog.get_logger("worker")

SEED_ENTRY = "replicator.spark.bulk.backfill_process"
BEAT_LIMIT_SECONDS = 60.0
ROLES_SECONDS = 3.0
"""How long a start waits for roles from the clusters; later ones are followed as they arrive."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What ``run`` was asked for."""

    topology_file: Path
    clusters: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    worker_id: str | None = None
    grace_seconds: float = 20.0
    metrics_detail: bool = False
    watch: bool = True
    """Whether edits of the file are followed; else it is read once."""
    memory_bytes: int | None = None
    """What the worker may use in all; None without a limit."""
    expansion: int = 0
    """How many times larger records may be than their batches; 0 where the line decides."""


class Worker:
    """All pairs this worker serves, its lane processes, and what others may ask of it."""

    def __init__(
        self,
        options: WorkerOptions,
        children: Sequence[LaneChild],
        *,
        processes: int,
        clock: Clock | None = None,
    ) -> None:
        """``children`` are lane processes, which end with it; it may have ``processes`` of them."""
        self.options = options
        self.clock = clock or SystemClock()
        self._file_plan: Plan = require_plan(options.topology_file)
        self.plan: Plan = self._file_plan
        self.metrics = Metrics(bounds_seconds=LATENCY_BOUNDS_SECONDS, detail=options.metrics_detail)
        self.deaths = ThreadDeaths()
        self.liveness = Liveness(clock=self.clock, deaths=self.deaths.standing)
        self.draining = False
        self._started = False
        self.reload_problem: Problem | None = None
        self._http = ""
        self._lock = threading.Lock()
        self._runners: dict[FlowId, PairRunner] = {}
        self._leaving: dict[FlowId, PairRunner] = {}
        self._gaps = GapJournal(clock=self.clock, known=self.known_states)
        self._identity = WorkerIdentity(
            id=options.worker_id or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}",
            host=socket.gethostname(),
            pid=os.getpid(),
            http="",
            instance_id=options.worker_id,
            memory_bytes=options.memory_bytes,
        )
        self._records_bytes = records_bytes(options.memory_bytes, processes=processes)
        self.pool = LanePool(
            children, processes=processes, on_event=self._on_event, on_stats=self._on_stats,
            memory=MemoryShare(self._records_bytes, options.expansion),
        )  # fmt: skip
        self.logins = LoginWatch(self._file_plan)
        self._watch = TopologyWatch(options.topology_file, on_change=self.reload)
        self._adopting = threading.Lock()
        self._followers = ControlFollowers(self._identity.id, liveness=self.liveness)
        self._roles = self._role_watch()
        self._failover = FailoverWatches(
            serves=self._serves,
            roles=self._link_roles,
            states=self.known_states,
            worker=self.worker_id,
            clock=self.clock,
        )

    @property
    def worker_id(self) -> str:
        """How others know this worker."""
        return self._identity.id

    def served(self, plan: Plan) -> tuple[PairPlan, ...]:
        """The pairs of the plan that this worker serves."""
        return tuple(
            pair
            for pair in plan.pairs
            if (not self.options.clusters or pair.target.alias in self.options.clusters)
            and (not self.options.flows or pair.id in self.options.flows)
        )

    def start(self, *, http: str = "") -> None:
        """Starts a runner per pair as the links' roles have them.

        Waits a moment for roles; a cluster that does not answer by then counts as without a record of roles.
        """
        self.deaths.install()
        limit = self.options.memory_bytes
        log.info(
            "memory for records",
            bytes=self._records_bytes,
            limit="none" if limit is None else shown_bytes(limit),
        )
        self._identity = replace(self._identity, http=http)
        self._roles.begin(ROLES_SECONDS)
        self._started = True
        self._adopt(self._file_plan)
        self._failover.follow(self._file_plan)
        if self.options.watch:
            self._watch.start()
        self.logins.start()

    def wait_until_copying(self, seconds: float, stopping: Callable[[], bool]) -> None:
        """Returns once a lane runs, when asked to stop, or after the time."""
        limit = self.clock.monotonic() + seconds
        while self.clock.monotonic() < limit and not stopping():
            if any(stats.state == "running" for stats in self.pool.stats()):
                return
            self.clock.sleep(0.05)

    def reload(self) -> None:
        """Reads the file again; one that cannot be adopted changes nothing and is reported."""
        old = self._file_plan
        try:
            new = require_plan(self.options.topology_file)
            refuse_contradictions(
                old,
                new,
                [binding for view in self.views() for binding in view.control.bindings()],
                client_id=worker_client_id(old.topology, self._identity.id),
            )
        except (InputError, AliasConflictError) as error:
            self.reload_problem = problem_of(error, subject=str(self.options.topology_file))
            log.warning(
                "edited topology refused, the old one stays in force",
                problem=error.message, remedy=self.reload_problem.remedy,
            )  # fmt: skip
            return
        self.reload_problem = None
        if new.hash == old.hash:
            return
        self._file_plan = new
        self.logins.follow(new)
        before, after = self._roles, self._role_watch()
        after.begin(ROLES_SECONDS)
        self._roles = after
        before.stop()  # last, so that clusters of both stay followed
        self._adopt(new)
        log.info("topology reloaded", plan=new.hash[:12], before=old.hash[:12])
        self._failover.follow(new)

    def _serves(self, alias: str) -> bool:
        return not self.options.clusters or alias in self.options.clusters

    def _link_roles(self) -> dict[str, Role]:
        return (
            self._roles.roles()
        )  # of the watch there is now: an edit of the topology makes another

    def _role_watch(self) -> RoleWatch:
        return RoleWatch(self._file_plan, self._followers, on_change=self._roles_changed)

    def _roles_changed(self) -> None:
        """A link turned around, or began to: in the thread of the role watch."""
        if not self._started or self.draining:
            return
        log.info(
            "roles changed",
            roles={
                link: f"{role.active} {role.state} in epoch {role.epoch}"
                for link, role in self._link_roles().items()
            },
        )
        self._adopt(self._file_plan)
        self._failover.watch_returns(self._file_plan)

    def _adopt(self, plan: Plan) -> None:
        """Goes on with the plan as roles have it: starts, changes and ends runners of pairs."""
        with self._adopting:
            new = orient(plan, self._link_roles())
            with self._lock:
                old, self.plan = self.plan, new
            wanted = {pair.id: pair for pair in self.served(new)}
            before = {pair.id: pair for pair in self.served(old)}
            for pair_id, runner in list(self._runners.items()):
                pair = wanted.get(pair_id)
                moved = pair is not None and (
                    (pair.source, pair.target) != (before[pair_id].source, before[pair_id].target)
                    or new.topology != old.topology
                )
                if pair is None or moved:
                    runner.stop()
                    self._leaving[pair_id] = self._runners.pop(pair_id)
                    self.liveness.stop(f"pair {pair_id}")
                else:
                    runner.replan(new, pair)
            for pair_id, pair in wanted.items():
                if pair_id not in self._runners:
                    self._start(pair)

    def drain(self) -> bool:
        """Stops everything within the grace period; whether all lanes committed in time.

        What is closed after that takes less than the ten seconds that the chart leaves for it.
        """
        self.draining = True
        log.info("draining", grace_seconds=self.options.grace_seconds)
        self._watch.stop()
        self.logins.stop()
        self._roles.stop()
        self._failover.stop()
        deadline = self.clock.monotonic() + self.options.grace_seconds
        runners = [*self._runners.values(), *self._leaving.values()]
        for runner in runners:
            runner.stop()
        for runner in runners:
            runner.join(max(0.1, deadline - self.clock.monotonic()))
        late = [runner.pair.id for runner in runners if runner.is_alive()]
        if late:
            log.warning("flows did not drain within the grace period", flows=late)
        self._followers.close()
        self._gaps.close()
        self.pool.close()
        return not late

    def links(self) -> tuple[LinkMetrics, ...]:
        """The role of every link that has one, and what its last change took."""
        now_ms, states = round(self.clock.now() * 1000), self._roles.states()
        found = []
        for name, role in self._link_roles().items():
            link = self.plan.link(name)
            facts = link_facts(states, link, role)
            last = self._roles.last_change(name)
            found.append(link_metrics(link, role, last, facts, now_ms=now_ms))
        return tuple(found)

    def known_states(self) -> dict[str, ControlState]:
        """What the control topics say that this worker follows now, by cluster."""
        return self._followers.states(self.plan.topology)

    def views(self) -> list[PairView]:
        """How each pair stands."""
        return [runner.view() for runner in list(self._runners.values())]

    def _start(self, pair: PairPlan) -> None:
        leaving = self._leaving.pop(pair.id, None)
        if leaving is not None:
            leaving.join(self.options.grace_seconds)  # two of one pair would share their lanes
        name = f"pair {pair.id}"
        self.liveness.start(name, limit_seconds=BEAT_LIMIT_SECONDS)
        runner = PairRunner(
            plan=self.plan,
            pair=pair,
            pool=self.pool,
            followers=self._followers,
            identity=self._identity,
            clock=self.clock,
            beat=self.liveness.beat,
            seeder=SparkProcess(
                entry_module=SEED_ENTRY,
                topology_file=self.options.topology_file,
                flow=pair.id,
                clock=self.clock,
            ),
        )
        self._runners[pair.id] = runner
        runner.start()

    def _on_event(self, event: LaneStopped | LostRange | LogLine) -> None:
        if isinstance(event, LaneStopped):
            runner = self._runners.get(FlowId(event.pair))
            if runner is not None:
                runner.lane_stopped(event)
        elif isinstance(event, LostRange):
            log.error("source data given up", flow=event.pair, link=event.link, topic=event.topic,
                      partition=event.partition, lost_from=event.lost_from,
                      lost_to=event.lost_to, detail=event.detail)  # fmt: skip
            self._gaps.note(self.plan, event)
        else:
            write: Callable[..., object] = getattr(log, event.level)
            write(event.event, **event.fields)

    def _on_stats(self) -> None:
        self.metrics.observe(self.pool.stats())
