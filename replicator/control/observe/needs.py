"""What the selected topics ask of a round's look at the clusters, worked out only after a change. Pure."""

from dataclasses import dataclass

from replicator.control.reconcile.cluster_view import ClusterView
from replicator.control.reconcile.initial_backfill import may_begin_with_backfill
from replicator.control.reconcile.topic_selection import SelectedTopic, TopicSelection
from replicator.control.store.state import ControlState


@dataclass(frozen=True, slots=True)
class Needs:
    """What to look at.

    Attributes:
        sources: selected topics at the source.
        targets: their target topics, those that exist.
        new: those that are not copied yet, or whose target topic is missing.
        in_bulk: those whose history may be copied by Spark first.
        unrecorded: whether the control topic has no record of one of them.
    """

    sources: frozenset[str]
    targets: frozenset[str]
    new: tuple[SelectedTopic, ...]
    in_bulk: tuple[SelectedTopic, ...]
    unrecorded: bool


def needs_of(selection: TopicSelection, control: ControlState, target: ClusterView) -> Needs:
    """What a selection needs, by what is on record and which target topics exist."""
    new: list[SelectedTopic] = []
    unrecorded = False
    for one in selection.topics:
        record = control.topic(one.flow.source, one.flow.link, one.topic)
        unrecorded = unrecorded or record is None
        if record is None or record.state != "active" or one.target not in target.sizes:
            new.append(one)
    return Needs(
        sources=frozenset(selection.places),
        targets=frozenset(selection.targets.keys() & target.sizes.keys()),
        new=tuple(new),
        # A topic that is active on record was activated before.
        in_bulk=tuple(one for one in new if may_begin_with_backfill(one, control)),
        unrecorded=unrecorded,
    )
