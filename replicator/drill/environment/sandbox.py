"""A drill on temporary local clusters behind fault proxies, with workers; nothing is left behind."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replicator.clock import Clock
from replicator.control.status.collect import collect_status
from replicator.drill.environment.environment import Notify, Scene
from replicator.drill.environment.sandbox_topology import TOPIC, sandbox_clusters, sandbox_topology
from replicator.drill.environment.scene import naming_of, pair_of
from replicator.drill.file.errors import AbortedError
from replicator.drill.file.plan import ROLE_KINDS, Drill
from replicator.errors import ReplicatorError
from replicator.failover.report.report import TransitionReport
from replicator.failover.rules.request import OnStep, TransitionRequest
from replicator.failover.run.runner import run_transition
from replicator.testing.cluster.local_cluster import LocalCluster, start_all
from replicator.testing.kit.endpoints import Endpoint
from replicator.testing.kit.waiting import wait_until
from replicator.testing.kit.worker_process import WorkerProcess
from replicator.topology.file.load import require_plan
from replicator.topology.plan import Plan

GROUP = "drill-readers"
READY_SECONDS = 120.0
GROUPS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Beside:
    """A cluster as applications near it see it: not through the network that a drill cuts."""

    cluster: LocalCluster

    @property
    def name(self) -> str:
        """Its alias."""
        return self.cluster.name

    def client_settings(self, user: str | None = None) -> dict[str, str]:  # noqa: ARG002
        """The connection that no fault affects."""
        return self.cluster.admin_settings()

    def admin_settings(self) -> dict[str, str]:
        """The same."""
        return self.cluster.admin_settings()


class Sandbox(contextlib.ExitStack):
    """An ``Environment`` on local clusters; a context manager that removes everything again.

    Args:
        drill: the drill.
        original: the operator's topology document, or None for a plain link.
        clock: time as a dependency.
        notify: called with what is being set up.
    """

    def __init__(
        self, drill: Drill, original: Mapping[str, Any] | None, *, clock: Clock, notify: Notify
    ) -> None:
        self._drill = drill
        self._original = original
        self._clock = clock
        self._notify = notify
        super().__init__()
        self._clusters: dict[str, LocalCluster] = {}
        self._workers: list[WorkerProcess] = []
        self._dead: set[str] = set()
        self._target_worker: WorkerProcess | None = None
        self._file = Path()

    def ready(self) -> Scene:
        """Boots clusters and workers; returns once the link copies."""
        directory = Path(tempfile.mkdtemp(prefix="replicator-drill-"))
        self.callback(shutil.rmtree, directory, ignore_errors=True)
        aliases = sandbox_clusters(self._drill, self._original)
        self._notify("boot", f"{' and '.join(aliases)}: real brokers on this machine")
        for alias in aliases:
            cluster = self._clusters[alias] = LocalCluster(alias, proxied=True)
            self.callback(cluster.stop)
        start_all(self._clusters.values())
        source, target = self._clusters.values()
        source.create_topic(TOPIC, partitions=self._drill.load.partitions)
        entries = {alias: each.topology_entry() for alias, each in self._clusters.items()}
        document = sandbox_topology(self._drill, self._original, entries=entries)
        self._file = directory / "topology.yaml"
        self._file.write_text(json.dumps(document, indent=2))
        plan = require_plan(self._file)
        for number in range(1, self._drill.fault.workers + 1):
            self._start_worker(f"worker-{number}", directory)
        self._notify("workers", f"{len(self._workers)} started")
        pair = pair_of(plan, self._drill.link, f"{source.name}->{target.name}")
        wait_until(
            lambda: self._copies(plan, pair.id),
            timeout_seconds=READY_SECONDS,
            describe=lambda: f"the link to copy\n{self._workers[0].log_tail()}",
            interval_seconds=0.5,
        )
        # What cuts the workers off must not cut the applications off, unless the drill says so.
        beside = self._drill.kind == "network-cut"
        ends: list[Endpoint] = [Beside(each) if beside else each for each in (source, target)]
        naming = naming_of(plan, self._drill.link)
        return Scene(
            plan=plan,
            pair=pair,
            link=self._drill.link,
            source=ends[0],
            target=ends[1],
            behind={alias: Beside(each) for alias, each in self._clusters.items()},
            topic=TOPIC,
            copy=naming(source.name, TOPIC, target.name) or TOPIC,
            naming=naming,
            group=GROUP,
            real=False,
            fenced_by_word=self._drill.kind == "switchover",
        )

    @property
    def clears_fault(self) -> bool:
        """Cuts are healed and killed brokers started again."""
        return self._drill.kind != "worker-crash"

    def aim(self) -> None:
        """Chooses the worker with the most lanes."""
        if self._drill.kind == "worker-crash":
            self._target_worker = self._busiest()

    def inject_fault(self) -> str:
        """Kills the chosen worker, or cuts a cluster off."""
        if self._drill.kind == "worker-crash":
            victim = self._target_worker or self._workers[0]
            self._dead.add(victim.name)
            # Its lane processes with it, as if the machine were lost.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(victim.pid, signal.SIGKILL)
            victim.kill()
            return f"SIGKILL to {victim.name} and its lane processes"
        cluster = self._victim()
        how = self._drill.fault.how
        if how == "kill":
            cluster.kill()
            return f"SIGKILL to every broker of {cluster.name}"
        if how == "refuse":
            cluster.proxy.cut()
            return f"connections to {cluster.name} are reset and refused"
        cluster.proxy.black_hole()
        return f"bytes to and from {cluster.name} are dropped silently"

    def clear_fault(self) -> str:
        """Heals the network or restarts the brokers."""
        cluster = self._victim()
        if self._drill.fault.how == "kill":
            cluster.restart()
            return f"the brokers of {cluster.name} run again"
        cluster.proxy.heal()
        return f"{cluster.name} can be reached again"

    def change_roles(self, *, on_step: OnStep) -> TransitionReport:
        """The role change, by the same code as the command."""
        failover = self._drill.kind == "failover"
        request = TransitionRequest(
            kind="failover" if failover else "switchover",
            link=self._drill.link,
            to=list(self._clusters)[1],
            by="drill",
            accept_loss=failover,
            manual_fence=True,
            groups_seconds=GROUPS_SECONDS,
        )
        return run_transition(
            require_plan(self._file),
            request,
            clock=self._clock,
            on_step=on_step,
            answer=lambda _question: True,
        )

    def check(self, *, last_write_at: float) -> None:  # noqa: ARG002  a sandbox has no limit there
        """Whether every worker that was not killed still runs."""
        self._check_workers()

    def _check_workers(self) -> None:
        for worker in self._workers:
            if worker.name not in self._dead:
                try:
                    worker.check()
                except ReplicatorError as error:
                    raise AbortedError(error.message, subject=worker.name) from error

    def _start_worker(self, name: str, directory: Path) -> None:
        worker = WorkerProcess(name, topology_file=self._file, directory=directory)
        self._workers.append(worker)
        self.callback(worker.stop_at_once)

    def _copies(self, plan: Plan, flow: str) -> bool:
        self._check_workers()
        status: Any = collect_status(plan, flow=flow, clock=self._clock)
        for each in status["flows"]:
            partitions = [p for topic in each["topics"] for p in topic["partitions"]]
            busy = [worker for worker in each["workers"] if worker["lanes"]]
            if (
                len(busy) == len(self._workers)
                and len(partitions) == self._drill.load.partitions
                and all(p["state"] == "replicating" for p in partitions)
            ):
                return True
        return False

    def _busiest(self) -> WorkerProcess:
        flow = "->".join(self._clusters)
        status: Any = collect_status(require_plan(self._file), flow=flow, clock=self._clock)
        lanes = {
            worker["id"]: len(worker["lanes"])
            for each in status["flows"]
            for worker in each["workers"]
        }
        return max(self._workers, key=lambda worker: lanes.get(worker.name, 0))

    def _victim(self) -> LocalCluster:
        source, target = self._clusters.values()
        cut_target = self._drill.kind not in ROLE_KINDS and self._drill.fault.side == "target"
        return target if cut_target else source
