"""From a frozen snapshot to actions: the pure decision about a whole pair.

Actions come in the order in which they are safe: first the target's topics (growth before lanes
get the new partitions), then the end of what is no longer wanted, then lanes, then what lanes work
on. Reconciling again after they were done gives no actions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from replicator.control.lanes.layout import LayoutDecision
from replicator.control.reconcile.actions import Action, ClusterAction, WriteRecord
from replicator.control.reconcile.initial_backfill import (
    initial_backfill_records,
    may_begin_with_backfill,
)
from replicator.control.reconcile.lane_decision import (
    decide_lanes,
    partitions_by_link,
    spark_is_copying,
    wait_for_spark,
)
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import (
    SelectedTopic,
    TopicSelection,
    TopicSelector,
)
from replicator.control.reconcile.topics.topic_decision import TopicDecision
from replicator.control.reconcile.topics.topic_decisions import TopicDecisions
from replicator.control.reconcile.topics.unselected import Unselected, end_unselected, unselected
from replicator.control.records.pair_records import ProblemRecord, TopicRecord
from replicator.control.records.problem_part import problem_part
from replicator.control.store.state import ControlState
from replicator.problem import Problem
from replicator.topology.plan import PairPlan


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
    return Reconciler(TopicSelector(pair, snapshot.aliases)).decide(snapshot)


class Reconciler:
    """Decides about one pair again and again, going through what has changed; for one thread.

    Snapshots are given in the order in which they were taken.
    """

    def __init__(self, selector: TopicSelector) -> None:
        """``selector`` selects the topics of the pair; the observer may share it."""
        self._pair = selector.pair
        self._selector = selector
        self._topics = TopicDecisions()
        self._left = Unselected("", (), (), ())
        self._partitions: dict[str, int] = {}
        self._basis: tuple[TopicSelection, ControlState, int] | None = None

    def decide(self, snapshot: PairSnapshot) -> Decision:
        """What ``reconcile`` says."""
        pair = self._pair
        selection = self._selector.select(snapshot.source)
        self._topics.update(selection, snapshot)
        self._sum_up(selection, snapshot)
        cluster: list[Action] = []
        writes: list[Action] = []
        warnings: list[Problem] = []
        problems: dict[str, list[Problem]] = {flow.link: [] for flow in pair.flows}
        for one, held, decision in self._topics.notable():
            cluster.extend(decision.actions)
            warnings.extend(decision.warnings)
            problems[one.flow.link].extend(decision.problems)
            writes.extend(_writes(one, held, decision, snapshot))
        for problem in snapshot.task_problems:
            # A task that knows the link names it as the subject; else it is said once for the pair.
            link = problem.subject if problem.subject in problems else pair.flows[0].link
            problems[link].append(problem)
        ended = end_unselected(pair, self._left, snapshot, problems)
        moved = self._left.moved
        lanes, layout = decide_lanes(pair, snapshot, selection, moved, partitions=self._partitions)
        if layout.change == "fenced" and spark_is_copying(pair, snapshot):
            lanes, layout, writes = wait_for_spark(layout, snapshot, writes, moved)
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

    def _sum_up(self, selection: TopicSelection, snapshot: PairSnapshot) -> None:
        """What is found by going through all topics, after a change of records or of the source."""
        before, version = self._basis, snapshot.source.version
        same = before is not None and selection is before[0]
        if before is None or not same or not snapshot.control.same_orders(before[1]):
            self._left = unselected(self._pair, selection, snapshot.control)
        if before is None or not same or version != before[2]:
            self._partitions = partitions_by_link(self._pair, selection, snapshot.source)
        self._basis = selection, snapshot.control, version


def _writes(
    one: SelectedTopic, held: TopicRecord | None, decision: TopicDecision, snapshot: PairSnapshot
) -> Iterator[WriteRecord]:
    """The record of a topic where it is another one, and with the first active one its backfill."""
    record = decision.record
    if record is None or record == held:
        return
    shown = record.state == "active" and (held is None or held.state != record.state)
    yield WriteRecord(
        one.flow.target, record, decision.reason,
        kind="replicate" if shown else "", subject=one.topic,
    )  # fmt: skip
    if record.state == "active" and may_begin_with_backfill(one, snapshot.control):
        # In the transaction that activates the topic: no lane begins before.
        reason = f"history of '{one.topic}' is copied by Spark first"
        seeds = initial_backfill_records(one, record, snapshot.histories, at_ms=snapshot.at_ms)
        for at, seed in enumerate(seeds):
            yield WriteRecord(
                one.flow.target, seed, reason, kind="" if at else "bulk-sync", subject=one.topic
            )


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
