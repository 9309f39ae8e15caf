"""From what the control topic says to what each lane is told to do. Pure.

A lane is told to work on a source partition only when the layout is stable, the topic's record is
``active``, both sides have the partition, Spark does not hold it, no operator paused it, and the role
of its link lets it. A lane with nothing to do gets no spec, so that it costs no clients.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from replicator.control.lanes.layout import lane_in
from replicator.control.store.records import Block, TopicRecord
from replicator.control.store.state import ControlState
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec, PartitionWork
from replicator.policy.values import Throttle
from replicator.topology.plan import FlowPlan, PairPlan, Plan


def lane_specs(
    *, plan: Plan, pair: PairPlan, control: ControlState, lanes: Iterable[int]
) -> dict[int, LaneSpec]:
    """What the given lanes of a pair should do now; lanes without work are left out."""
    layout = control.layout(pair.source.alias)
    if layout is None or layout.state != "stable":
        return {}
    owned = frozenset(lanes)
    specs: dict[int, LaneSpec] = {}
    for flow in pair.flows:
        block = layout.block(flow.link)
        if block is None or not allowed_by_role(control, flow):
            continue
        numbers = owned.intersection(range(block.first, block.first + block.count))
        if not numbers or flow.policy.runtime == "spark":
            continue
        settings = lane_settings(plan, flow)
        for number, work in _work(flow, block, control, numbers).items():
            specs[number] = LaneSpec(
                topology=plan.topology,
                link=flow.link,
                source=pair.source,
                target=pair.target,
                lane=number,
                layout_epoch=layout.epoch,
                settings=settings,
                work=tuple(work),
                throttle=lane_throttle(flow, block, control, number),
                under=flow.under,
            )
    return specs


def allowed_by_role(control: ControlState, flow: FlowPlan) -> bool:
    """Whether the target's own word lets a flow run that the plan says runs.

    The plan knows the roles of all clusters, the target's control topic comes first: a flow that a
    newer record forbids has ended, whoever has not heard of it yet.
    """
    return _role_allows(control, flow.link, flow.source, flow.under)


def _role_allows(control: ControlState, link: str, source: str, under: tuple[int, int]) -> bool:
    record = control.role(link)
    if record is None:
        return True
    role = record.role()
    return role.rank < under or role.lets(source)


def pair_allowed_by_role(pair: PairPlan, control: ControlState) -> PairPlan:
    """The pair with only those flows running that the target's own word lets."""
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
    for a link that turns around: its new role is written before its lanes are fenced.
    """
    if not _role_allows(control, spec.link, spec.source.alias, spec.under):
        return False
    layout = control.layout(spec.source.alias)
    return layout is not None and layout.state == "stable" and layout.epoch == spec.layout_epoch


def lane_settings(plan: Plan, flow: FlowPlan) -> LaneSettings:
    """The flow's policy as far as a lane needs it."""
    policy = flow.policy
    return LaneSettings(
        delivery=policy.delivery,
        commit_interval_seconds=policy.commit_interval_seconds,
        provenance=policy.provenance,
        blocked=tuple(flow.blocked),
        arrivals=plan.arrivals(flow.source),
        start_from=policy.start_from,
        on_record_error=policy.on_record_error,
        on_truncation=policy.on_truncation,
        filters=policy.filters,
        transforms=policy.transforms,
        cyclic=plan.in_cycle(flow),
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


def _work(
    flow: FlowPlan, block: Block, control: ControlState, numbers: frozenset[int]
) -> Mapping[int, list[PartitionWork]]:
    work: dict[int, list[PartitionWork]] = {}
    pauses = control.pauses(flow.id)
    for topic in control.topics(flow.source, flow.link):
        for partition in range(topic.working_partitions):
            number = lane_in(block, topic.topic, partition)
            if number not in numbers:
                continue
            if control.copied_by_spark(flow.source, flow.link, topic.topic, partition):
                continue
            if pauses and control.paused(flow.id, flow.link, topic.topic, partition):
                continue
            work.setdefault(number, []).append(_partition_work(flow, topic, partition, control))
    return work


def _partition_work(
    flow: FlowPlan, topic: TopicRecord, partition: int, control: ControlState
) -> PartitionWork:
    gap = control.gap(flow.source, topic.topic, partition)
    seed = control.seed(flow.source, flow.link, topic.topic, partition)
    return PartitionWork(
        topic=topic.topic,
        partition=partition,
        target_topic=topic.target,
        topic_id=topic.topic_id,
        priority=topic.priority,
        max_message_bytes=topic.max_message_bytes,
        accept_gap=gap.token if gap is not None else "",
        seeded=seed.run if seed is not None else "",
    )
