"""What a bulk run copies: surveyed, sized, and split into orders for tasks."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from replicator.control.backfill.estimate import BackfillEstimate, backfill_estimate
from replicator.control.backfill.facts import read_backfill_facts
from replicator.control.backfill.handover import read_control_past_open_transactions
from replicator.control.backfill.ranges import BackfillRange, backfill_record, plan_ranges
from replicator.control.lanes.lane_specs import lane_settings
from replicator.control.records.pair_records import BackfillRecord, TopicRecord
from replicator.control.store.state import ControlState
from replicator.dataplane.transport.spec import PartitionWork
from replicator.errors import InputError, NotFoundError
from replicator.identifiers import TopicPartition, is_canary_topic
from replicator.policy.values import Throttle
from replicator.spark.copy.task import CopyOrder
from replicator.topology.plan import FlowPlan, PairPlan, Plan


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """What is to be copied for one pair of clusters; ``job`` names it over all its runs.

    ``unknown`` are partitions of which the source did not say what they hold: they stay with the workers.
    """

    pair: PairPlan
    ranges: tuple[BackfillRange, ...]
    control: ControlState
    job: str
    keeps_latest: bool = False
    unknown: tuple[TopicPartition, ...] = ()

    @property
    def records(self) -> int:
        """Offsets to copy."""
        return sum(one.records for one in self.ranges)

    @property
    def size(self) -> int:
        """Bytes to copy, as they lie on the source's disks."""
        return sum(one.size for one in self.ranges)

    @property
    def resumed(self) -> bool:
        """Whether an earlier run was interrupted."""
        return any(one.resumed for one in self.ranges)

    def estimates(self) -> tuple[BackfillEstimate, ...]:
        """The same by topic, with the time it may take."""
        topics: dict[tuple[str, str], list[BackfillRange]] = {}
        for one in self.ranges:
            topics.setdefault((one.flow.link, one.record.topic), []).append(one)
        return tuple(
            backfill_estimate(
                flow=str(self.pair.id),
                topic=topic,
                records=sum(one.records for one in ranges),
                size=sum(one.size for one in ranges),
                throttle=ranges[0].flow.policy.throttle,
            )
            for (_, topic), ranges in topics.items()
        )


def survey(
    plan: Plan,
    pair: PairPlan,
    *,
    topics: Sequence[str] = (),
    keeps_latest: bool = False,
    only_by: str | None = None,
) -> BulkPlan:
    """Looks at both clusters; nothing is written.

    ``only_by`` limits it to ranges that this name has declared already.

    Raises:
        InputError: the flow was never applied, or a topic is not replicated by it.
        ClusterError: a cluster does not answer.
    """
    try:
        control = read_control_past_open_transactions(plan, pair)
    except NotFoundError as error:
        raise never_applied(pair) from error
    if control.layout(pair.source.alias) is None:
        raise never_applied(pair)
    flows = [flow for flow in pair.flows if flow.policy.runtime == "workers"]
    _known(topics, control, flows)
    facts = read_backfill_facts(plan, pair, flows, control)
    ranges = plan_ranges(flows, control, facts, topics=topics, keeps_latest=keeps_latest)
    held = {one.key: control.seed(*_identity(one)) for one in ranges if one.resumed}
    if only_by is not None:
        asked = {
            key for key, backfill in held.items() if backfill is not None and backfill.by == only_by
        }
        ranges = tuple(one for one in ranges if one.key in asked)
    runs = [backfill.run for backfill in held.values() if backfill is not None and backfill.run]
    jobs = sorted({run.partition(".")[0] for run in runs})
    job = jobs[0] if jobs else secrets.token_hex(4)
    listed = {one.key for one in ranges}
    unknown = tuple(
        (record.topic, number)
        for flow in flows
        for record in control.topics(flow.source, flow.link)
        if not is_canary_topic(record.topic) and (not topics or record.topic in topics)
        for number in range(record.working_partitions)
        if (record.topic, number) not in facts.ends and (record.topic, number) not in listed
    )
    return BulkPlan(pair, ranges, control, job, keeps_latest, unknown)


def never_applied(pair: PairPlan) -> InputError:
    """A flow without control topics has nothing to copy into."""
    return InputError(
        "it was never applied, so its topics are not on the target yet",
        subject=str(pair.id),
        remedy="Run 'replicator apply' first, or start a worker.",
    )


def declarations(found: BulkPlan, *, run: str, by: str, at_ms: int) -> tuple[BackfillRecord, ...]:
    """The records that say what this run copies."""
    return tuple(
        backfill_record(one, run=run, at_ms=at_ms, by=by, keeps_latest=found.keeps_latest)
        for one in found.ranges
    )


def orders(
    plan: Plan, pair: PairPlan, ranges: Iterable[BackfillRange], *, run: str, at_once: int
) -> tuple[CopyOrder, ...]:  # fmt: skip
    """One order per range; a flow's budget is split over as many tasks as run at once."""
    settings = {str(flow.link): lane_settings(plan, flow) for flow in pair.flows}
    listed = tuple(ranges)
    parts = max(1, min(at_once, len(listed)))
    return tuple(
        CopyOrder(
            topology=plan.topology,
            link=str(one.flow.link),
            source=pair.source,
            target=pair.target,
            settings=settings[str(one.flow.link)],
            work=work_of(one.record, one.partition),
            lane=one.lane,
            run=run,
            start=one.start,
            end=one.end,
            throttle=throttle_part(one.flow.policy.throttle, parts),
        )
        for one in listed
    )


def work_of(record: TopicRecord, partition: int, accept_gap: str = "") -> PartitionWork:
    """A partition as the specification of a lane has it."""
    return PartitionWork(
        topic=record.topic,
        partition=partition,
        target_topic=record.target,
        topic_id=record.topic_id,
        priority=record.priority,
        max_message_bytes=record.max_message_bytes,
        accept_gap=accept_gap,
    )


def unfinished(
    control: ControlState, pair: PairPlan, topics: Sequence[str] = ()
) -> tuple[BackfillRecord, ...]:
    """History that some run has begun to copy and not finished."""
    return tuple(
        backfill
        for backfill in control.seeds(pair.source.alias)
        if backfill.state != "done"
        and backfill.purpose == "history"
        and (not topics or backfill.topic in topics)
    )


def _identity(one: BackfillRange) -> tuple[str, str, str, int]:
    return one.flow.source, one.flow.link, one.record.topic, one.partition


def throttle_part(budget: Throttle, parts: int) -> Throttle:
    """An even part of a flow's budget for each of the tasks that run at once."""

    def share(whole: int | None) -> int | None:
        return None if whole is None else max(1, whole // parts)

    return Throttle(share(budget.bytes_per_second), share(budget.records_per_second))


def _known(topics: Sequence[str], control: ControlState, flows: Sequence[FlowPlan]) -> None:
    there: Mapping[str, None] = {
        record.topic: None for flow in flows for record in control.topics(flow.source, flow.link)
    }
    missing = [topic for topic in topics if topic not in there]
    if missing:
        raise InputError(
            f"the flow has no topic {', '.join(repr(topic) for topic in missing)}",
            remedy=f"Its topics: {', '.join(list(there)[:8]) or 'none yet'}.",
        )
