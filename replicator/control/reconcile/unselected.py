"""What becomes of records that no selected topic stands behind any more. Pure."""

from dataclasses import dataclass

from replicator.control.reconcile.actions import Action, DeleteTopic, EraseRecord, WriteRecord
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import TopicSelection
from replicator.control.store.records import ProblemRecord, Share, TopicRecord
from replicator.control.store.state import ControlState
from replicator.problem import Problem
from replicator.topology.plan import PairPlan

DELETION_GRACE_SECONDS = 30.0
"""How long a source topic must be gone before a deletion is carried over. Metadata of a broker that
just started may lack topics for a moment, and a deletion cannot be undone."""


@dataclass(frozen=True, slots=True)
class Unselected:
    """Records of a pair without a selected topic.

    Attributes:
        topics: of topics that are gone, or that no flow takes under that link any more.
        moved: of topics that another link takes now; their checkpoints move with them.
        links: what is on record about links that are no longer in the file.
    """

    topics: tuple[TopicRecord, ...]
    moved: tuple[TopicRecord, ...]
    links: tuple[ProblemRecord | Share, ...]


def unselected(pair: PairPlan, selection: TopicSelection, control: ControlState) -> Unselected:
    """Finds the records that no selected topic stands behind. Records of resting flows stay."""
    source = pair.source.alias
    resting = {str(flow.link) for flow in pair.standby}
    known = resting | {str(flow.link) for flow in pair.flows}
    topics: list[TopicRecord] = []
    moved: list[TopicRecord] = []
    for record in control.topics(source):
        one = selection.get(record.topic)
        if (one is not None and one.flow.link == record.link) or record.link in resting:
            continue
        (moved if one is not None and record.activated else topics).append(record)
    links = tuple(other for other in control.kept_of_links(source) if other.link not in known)
    return Unselected(tuple(topics), tuple(moved), links)


def end_unselected(
    pair: PairPlan,
    left: Unselected,
    snapshot: PairSnapshot,
    problems: dict[str, list[Problem]],
) -> list[Action]:
    """The ends of these records; what brokers refuse is added to ``problems`` of the link."""
    source, target = pair.source.alias, pair.target.alias
    propagates = {
        str(flow.link): flow.policy.sync_topics.deletions == "propagate" for flow in pair.flows
    }
    actions: list[Action] = []
    for record in left.topics:
        gone = record.topic not in snapshot.source.sizes
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
        for other in left.links
    )
    return actions


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
        other.identity != record.identity and other.state == "active"
        for other in snapshot.control.topics_into(record.target)
    )
    if record.target not in snapshot.target.sizes or shared:
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
