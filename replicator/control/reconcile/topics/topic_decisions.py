"""The decisions about all selected topics, each taken again only where something it rests on changed.

Invariant: the decisions are those that ``decide_topic`` takes for every topic of the snapshot.

A decision that asks for nothing and found no problem rests on its own topic alone: the selected
topic, its record, and the facts of source and target. Any other one is **open**: it may also rest on
what brokers refused, on topics that were just created and on records of other topics, and is taken
again whenever one of these changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import SelectedTopic, TopicSelection
from replicator.control.reconcile.topics.topic_decision import TopicDecision, decide_topic
from replicator.control.records.pair_records import TopicRecord


@dataclass(frozen=True, slots=True)
class _Kept:
    one: SelectedTopic
    held: TopicRecord | None
    decision: TopicDecision

    @property
    def pending(self) -> bool:
        """Whether there is something to do."""
        record = self.decision.record
        return bool(self.decision.actions) or (record is not None and record != self.held)


class TopicDecisions:
    """Decisions about the topics of one pair, from one snapshot to the next; for one thread."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._open: set[str] = set()
        self._warned: set[str] = set()
        self._pending = False
        self._seen: tuple[TopicSelection, PairSnapshot] | None = None

    def update(self, selection: TopicSelection, snapshot: PairSnapshot) -> None:
        """Takes the decisions again that a new snapshot may have changed."""
        for topic in self._stale(selection, snapshot):
            self._open.discard(topic)
            self._warned.discard(topic)
            one, facts = selection.get(topic), snapshot.source.topics.get(topic)
            if one is None or facts is None:
                # No longer selected, or not described yet: what is on record stays as it is.
                self._kept.pop(topic, None)
            else:
                self._take(one, decide_topic(one, facts, snapshot), snapshot)
        self._pending = any(self._kept[topic].pending for topic in self._open)
        self._seen = selection, snapshot

    def notable(self) -> Iterator[tuple[SelectedTopic, TopicRecord | None, TopicDecision]]:
        """Decisions that ask for something or found something, with the record on hand, in order."""
        if self._seen is None:
            return
        places = self._seen[0].places
        for topic in sorted(self._open | self._warned, key=places.__getitem__):
            kept = self._kept[topic]
            yield kept.one, kept.held, kept.decision

    def _take(self, one: SelectedTopic, decision: TopicDecision, snapshot: PairSnapshot) -> None:
        held = _record_of(one, snapshot)
        if decision.record is not None and decision.record == held:
            decision = replace(decision, record=held)  # one object less to keep
        kept = self._kept[one.topic] = _Kept(one, held, decision)
        if (
            kept.pending
            or decision.problems
            or decision.record is None
            or snapshot.target.topics.get(one.target) is None
        ):
            self._open.add(one.topic)
        if decision.warnings:
            self._warned.add(one.topic)

    def _stale(self, selection: TopicSelection, snapshot: PairSnapshot) -> set[str]:
        """Topics whose decision may be another one than that which is kept."""
        if self._seen is None:
            return set(selection.places)
        selected, seen = self._seen
        at_source = snapshot.source.changed_since(seen.source.version)
        at_target = snapshot.target.changed_since(seen.target.version)
        if at_source is None or at_target is None:
            return {*selection.places, *self._kept}
        stale = {name for name in at_source if name in selection.places or name in self._kept}
        for name in at_target:
            stale.update(selection.targets.get(name, ()))
        if selection is not selected:
            stale |= self._kept.keys() - selection.places.keys()
            stale.update(one.topic for one in selection.topics if not self._holds(one))
        same_records = snapshot.control.same_orders(seen.control)
        if not same_records:
            stale.update(
                topic
                for topic, kept in self._kept.items()
                if not _same(kept.held, _record_of(kept.one, snapshot))
            )
        if self._pending or not same_records or _surroundings(snapshot) != _surroundings(seen):
            stale |= self._open
        return stale

    def _holds(self, one: SelectedTopic) -> bool:
        """Whether the decision about a topic was taken for the same selection of it."""
        kept = self._kept.get(one.topic)
        return kept is not None and kept.one == one


def _record_of(one: SelectedTopic, snapshot: PairSnapshot) -> TopicRecord | None:
    return snapshot.control.topic(one.flow.source, one.flow.link, one.topic)


def _same(held: TopicRecord | None, now: TopicRecord | None) -> bool:
    return held is now or held == now


def _surroundings(snapshot: PairSnapshot) -> tuple[object, ...]:
    """What open decisions rest on beside their topics and the records."""
    return snapshot.refusals, snapshot.just_created, snapshot.target_brokers, snapshot.aliases
