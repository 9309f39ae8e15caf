"""From a frozen snapshot to actions: the pure decision about a whole pair.

Actions come in the order in which they are safe: first the target's topics (growth before lanes
get the new partitions), then the end of what is no longer wanted, then lanes, then what lanes work
on. Reconciling again after they were done gives no actions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.control.lanes.layout import LayoutDecision, decide_layout
from replicator.control.reconcile.actions import (
    Action,
    ArrangeLanes,
    ClusterAction,
    DeleteTopic,
    EraseRecord,
    WriteRecord,
)
from replicator.control.reconcile.initial_backfill import (
    initial_backfill_records,
    may_begin_with_backfill,
)
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_decision import decide_topic
from replicator.control.reconcile.topic_selection import SelectedTopic, selected_topics
from replicator.control.store.base import Record
from replicator.control.store.records import ProblemRecord, Share, TopicRecord, problem_part
from replicator.identifiers import is_canary_topic
from replicator.problem import Problem
from replicator.topology.plan import PairPlan

DELETION_GRACE_SECONDS = 30.0
"""How long a source topic must be gone before a deletion is carried over. Metadata of a broker that
just started may lack topics for a moment, and a deletion cannot be taken back."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about a pair now, and what is wrong with each of its links."""

    actions: tuple[Action, ...]
    layout: LayoutDecision
    problems: Mapping[str, tuple[Problem, ...]]
    warnings: tuple[Problem, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """One line per action, for logs and people."""
        return tuple(action.reason for action in self.actions)

    @property
    def cluster_actions(self) -> tuple[ClusterAction, ...]:
        """Those that change topics of the target."""
        return tuple(action for action in self.actions if isinstance(action, ClusterAction))


def reconcile(pair: PairPlan, snapshot: PairSnapshot) -> Decision:
    """Decides what brings the target and the control topic to what the pair wants."""
    wanted = selected_topics(pair, snapshot.source_names, snapshot.aliases)
    cluster: list[Action] = []
    writes: list[Action] = []
    warnings: list[Problem] = []
    problems: dict[str, list[Problem]] = {flow.link: [] for flow in pair.flows}
    for one in wanted:
        facts = snapshot.source_topics.get(one.topic)
        if facts is None:
            continue  # its description is not there yet; its record stays as it is
        decision = decide_topic(one, facts, snapshot)
        cluster.extend(decision.actions)
        warnings.extend(decision.warnings)
        problems[one.flow.link].extend(decision.problems)
        held = snapshot.control.topic(one.flow.source, one.flow.link, one.topic)
        if decision.record is not None and decision.record != held:
            shown = held is None or held.state != decision.record.state
            writes.append(
                WriteRecord(
                    pair.target.alias, decision.record, decision.reason,
                    kind="replicate" if shown and decision.record.state == "active" else "",
                    subject=one.topic,
                )
            )  # fmt: skip
            if decision.record.state == "active" and may_begin_with_backfill(one, snapshot.control):
                writes.extend(_in_bulk(one, decision.record, snapshot))
    for problem in snapshot.warnings_noticed:
        # A duty that knows the link says so in the subject; else it is said once for the pair.
        link = problem.subject if problem.subject in problems else pair.flows[0].link
        problems[link].append(problem)
    ended, moved = _no_longer_wanted(pair, snapshot, wanted, problems)
    lanes, layout = _lanes(pair, snapshot, wanted, moved)
    if layout.change == "fenced" and _spark_is_copying(pair, snapshot):
        lanes, layout, writes = _wait_for_spark(layout, snapshot, writes, moved)
    reports = [
        report
        for flow in pair.flows
        if (report := _report(pair, flow.link, problems[flow.link], snapshot)) is not None
    ]
    return Decision(
        actions=(*cluster, *ended, *lanes, *writes, *reports),
        layout=layout,
        problems={link: tuple(found) for link, found in problems.items()},
        warnings=tuple(warnings),
    )


def _no_longer_wanted(
    pair: PairPlan,
    snapshot: PairSnapshot,
    wanted: tuple[SelectedTopic, ...],
    problems: dict[str, list[Problem]],
) -> tuple[list[Action], tuple[TopicRecord, ...]]:
    """Ends of records, and those records that move to another link together with checkpoints."""
    source, target = pair.source.alias, pair.target.alias
    links = {one.topic: one.flow.link for one in wanted}
    propagates = {
        str(flow.link): flow.policy.sync_topics.deletions == "propagate" for flow in pair.flows
    }
    resting = {str(flow.link) for flow in pair.standby}
    actions: list[Action] = []
    moved: list[TopicRecord] = []
    for record in snapshot.control.topics(source):
        if links.get(record.topic) == record.link or record.link in resting:
            continue
        if record.topic in links and record.activated:
            moved.append(record)
            continue
        gone = record.topic not in snapshot.source_names
        if gone and record.activated and record.link in propagates:
            actions.extend(_gone(record, target, snapshot, propagates[record.link], problems))
            continue
        reason = (
            f"'{record.topic}' is gone on {source}"
            if gone
            else f"'{record.topic}' is no longer taken by link {record.link}"
        )
        actions.append(EraseRecord(target, record, reason, record.topic))
    actions.extend(
        EraseRecord(target, other, f"link {other.link} was removed", other.link)
        for other in snapshot.control.records.values()
        if isinstance(other, ProblemRecord | Share)
        and other.source == source
        and other.link not in propagates
        and other.link not in resting
    )
    return actions, tuple(moved)


def _gone(
    record: TopicRecord,
    target: str,
    snapshot: PairSnapshot,
    propagate: bool,
    problems: dict[str, list[Problem]],
) -> list[Action]:
    if record.state != "gone":
        gone = record.model_copy(update={"state": "gone", "at_ms": snapshot.at_ms, "problems": ()})
        reason = f"'{record.topic}' is gone on {record.source}"
        return [WriteRecord(target, gone, reason, "source-gone", record.topic)]
    age_seconds = (snapshot.at_ms - record.at_ms) / 1000
    if not propagate or age_seconds < DELETION_GRACE_SECONDS:
        return []
    shared = any(
        other.target == record.target and other.identity != record.identity
        for other in snapshot.control.topics()
        if other.state == "active"
    )
    if record.target not in snapshot.target_names or shared:
        reason = f"'{record.topic}' is gone on {record.source}, and so is its copy"
        return [EraseRecord(target, record, reason, record.topic)]
    delete = DeleteTopic(
        target, record.target, record.topic,
        f"'{record.topic}' is gone on {record.source} and deletions propagate",
    )  # fmt: skip
    if delete.identity in snapshot.refusals:
        problems[record.link].append(snapshot.refusals[delete.identity])
        return []
    return [delete]


def _lanes(
    pair: PairPlan,
    snapshot: PairSnapshot,
    wanted: tuple[SelectedTopic, ...],
    moved: tuple[TopicRecord, ...],
) -> tuple[list[Action], LayoutDecision]:
    current = snapshot.control.layout(pair.source.alias)
    partitions = {str(flow.link): 0 for flow in pair.flows}
    for one in wanted:
        if is_canary_topic(one.topic):
            continue  # it lives in the lanes that its link's topics need
        facts = snapshot.source_topics.get(one.topic)
        partitions[one.flow.link] += facts.partitions if facts is not None else 0
    decision = decide_layout(
        pair, current,
        partitions=partitions,
        moved_topics=snapshot.misplaced | {record.topic for record in moved},
        checkpoints_exist=snapshot.checkpoints_exist,
    )  # fmt: skip
    if decision.change == "none":
        return [], decision
    erased: tuple[Record, ...] = moved
    action = ArrangeLanes(
        cluster=pair.target.alias,
        source=pair.source.alias,
        decision=decision,
        links=tuple((one.topic, one.flow.link) for one in wanted),
        erased=erased,
        from_lanes=current.total if current is not None else None,
        reason=decision.reason,
    )
    return [action], decision


def _in_bulk(one: SelectedTopic, record: TopicRecord, snapshot: PairSnapshot) -> list[WriteRecord]:
    """Seeds go with the record that activates the topic: no lane is told of it before."""
    seeds = initial_backfill_records(one, record, snapshot.histories, at_ms=snapshot.at_ms)
    reason = f"history of '{one.topic}' is copied by Spark first"
    return [
        WriteRecord(
            one.flow.target, seed, reason, kind="" if at else "bulk-sync", subject=one.topic
        )
        for at, seed in enumerate(seeds)
    ]


def _spark_is_copying(pair: PairPlan, snapshot: PairSnapshot) -> bool:
    """Its tasks write checkpoints into the lanes' partitions, so those must stay where they are.

    A change that has begun is finished: nothing was taken from lanes while they were changing.
    """
    current = snapshot.control.layout(pair.source.alias)
    seeds = snapshot.control.seeds(pair.source.alias)
    begun = current is not None and current.state == "changing"
    return not begun and any(seed.state != "done" for seed in seeds)


def _wait_for_spark(
    layout: LayoutDecision,
    snapshot: PairSnapshot,
    writes: list[Action],
    moved: tuple[TopicRecord, ...],
) -> tuple[list[Action], LayoutDecision, list[Action]]:
    """No change of lanes, and so no topic under a link whose lanes cannot find its checkpoints."""
    current = snapshot.control.layout(layout.layout.source) or layout.layout
    stay = snapshot.misplaced | {record.topic for record in moved}
    kept = [
        write
        for write in writes
        if not (
            isinstance(write, WriteRecord)
            and isinstance(write.record, TopicRecord)
            and write.record.topic in stay
        )
    ]
    reason = f"waits for Spark: {layout.reason}"
    return [], LayoutDecision(current, "none", reason), kept


def _report(
    pair: PairPlan, link: str, problems: list[Problem], snapshot: PairSnapshot
) -> WriteRecord | None:
    parts = tuple(problem_part(problem) for problem in problems)
    held = snapshot.control.problems(pair.source.alias, link)
    if (held.problems if held is not None else ()) == parts:
        return None
    record = ProblemRecord(
        source=pair.source.alias, link=link, problems=parts, at_ms=snapshot.at_ms
    )
    reason = f"link {link} has {len(parts)} problems" if parts else f"link {link} has no problems"
    return WriteRecord(pair.target.alias, record, reason)
