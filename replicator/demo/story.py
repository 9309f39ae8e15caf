"""The course of the demo: boot, write, watch, explain, kill, take over, verify, stop.

Everything that was started is stopped again at the end, also after an error or Ctrl-C.
"""

import contextlib
import functools
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from replicator.clock import Clock, SystemClock
from replicator.demo.act import Act, Takeover
from replicator.demo.reading import all_committed
from replicator.demo.scenario import PARTITIONS, SCENARIOS, TOPIC, Scenario, topology_text
from replicator.demo.screen import Screen
from replicator.demo.shapes import Shape
from replicator.demo.verdict import judge
from replicator.testing import Recorder, Writer, scan
from replicator.testing.cluster.brokers.jars import broker_jars
from replicator.testing.cluster.local_cluster import LocalCluster, start_all
from replicator.testing.kit.waiting import wait_until
from replicator.testing.kit.worker_process import WorkerProcess
from replicator.topology.file.load import require_plan
from replicator.topology.plan import Plan

WORKERS = ("worker-1", "worker-2")
RECORDS_PER_SECOND = 250
_COMMITTED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of the demo.

    Attributes:
        shape: which topology.
        traffic_seconds: how long writers write; longer while killed lanes are being taken over.
        keep: leave all running after the verdict until Ctrl-C, and the files even after that.
        wait: leave all running after the verdict until Enter.
    """

    shape: Shape
    traffic_seconds: float
    keep: bool
    wait: bool


class Demo:
    """One run of the demo."""

    def __init__(self, options: DemoOptions, screen: Screen, *, clock: Clock | None = None) -> None:
        self._options = options
        self._scenario: Scenario = SCENARIOS[options.shape]
        self._screen = screen
        self._clock = clock or SystemClock()
        self._clusters: dict[str, LocalCluster] = {}
        self._history = Recorder()
        self._kept: Path | None = None

    def run(self) -> bool:
        """Runs it; returns whether the verdict is clean, lanes moved and all stopped cleanly.

        Raises:
            InputError: Java or Maven is missing.
            ReplicatorError: something did not start, or ended unexpectedly.
        """
        stack = contextlib.ExitStack()
        try:
            return self._tell(stack)
        finally:
            with _undisturbed():
                self._screen.end_table()
                stack.close()
                if self._clusters:
                    self._screen.say(self._farewell())

    def _farewell(self) -> str:
        left = f"the files stay in {self._kept}" if self._kept else "nothing is left behind"
        return f"workers and brokers are stopped, {left}"

    def _tell(self, stack: contextlib.ExitStack) -> bool:
        screen, scenario = self._screen, self._scenario
        directory = self._directory(stack)
        plan = self._boot(stack, directory)
        workers = [
            WorkerProcess(name, topology_file=directory / "topology.yaml", directory=directory)
            for name in WORKERS
        ]
        for worker in workers:
            stack.callback(worker.stop_at_once)
        writers = [self._write(stack, number) for number in range(len(scenario.writers))]
        pids = ", ".join(f"{worker.name} (pid {worker.pid})" for worker in workers)
        screen.say(f"workers started: {pids}")
        screen.say(
            f"applications write {RECORDS_PER_SECOND} records/s to '{TOPIC}' on "
            + " and on ".join(scenario.writers)
        )
        act = Act(plan, scenario, workers, screen, clock=self._clock)
        takeover = act.play(traffic_seconds=self._options.traffic_seconds)
        for writer in writers:
            writer.stop()
        caught_up = act.catch_up()
        clean = self._verify(plan)
        survivor = next(worker for worker in workers if not worker.killed)
        self._stay(act.console(survivor), directory)
        return all((self._drain(survivor), clean, caught_up, _judged(takeover, screen)))

    def _directory(self, stack: contextlib.ExitStack) -> Path:
        path = Path(tempfile.mkdtemp(prefix="replicator-demo-"))
        if self._options.keep:
            self._kept = path
        else:
            stack.callback(shutil.rmtree, path, ignore_errors=True)
        return path

    def _boot(self, stack: contextlib.ExitStack, directory: Path) -> Plan:
        screen, scenario = self._screen, self._scenario
        screen.say(f"{scenario.shape}: looking for Kafka, fetched by Maven the first time")
        version = broker_jars().version
        screen.say(f"booting Kafka {version}: {', '.join(scenario.clusters)}")
        clusters = self._clusters = {alias: LocalCluster(alias) for alias in scenario.clusters}
        for cluster in clusters.values():
            stack.callback(cluster.stop)
        start_all(clusters.values())
        for alias in scenario.writers:
            clusters[alias].create_topic(TOPIC, partitions=PARTITIONS)
        servers = {alias: cluster.bootstrap_servers for alias, cluster in clusters.items()}
        file = directory / "topology.yaml"
        file.write_text(topology_text(scenario, servers))
        screen.say(
            "brokers are up: "
            + ", ".join(f"{alias} {','.join(servers[alias])}" for alias in scenario.clusters)
        )
        return require_plan(file)

    def _write(self, stack: contextlib.ExitStack, number: int) -> Writer:
        """Starts an application on one of the clusters that have one."""
        cluster = self._clusters[self._scenario.writers[number]]
        writer = Writer(
            cluster,
            [TOPIC],
            history=self._history,
            rate_per_second=RECORDS_PER_SECOND,
            seed=number,
        ).start()
        stack.callback(writer.stop)
        return writer

    def _verify(self, plan: Plan) -> bool:
        screen, scenario = self._screen, self._scenario
        screen.say("reading every cluster from its start and comparing record by record")
        for alias, cluster in self._clusters.items():
            topics = scenario.topics_on(alias)
            wait_until(
                functools.partial(all_committed, plan.cluster(alias), topics),
                timeout_seconds=_COMMITTED_SECONDS,
                describe=f"all transactions on {alias} to be decided",
            )
            scan(cluster, topics, history=self._history)
        verdict = judge(scenario, self._history.events())
        screen.show_verdict(verdict)
        if verdict.clean:
            screen.say(
                "verdict: every record is on each cluster exactly once, in order, unchanged",
                style="bold green",
            )
        else:
            screen.say("verdict: NOT CLEAN, see above", style="bold red")
        return verdict.clean

    def _stay(self, console: str, directory: Path) -> None:
        """Keeps everything running, if requested."""
        screen = self._screen
        if self._options.keep:
            screen.say(f"still running: console {console}")
            screen.note(
                [
                    f"files: {directory} (topology.yaml and the workers' logs; these stay)",
                    f"try: replicator status -f {directory / 'topology.yaml'}",
                    "Ctrl-C stops everything.",
                ]
            )
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
        elif self._options.wait and screen.interactive:
            screen.say(f"still running: console {console}; Enter stops everything")
            with contextlib.suppress(EOFError):
                input()

    def _drain(self, worker: WorkerProcess) -> bool:
        code, took_seconds = worker.drain()
        if code == 0:
            self._screen.say(f"{worker.name} drained after SIGTERM in {took_seconds:.1f} s")
            return True
        self._screen.say(
            f"{worker.name} did not stop cleanly (exit code {code}) in {took_seconds:.1f} s",
            style="red",
        )
        self._screen.note(worker.log_tail().splitlines())
        return False


def _judged(takeover: Takeover, screen: Screen) -> bool:
    if not takeover.complete:
        screen.say("the killed worker's lanes were not taken over", style="bold red")
    return takeover.complete


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignores a second Ctrl-C, which would cut the clean-up short."""
    before = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
