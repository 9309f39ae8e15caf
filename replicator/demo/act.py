"""The demo with traffic: records are copied, one is explained, a worker is killed, its lanes move on."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.dataplane.process.membership import SESSION_SECONDS
from replicator.demo.reading import find_copied_record
from replicator.demo.sample import Place, Sample, moved_since, rates, take_sample
from replicator.demo.scenario import Scenario
from replicator.demo.screen import Screen
from replicator.demo.words import explain_record
from replicator.errors import ReplicatorError
from replicator.testing.kit.worker_process import WorkerProcess
from replicator.topology.plan import Plan

LOOK_SECONDS = 0.5
RATE_WINDOW_SECONDS = 2.5
KILL_AFTER_SECONDS = 5.0
CROSSING_SECONDS = 120.0
TAKEOVER_SECONDS = 60.0
CATCH_UP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Takeover:
    """What happened to the killed worker's partitions.

    Attributes:
        partitions: how many it had.
        missing: how many did not move again in time.
        seconds: from the kill until the last of them moved; None while one is missing.
    """

    partitions: int
    missing: int
    seconds: float | None

    @property
    def complete(self) -> bool:
        """Whether there was something to take over and all of it was."""
        return self.partitions > 0 and self.missing == 0


class Act:
    """Watches the flows from the moment traffic starts."""

    def __init__(
        self,
        plan: Plan,
        scenario: Scenario,
        workers: Sequence[WorkerProcess],
        screen: Screen,
        *,
        clock: Clock,
    ) -> None:
        self._plan = plan
        self._scenario = scenario
        self._workers = workers
        self._screen = screen
        self._clock = clock
        self._started = clock.monotonic()
        self._samples: list[Sample] = []
        self._dead: str | None = None

    def play(self, *, traffic_seconds: float) -> Takeover:
        """Runs to the end of the traffic.

        Raises:
            ReplicatorError: nothing was copied in time, or a worker ended unexpectedly.
        """
        self._screen.say("waiting for the workers to find each other and share the lanes")
        self._wait_for_crossing()
        self._explain()
        kill_at = self._started + min(KILL_AFTER_SECONDS, traffic_seconds / 3)
        self._watch(lambda _: self._clock.monotonic() >= kill_at, now=True)
        takeover = self._kill_one()
        end = self._started + traffic_seconds
        self._watch(lambda _: self._clock.monotonic() >= end)
        return takeover

    def catch_up(self) -> bool:
        """Waits until nothing is left to copy; returns whether that happened in time."""
        self._screen.say("applications stopped writing; the flows catch up")
        done = self._watch(lambda sample: sample.caught_up, limit_seconds=CATCH_UP_SECONDS)
        self._show(now=True)
        if done is None:
            self._screen.say(f"not caught up within {CATCH_UP_SECONDS:g} s", style="bold red")
            self._screen.note(self._samples[-1].problems)
        return done is not None

    def console(self, worker: WorkerProcess) -> str:
        """A worker's address; empty when it is not known yet."""
        return self._samples[-1].consoles.get(worker.name, "") if self._samples else ""

    def _wait_for_crossing(self) -> None:
        names = [worker.name for worker in self._workers]

        def crossing(sample: Sample) -> bool:
            return sample.crossing and all(map(sample.lanes_of, names))

        sample = self._watch(crossing, limit_seconds=CROSSING_SECONDS)
        if sample is None and not self._samples[-1].crossing:
            problems = "; ".join(self._samples[-1].problems) or "no problem is reported"
            raise ReplicatorError(
                f"no record was copied within {CROSSING_SECONDS:g} s ({problems}); "
                f"the end of a worker's log:\n{self._workers[0].log_tail()}"
            )
        self._screen.say("records are copied, both workers share the lanes", style="green")
        self._show(now=True)
        self._screen.say(f"console: {self.console(self._workers[0])}")

    def _explain(self) -> None:
        target = self._scenario.flows[0][1]
        found = find_copied_record(
            self._plan.cluster(target), self._scenario.topics_on(target),
            marked=self._scenario.marked, timeout_seconds=5.0,
        )  # fmt: skip
        if found is None:
            self._screen.say("no copied record was found", style="red")
            return
        first, *rest = explain_record(found, self._scenario)
        self._screen.say(first)
        self._screen.note(rest)

    def _kill_one(self) -> Takeover:
        victim = max(reversed(self._workers), key=lambda worker: self._look().lanes_of(worker.name))
        lost = self._look().places_of(victim.name)
        victim.kill()
        killed_at = self._clock.monotonic()
        self._dead = victim.name
        self._screen.say(f"SIGKILL to {victim.name}: it owned {_counted(lost)}", style="yellow")
        before = self._look()
        moved: set[Place] = set()

        def all_moved(sample: Sample) -> bool:
            moved.update(moved_since(before, sample, lost))
            return moved >= lost

        done = self._watch(all_moved, limit_seconds=TAKEOVER_SECONDS)
        took = None if done is None else done.at - killed_at
        if took is not None:
            self._screen.say(
                f"all of them move again {took:.1f} s after the kill "
                f"(of which {SESSION_SECONDS:.0f} s to detect that it is dead)",
                style="green",
            )
        self._show(now=True)
        return Takeover(len(lost), len(lost - moved), took)

    def _watch(
        self,
        until: Callable[[Sample], bool],
        *,
        limit_seconds: float | None = None,
        now: bool = False,
    ) -> Sample | None:
        """Samples and shows until the condition holds; None when the limit came first."""
        deadline = None if limit_seconds is None else self._clock.monotonic() + limit_seconds
        while True:
            sample = self._look()
            self._show(now=now)
            now = False
            if until(sample):
                return sample
            if deadline is not None and self._clock.monotonic() >= deadline:
                return None
            self._clock.sleep(LOOK_SECONDS)

    def _look(self) -> Sample:
        for worker in self._workers:
            worker.check()
        sample = take_sample(self._plan, clock=self._clock)
        kept = [old for old in self._samples if sample.at - old.at < RATE_WINDOW_SECONDS]
        self._samples = [*(kept or self._samples[-1:]), sample]
        return sample

    def _show(self, *, now: bool = False) -> None:
        if self._samples and self._samples[-1].flows:
            oldest, newest = self._samples[0], self._samples[-1]
            self._screen.show(newest, rates(oldest, newest), dead=self._dead, now=now)


def _counted(places: frozenset[Place]) -> str:
    flows = Counter(flow for flow, _, _ in places)
    parts = [f"{count} partitions of {flow}" for flow, count in sorted(flows.items())]
    return " and ".join(parts) or "nothing"
