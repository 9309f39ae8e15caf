"""From what was read to the object of ``status -o json``. Pure.

Works with no worker running: everything comes from clusters, control topics and the membership of
the workers' group.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from replicator.control.records.pair_records import Block, TopicRecord
from replicator.control.records.problem_part import ProblemPart
from replicator.control.records.worker_records import WorkerRecord
from replicator.control.status.facts import PairFacts
from replicator.control.status.links import link_report, moment
from replicator.control.status.partition import PartitionStatus, partition_status
from replicator.control.status.workers import lanes_of_flow, newest_canary, workers_of_flow
from replicator.control.store.state import ControlState
from replicator.control.store.worker_record import fresh_workers, shown_engine
from replicator.identifiers import JsonObject, is_canary_topic
from replicator.problem import Problem, problem_json
from replicator.topology.plan import FlowPlan, PairPlan, Plan
from replicator.topology.roles import Role


@dataclass(frozen=True, slots=True)
class _Topic:
    record: TopicRecord
    partitions: tuple[PartitionStatus, ...]


def status_report(
    plan: Plan,
    facts: Mapping[str, PairFacts],
    *,
    now_ms: int,
    flow: str | None = None,
    roles: Mapping[str, Role] | None = None,
    states: Mapping[str, ControlState] | None = None,
) -> JsonObject:
    """The whole object.

    Args:
        plan: the topology, with its flows as roles have them.
        facts: by ``source->target``.
        now_ms: the time it speaks of.
        flow: only this flow, when given.
        roles: of links, by name; the file's word for those that are not there.
        states: control topics by cluster.
    """
    known = roles or {}
    flows = [
        {
            **flow_report(pair, one, facts[pair.id]),
            **_engine(one, facts[pair.id]),
        }
        for pair in plan.pairs
        if flow is None or pair.id == flow
        for one in pair.flows
    ]
    return {
        "topology": plan.topology,
        "planHash": plan.hash,
        "at": moment(now_ms),
        "flows": flows,
        "links": [
            link_report(link, known.get(link.name), facts.values(), states or {})
            for link in plan.links
        ],
    }


def _engine(flow: FlowPlan, facts: PairFacts) -> JsonObject:
    chosen = shown_engine(facts.control, flow, now_ms=facts.now_ms)
    return {"engine": chosen.engine, "engineReason": chosen.reason}


def flow_report(pair: PairPlan, flow: FlowPlan, facts: PairFacts) -> JsonObject:
    """One flow of one link."""
    layout = facts.control.layout(pair.source.alias)
    block = layout.block(flow.link) if layout is not None else None
    owned = frozenset(lane for member in facts.members for lane in member.lanes)
    failing = facts.failing(flow.source, flow.link)
    topics = [
        _Topic(
            record,
            tuple(
                partition_status(flow, record, number, facts, owned, failing=failing)
                for number in range(record.partitions)
            ),
        )
        for record in facts.control.topics(flow.source, flow.link)
        if record.state != "gone" and not is_canary_topic(record.topic)
    ]
    partitions = [partition for topic in topics for partition in topic.partitions]
    workers = fresh_workers(facts.control, flow.source, now_ms=facts.now_ms)
    unowned = _unowned(block, owned) if flow.policy.runtime == "workers" else ()
    problems = _problems(flow, facts, topics, workers, unowned)
    state, reason = _state(flow, facts, block, owned, partitions)
    lags = [partition.lag_seconds for partition in partitions if partition.lag_seconds is not None]
    unknown = any(p.lag_records and p.lag_seconds is None for p in partitions)
    rates = [rate for worker in workers for rate in worker.flows if rate.link == flow.link]
    return {
        "flow": flow.id,
        "link": flow.link,
        "source": flow.source,
        "target": flow.target,
        "state": state,
        "reason": reason,
        "lagRecords": _lag_records(facts, block, partitions),
        "lagSeconds": None if unknown and not any(lags) else max(lags, default=0.0),
        "recordsPerSecond": round(sum(rate.records_per_second for rate in rates), 1),
        "bytesPerSecond": round(sum(rate.bytes_per_second for rate in rates), 1),
        "canary": newest_canary(rates, facts.now_ms),
        "lanes": lanes_of_flow(layout, block),
        "workers": workers_of_flow(facts, workers, block),
        "topics": [
            {
                "source": topic.record.topic,
                "target": topic.record.target,
                "partitions": [partition.as_json() for partition in topic.partitions],
            }
            for topic in topics
        ],
        "problems": [problem_json(problem) for problem in problems],
    }


def _state(
    flow: FlowPlan,
    facts: PairFacts,
    block: Block | None,
    owned: frozenset[int],
    partitions: Sequence[PartitionStatus],
) -> tuple[str, str]:
    if facts.target_problem is not None:
        return "failed", f"{flow.target}: {facts.target_problem.detail}"
    if not facts.applied or block is None:
        return "stopped", "not applied yet: no worker has started it, nor has 'replicator apply'"
    if facts.control.paused(flow.id, flow.link, "", -1):
        return "paused", "paused by an operator"
    if facts.source_problem is not None:
        return "failed", f"{flow.source}: {facts.source_problem.detail}"
    nobody = _nobody(flow, facts, block, owned)
    seeding = [partition for partition in partitions if partition.state == "seeding"]
    if seeding:
        return "seeding", _seeding(seeding, len(partitions))
    if nobody:
        return "stopped", nobody
    return _moving(flow, partitions)


def _nobody(flow: FlowPlan, facts: PairFacts, block: Block, owned: frozenset[int]) -> str:
    """Why nothing can move; empty when somebody runs the flow."""
    if flow.policy.runtime == "spark":
        return "" if facts.streams(flow) else "no stream of Spark runs it"
    return "" if owned.intersection(block.lanes) else "no worker runs it"


def _moving(flow: FlowPlan, partitions: Sequence[PartitionStatus]) -> tuple[str, str]:
    if not partitions:
        return "replicating", f"no topic on {flow.source} matches yet"
    count = {
        state: sum(partition.state == state for partition in partitions)
        for state in ("replicating", "failed", "paused", "stopped", "waiting")
    }
    total = len(partitions)
    moving = f"{count['replicating']} of {total} partitions moving"
    others = [
        f"{count[state]} {state}"
        for state in ("failed", "paused", "stopped", "waiting")
        if count[state]
    ]
    reason = ", ".join([moving, *others, *_held(partitions)])
    if count["failed"] == total:
        return "failed", reason
    if count["stopped"] == total:
        return "stopped", reason
    if count["paused"] == total:
        return "paused", reason
    return "replicating", reason


def _held(partitions: Sequence[PartitionStatus]) -> list[str]:
    held = [one.open_transaction for one in partitions if one.open_transaction is not None]
    if not held:
        return []
    records = sum(each.records for each in held)
    oldest = max(held, key=lambda each: each.age_seconds)
    return [f"{records:,} records wait behind an {oldest.text}"]


def _seeding(seeding: Sequence[PartitionStatus], total: int) -> str:
    left = sum(partition.lag_records or 0 for partition in seeding)
    return f"Spark copies history of {len(seeding)} of {total} partitions, {left:,} records behind"


def _unowned(block: Block | None, owned: frozenset[int]) -> tuple[int, ...]:
    if block is None:
        return ()
    return tuple(lane for lane in block.lanes if lane not in owned)


def _problems(
    flow: FlowPlan,
    facts: PairFacts,
    topics: Sequence[_Topic],
    workers: Sequence[WorkerRecord],
    unowned: tuple[int, ...],
) -> tuple[Problem, ...]:
    """What is wrong, the most general first, each once."""
    found: dict[tuple[str, str], Problem] = {}
    for one in (
        *_pair_problems(flow, facts, unowned),
        *(problem for topic in topics for problem in _topic_problems(flow, facts, topic)),
        *_worker_problems(flow, workers),
    ):
        found.setdefault(
            (one.code, one.subject), Problem(one.code, one.subject, one.detail, one.remedy)
        )
    return tuple(found.values())


def _pair_problems(
    flow: FlowPlan, facts: PairFacts, unowned: tuple[int, ...]
) -> Iterator[Problem | ProblemPart]:
    for side in (facts.target_problem, facts.source_problem):
        if side is not None:
            yield side
    if facts.target_problem is None and unowned:
        lanes = ", ".join(str(lane) for lane in unowned[:8])
        yield Problem(
            "WORKER_MISSING", "flow", f"{len(unowned)} lanes have no worker ({lanes})",
            f"Start a worker: replicator run --cluster {flow.target}",
        )  # fmt: skip
    recorded = facts.control.problems(flow.source, flow.link)
    for part in recorded.problems if recorded is not None else ():
        # What the controller once said of the source is outdated when the source answers us.
        if facts.source_problem is not None or not part.subject.startswith("cluster:"):
            yield part


def _topic_problems(
    flow: FlowPlan, facts: PairFacts, topic: _Topic
) -> Iterator[Problem | ProblemPart]:
    yield from topic.record.problems
    for partition in topic.partitions:
        yield from partition.problems
    quarantined = _quarantined(flow, facts, topic.record)
    if quarantined:
        yield Problem(
            "QUARANTINED", topic.record.topic,
            f"{quarantined} records could not be copied and wait in quarantine",
            f"Look at them: replicator quarantine list --flow '{flow.id}'",
        )  # fmt: skip


def _worker_problems(flow: FlowPlan, workers: Sequence[WorkerRecord]) -> Iterator[ProblemPart]:
    for worker in workers:
        # Before those of its lanes' processes: where both have one it is the same, and is told once.
        for part in worker.logins:
            yield part.model_copy(update={"detail": f"worker {worker.id}: {part.detail}"})
        for rate in worker.flows:
            if rate.link == flow.link:
                yield from rate.problems


def _quarantined(flow: FlowPlan, facts: PairFacts, topic: TopicRecord) -> int:
    kept = sum(
        facts.checkpoints[topic.topic, number].quarantined
        for number in range(topic.partitions)
        if (topic.topic, number) in facts.checkpoints
    )
    return max(0, kept - len(facts.control.quarantine_outcomes(flow.source, topic.topic)))


def _lag_records(
    facts: PairFacts, block: Block | None, partitions: Sequence[PartitionStatus]
) -> int | None:
    """Records still to copy; None while that is not known, so that nobody waits for a false 0."""
    if facts.source_problem is not None or facts.target_problem is not None:
        return None
    if not facts.applied or block is None:
        return None
    known = [partition.lag_records for partition in partitions if partition.lag_records is not None]
    return sum(known) if len(known) == len(partitions) else None
