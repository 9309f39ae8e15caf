"""What becomes of records that no selected topic stands behind any more. Pure."""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass

from replicator.control.reconcile.actions import Action, DeleteTopic, EraseRecord, WriteRecord
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import TopicSelection
from replicator.control.records.pair_records import ProblemRecord, Share, TopicRecord
from replicator.control.store.state import ControlState
from replicator.problem import Problem
from replicator.topology.plan import PairPlan

DELETION_GRACE_SECONDS = 60.0
"""How long a source topic must be gone before a deletion is carried over, and the source is asked for it by
name once more. Metadata of a broker that just started may lack topics for a moment, and a deletion
cannot be undone."""

MASS_DELETION = 3
"""From so many topics on, more than half of a link's gone together are taken for an accident: a cluster that
was restored empty, or rights that were lost, look the same."""

_NOT_ASKED = Problem("", "", "", "")


@dataclass(frozen=True, slots=True)
class Unselected:
    """Records of a pair without a selected topic.

    Attributes:
        source: alias of the pair's source.
        topics: of topics that are gone, or that no flow takes under that link any more.
        moved: of topics that another link takes now; their checkpoints move with them.
        links: what is on record about links that are no longer in the file.
    """

    source: str
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
    return Unselected(str(source), tuple(topics), tuple(moved), links)


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
    refused = _mass_deletions(left, snapshot, propagates, target, problems)
    for record in left.topics:
        gone = record.topic not in snapshot.source.sizes
        if gone and record.activated and record.link in propagates:
            propagate = propagates[record.link] and record.link not in refused
            actions.extend(_gone(record, target, snapshot, propagate, problems))
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


def asked_by_name(
    pair: PairPlan, control: ControlState, listed: Container[str], *, at_ms: int
) -> list[str]:
    """Topics on record that the source does not list, and of which a decision waits for its word."""
    propagates = {
        str(flow.link): flow.policy.sync_topics.deletions == "propagate" for flow in pair.flows
    }
    return [
        record.topic
        for record in control.topics(pair.source.alias)
        if record.topic not in listed
        and record.activated
        and record.link in propagates
        and (record.state != "gone" or (propagates[record.link] and _grace_is_over(record, at_ms)))
    ]


def _grace_is_over(record: TopicRecord, at_ms: int) -> bool:
    return (at_ms - record.at_ms) / 1000 >= DELETION_GRACE_SECONDS


def _mass_deletions(
    left: Unselected,
    snapshot: PairSnapshot,
    propagates: Mapping[str, bool],
    target: str,
    problems: dict[str, list[Problem]],
) -> frozenset[str]:
    """The links of which too much is gone at once; each gets a problem."""
    gone = Counter(
        record.link
        for record in left.topics
        if record.state == "gone"
        and propagates.get(record.link)
        and record.topic not in snapshot.source.sizes
        and record.target in snapshot.target.sizes
    )
    refused: set[str] = set()
    for link, count in gone.items():
        if count < MASS_DELETION:
            continue
        total = sum(record.link == link for record in snapshot.control.topics(left.source))
        if count * 2 > total:
            refused.add(link)
            problems[link].append(
                Problem(
                    "DELETIONS_REFUSED", "flow",
                    f"{count} of {total} topics are gone on {left.source} at once; their copies on "
                    f"{target} are kept",
                    "Find out what happened to them. If they were deleted on purpose, delete the copies "
                    "yourself: kafka-topics.sh --delete --topic NAME.",
                )
            )  # fmt: skip
    return frozenset(refused)


def _gone(
    record: TopicRecord,
    target: str,
    snapshot: PairSnapshot,
    propagate: bool,
    problems: dict[str, list[Problem]],
) -> list[Action]:
    if record.state != "gone":
        # A listing that lacks a topic says nothing: rights may hide it, or a broker lag behind.
        if record.topic not in snapshot.absences:
            return []
        hidden = snapshot.absences[record.topic]
        if hidden is not None:
            problems[record.link].append(hidden)
            return []
        gone = record.model_copy(update={"state": "gone", "at_ms": snapshot.at_ms, "problems": ()})
        reason = f"'{record.topic}' is gone on {record.source}"
        return [WriteRecord(target, gone, reason, "source-gone", record.topic)]
    if not propagate or not _grace_is_over(record, snapshot.at_ms):
        return []
    if snapshot.absences.get(record.topic, _NOT_ASKED) is not None:
        return []  # it takes a second answer by name, a minute after the first
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
