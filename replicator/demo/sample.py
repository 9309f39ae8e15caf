"""What the demo watches: each flow's progress, and whose lanes are whose. Reading, then pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from replicator.clock import Clock
from replicator.control.lanes.checkpoint_moves import lane_of_link
from replicator.control.status.collect import collect_facts
from replicator.control.status.facts import PairFacts
from replicator.control.status.report import status_report
from replicator.topology.plan import PairPlan, Plan

Place = tuple[str, str, int]
"""Flow, source topic, partition."""


@dataclass(frozen=True, slots=True)
class FlowSample:
    """One flow at one moment.

    Attributes:
        flow: ``source->target``.
        state: as in `status`.
        lag_records: offsets of the source that are not on the target yet; None while unknown.
        lag_seconds: age of the oldest record to copy; None when not known.
        copied: records copied in total.
        lanes: by worker, as the group on the target has them.
    """

    flow: str
    state: str
    lag_records: int | None
    lag_seconds: float | None
    copied: int
    lanes: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything at one moment.

    Attributes:
        at: monotonic seconds.
        flows: in the order of the file.
        positions: next source offset to copy, as stored on the target.
        owners: the worker of each partition's lane.
        consoles: address of each known worker.
        problems: one line each.
    """

    at: float
    flows: tuple[FlowSample, ...]
    positions: Mapping[Place, int]
    owners: Mapping[Place, str]
    consoles: Mapping[str, str]
    problems: tuple[str, ...]

    @property
    def caught_up(self) -> bool:
        """Whether every flow has copied everything there is."""
        return bool(self.flows) and all(
            flow.lag_records == 0 and flow.state == "replicating" for flow in self.flows
        )

    @property
    def crossing(self) -> bool:
        """Whether every flow has copied something."""
        return bool(self.flows) and all(flow.copied > 0 for flow in self.flows)

    def lanes_of(self, worker: str) -> int:
        """How many lanes a worker has, over all flows."""
        return sum(len(flow.lanes.get(worker, ())) for flow in self.flows)

    def places_of(self, worker: str) -> frozenset[Place]:
        """Partitions that a worker copies."""
        return frozenset(place for place, owner in self.owners.items() if owner == worker)


def take_sample(plan: Plan, *, clock: Clock) -> Sample:
    """Reads both clusters of every flow, as `status` does. Blocking."""
    facts = collect_facts(plan, flow=None, clock=clock)
    report = status_report(plan, facts, now_ms=round(clock.now() * 1000))
    return make_sample(plan, facts, report, at=clock.monotonic())


def make_sample(
    plan: Plan, facts: Mapping[str, PairFacts], report: Mapping[str, Any], *, at: float
) -> Sample:
    """Joins facts and report into what the demo shows."""
    positions: dict[Place, int] = {}
    owners: dict[Place, str] = {}
    consoles: dict[str, str] = {}
    for pair in plan.pairs:
        read = facts[pair.id]
        consoles |= {worker.id: worker.http for worker in read.control.workers(pair.source.alias)}
        positions |= {
            (str(pair.id), topic, number): checkpoint.offset
            for (topic, number), checkpoint in read.checkpoints.items()
        }
        owners |= _owners(pair, read)
    flows = tuple(_flow(flow, facts[flow["flow"]]) for flow in report["flows"])
    problems = tuple(
        f"{flow['flow']} {problem['code']} {problem['subject']}: {problem['detail']}"
        for flow in report["flows"]
        for problem in flow["problems"]
    )
    return Sample(at, flows, positions, owners, consoles, problems)


def moved_since(before: Sample, now: Sample, places: Iterable[Place]) -> frozenset[Place]:
    """The partitions whose stored position advanced."""
    return frozenset(
        place for place in places if now.positions.get(place, -1) > before.positions.get(place, -1)
    )


def rates(before: Sample, now: Sample) -> dict[str, float]:
    """Records per second of each flow between two samples."""
    elapsed = max(now.at - before.at, 1e-6)
    earlier = {flow.flow: flow.copied for flow in before.flows}
    return {
        flow.flow: max(0.0, (flow.copied - earlier.get(flow.flow, 0)) / elapsed)
        for flow in now.flows
    }


def _flow(report: Mapping[str, Any], facts: PairFacts) -> FlowSample:
    return FlowSample(
        flow=report["flow"],
        state=report["state"],
        lag_records=report["lagRecords"],
        lag_seconds=report["lagSeconds"],
        copied=sum(checkpoint.records for checkpoint in facts.checkpoints.values()),
        lanes={member.id: member.lanes for member in facts.members if member.lanes},
    )


def _owners(pair: PairPlan, facts: PairFacts) -> dict[Place, str]:
    layout = facts.control.layout(pair.source.alias)
    if layout is None:
        return {}
    by_lane = {lane: member.id for member in facts.members for lane in member.lanes}
    owners: dict[Place, str] = {}
    for record in facts.control.topics(pair.source.alias):
        for number in range(record.working_partitions):
            lane = lane_of_link(layout, record.link, record.topic, number)
            if lane in by_lane:
                owners[str(pair.id), record.topic, number] = by_lane[lane]
    return owners
