"""From what the control topic says to what each lane should do. Pure.

A lane works on a source partition only when the layout is stable, the topic's record is ``active``,
both sides have the partition, Spark does not hold it, no operator paused it, and the role of its link
allows it. A lane with nothing to do gets no spec, so that it costs no clients.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

from replicator.control.lanes.layout import lane_in
from replicator.control.records.pair_records import (
    AcceptedGap,
    BackfillRecord,
    Block,
    Pause,
    TopicRecord,
)
from replicator.control.store.state import ControlState
from replicator.control.store.worker_record import batches_wait
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec, PartitionWork
from replicator.policy.copies.engines import BatchesWait, engine_now
from replicator.policy.values import Throttle
from replicator.topology.plan import FlowPlan, PairPlan, Plan

_About = TypeVar("_About", Pause, BackfillRecord, AcceptedGap)
_Basis = tuple[
    TopicRecord, Block, tuple[Pause, ...], tuple[BackfillRecord, ...], tuple[AcceptedGap, ...]
]
_Work = tuple[tuple[int, PartitionWork], ...]


class FlowWork:
    """The partitions of one flow by lane; remembers the work of topics about which nothing changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Basis, _Work]] = {}

    def by_lane(
        self, flow: FlowPlan, block: Block, control: ControlState
    ) -> dict[int, list[PartitionWork]]:
        """What all lanes of the flow's block should copy; in as many steps as there are records."""
        link = flow.link
        pauses = _by_topic(one for one in control.pauses(flow.id) if one.link in {None, link})
        everywhere = pauses.get(None, ())
        seeds = _by_topic(control.seeds(flow.source, link))
        gaps = _by_topic(control.gaps(flow.source))
        known, self._known = self._known, {}
        lanes: dict[int, list[PartitionWork]] = {}
        for record in control.topics(flow.source, link):
            topic = record.topic
            basis = (
                record, block, (*everywhere, *pauses.get(topic, ())),
                seeds.get(topic, ()), gaps.get(topic, ()),
            )  # fmt: skip
            held = known.get(topic)
            work = held[1] if held is not None and held[0] == basis else _topic_work(*basis)
            self._known[topic] = (basis, work)
            for lane, partition in work:
                lanes.setdefault(lane, []).append(partition)
        return lanes


class LaneSpecs:
    """The specs of one worker's lanes, computed anew only where they may differ; for one thread."""

    def __init__(self) -> None:
        self._basis: tuple[Plan, PairPlan, object, frozenset[int], BatchesWait] | None = None
        self._work: dict[str, FlowWork] = {}
        self._specs: dict[int, LaneSpec] = {}

    def of(
        self,
        plan: Plan,
        pair: PairPlan,
        control: ControlState,
        lanes: AbstractSet[int],
        *,
        at: float,
    ) -> dict[int, LaneSpec]:
        """The spec of each of the lanes, by number; see ``lane_specs``. ``at`` is now, in seconds since the epoch."""
        waits_for = batches_wait(control, pair.source.alias, now_ms=round(at * 1000))
        basis = (plan, pair, control.orders, frozenset(lanes), waits_for)
        before = self._basis
        if before is None or not (
            plan is before[0]
            and pair is before[1]
            and control.orders is before[2]
            and basis[3:] == before[3:]
        ):
            self._specs = lane_specs(
                plan=plan, pair=pair, control=control, lanes=lanes, known=self._work,
                waits_for=waits_for,
            )  # fmt: skip
            self._basis = basis
        return self._specs


def lane_specs(
    *,
    plan: Plan,
    pair: PairPlan,
    control: ControlState,
    lanes: Iterable[int],
    known: dict[str, FlowWork] | None = None,
    waits_for: BatchesWait = "",
) -> dict[int, LaneSpec]:
    """What the given lanes of a pair should do now; lanes without work are left out.

    ``known`` is the work of each link as it was decided last; it is brought up to date. Whole batches ``waits_for``
    somebody: see ``engine_now``.
    """
    layout = control.layout(pair.source.alias)
    if layout is None or layout.state != "stable":
        return {}
    works = {} if known is None else known
    owned = frozenset(lanes)
    specs: dict[int, LaneSpec] = {}
    for flow in pair.flows:
        block = layout.block(flow.link)
        if block is None or not allowed_by_role(control, flow):
            continue
        numbers = owned.intersection(block.lanes)
        if not numbers or flow.policy.runtime == "spark":
            continue
        settings = lane_settings(
            plan,
            flow,
            waits_for=waits_for,
            met_by_others=bool(control.opposite_topologies(pair.source.alias)),
        )
        by_lane = works.setdefault(flow.link, FlowWork()).by_lane(flow, block, control)
        for number in sorted(numbers & by_lane.keys()):
            specs[number] = LaneSpec(
                topology=plan.topology,
                link=flow.link,
                source=pair.source,
                target=pair.target,
                lane=number,
                layout_epoch=layout.epoch,
                settings=settings,
                work=tuple(by_lane[number]),
                throttle=lane_throttle(flow, block, control, number),
                role_version=flow.role_version,
            )
    return specs


def allowed_by_role(control: ControlState, flow: FlowPlan) -> bool:
    """Whether the role on record in the target's control topic allows a flow that the plan runs.

    The plan knows the roles of all clusters, but the target's control topic comes first: a newer role
    that forbids the flow holds at once, also for a worker whose plan does not have it yet.
    """
    return _role_allows(control, flow.link, flow.source, flow.role_version)


def _role_allows(
    control: ControlState, link: str, source: str, role_version: tuple[int, int]
) -> bool:
    record = control.role(link)
    if record is None:
        return True
    role = record.role()
    return role.rank < role_version or role.lets(source)


def pair_allowed_by_role(pair: PairPlan, control: ControlState) -> PairPlan:
    """The pair with only those flows running that roles in the target's control topic allow."""
    running = tuple(flow for flow in pair.flows if allowed_by_role(control, flow))
    if len(running) == len(pair.flows):
        return pair
    resting = tuple(flow for flow in pair.flows if flow not in running)
    return replace(pair, flows=running, standby=(*pair.standby, *resting))


def lane_may_start(control: ControlState, spec: LaneSpec) -> bool:
    """Whether a lane that has just fenced its predecessor may read its checkpoints and go on.

    To be asked with a control topic that was read to its end after ``init_transactions``. The
    controller declares a change of lanes before it fences them, so a lane that was initialised
    after that fence sees the declaration here, and one initialised before it is fenced. The same holds
    for a link whose direction changes: its new role is written before its lanes are fenced.
    """
    if not _role_allows(control, spec.link, spec.source.alias, spec.role_version):
        return False
    layout = control.layout(spec.source.alias)
    return layout is not None and layout.state == "stable" and layout.epoch == spec.layout_epoch


def lane_settings(
    plan: Plan, flow: FlowPlan, *, waits_for: BatchesWait = "", met_by_others: bool = False
) -> LaneSettings:
    """The flow's policy as far as a lane needs it."""
    policy = flow.policy
    engine = engine_now(policy, waits_for=waits_for).engine
    held_back = policy.engine == "batches" and engine == "records"
    return LaneSettings(
        delivery=policy.delivery,
        commit_interval_seconds=policy.commit_interval_seconds,
        provenance=policy.single_provenance if held_back else policy.provenance,
        blocked=tuple(flow.blocked),
        arrivals=plan.arrivals(flow.source),
        start_from=policy.start_from,
        on_record_error=policy.on_record_error,
        on_truncation=policy.on_truncation,
        filters=policy.filters,
        transforms=policy.transforms,
        cyclic=plan.in_cycle(flow),
        engine=engine,
        returns=met_by_others or plan.may_come_back(flow),
        met_by_others=met_by_others,
    )


def lane_throttle(flow: FlowPlan, block: Block, control: ControlState, lane: int) -> Throttle:
    """This lane's share of the flow's budget; an even part until the controller has split it."""
    budget = flow.policy.throttle
    share = control.share(flow.source, flow.link)
    part = share.lanes.get(str(lane)) if share is not None else None
    if part is not None:
        return Throttle(
            None if budget.bytes_per_second is None else part.bytes_per_second,
            None if budget.records_per_second is None else part.records_per_second,
        )
    return Throttle(
        _even(budget.bytes_per_second, block.count), _even(budget.records_per_second, block.count)
    )


def _even(budget: int | None, count: int) -> int | None:
    return None if budget is None else max(1, budget // count)


def _by_topic(records: Iterable[_About]) -> dict[str | None, tuple[_About, ...]]:
    found: dict[str | None, list[_About]] = {}
    for record in records:
        found.setdefault(record.topic, []).append(record)
    return {topic: tuple(about) for topic, about in found.items()}


def _topic_work(
    record: TopicRecord,
    block: Block,
    pauses: tuple[Pause, ...],
    seeds: tuple[BackfillRecord, ...],
    gaps: tuple[AcceptedGap, ...],
) -> _Work:
    """The lane of each partition of one topic that is to be copied, and the work on it."""
    paused = {pause.partition for pause in pauses}
    if None in paused:
        return ()
    runs = {seed.partition: seed.run if seed.state == "done" else None for seed in seeds}
    accepted = {gap.partition: gap for gap in gaps}
    return tuple(
        (
            lane_in(block, record.topic, partition),
            PartitionWork(
                topic=record.topic,
                partition=partition,
                target_topic=record.target,
                topic_id=record.topic_id,
                priority=record.priority,
                max_message_bytes=record.max_message_bytes,
                accept_gap=gap.token if (gap := accepted.get(partition)) is not None else "",
                unreadable=None if gap is None else gap.unreadable,
                backfill_run=run,
                late=record.is_late(partition),
            ),
        )
        for partition in range(record.working_partitions)
        if partition not in paused and (run := runs.get(partition, "")) is not None
    )
