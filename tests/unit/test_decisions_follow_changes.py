"""A decision that was kept is taken again when anything it rests on has changed."""

from dataclasses import replace

import pytest

from replicator.control.reconcile.actions import CreateTopic, WriteRecord
from replicator.control.reconcile.cluster_view import ClusterView, TopicFacts
from replicator.control.reconcile.decide import Reconciler, reconcile
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import TopicSelector
from replicator.control.records.pair_records import TopicRecord
from replicator.control.store.state import EMPTY
from replicator.policy.values import LinkPolicy, Naming, Selection
from replicator.problem import Problem
from replicator.topology.plan import ClusterPlan, FlowPlan, PairPlan

FACTS = TopicFacts("a", 2, 1)


def flow(link, naming, *topics):
    policy = LinkPolicy(Selection(topics), Selection(), naming=Naming(naming))
    return FlowPlan(link, "east", "west", policy, ("west",))


PAIR = PairPlan(
    ClusterPlan("east", ("e:1",)),
    ClusterPlan("west", ("w:1",)),
    (flow("first", "prefix", "orders"), flow("second", "identity", "east.orders", "bills")),
)


def view(*names, after=ClusterView()):  # noqa: B008  a view is frozen
    return after.listed(dict.fromkeys(names, 2)).described(dict.fromkeys(names, FACTS))


class Rounds:
    """A reconciler, and the snapshot that it saw last with its records written."""

    def __init__(self, source, target, **fields):
        self.seen = PairSnapshot(
            at_ms=1, aliases=("east", "west"), source=source, target=target, target_brokers=1,
            **fields,
        )  # fmt: skip
        self.reconciler = Reconciler(TopicSelector(PAIR, self.seen.aliases))
        for _ in range(3):
            if not self.after().actions:
                break

    def after(self, **changes):
        """The decision after these changes; what it asks the control topic for is done."""
        self.seen = replace(self.seen, **changes)
        decision = self.reconciler.decide(self.seen)
        assert decision == reconcile(PAIR, self.seen)
        log = [one.record.encode() for one in decision.actions if isinstance(one, WriteRecord)]
        log.extend(
            one.decision.layout.encode() for one in decision.actions if hasattr(one, "decision")
        )
        self.seen = replace(self.seen, control=self.seen.control.fold(log))
        return decision


def test_a_refused_topic_is_created_once_the_refusal_has_lapsed():
    refusal = {"create:west:bills": Problem("TARGET_REFUSES", "bills", "no", "look")}
    rounds = Rounds(view("bills"), view(), refusals=refusal)
    assert rounds.after().actions == ()
    (create,) = rounds.after(refusals={}).cluster_actions
    assert isinstance(create, CreateTopic)


def test_a_record_that_vanished_is_written_again():
    rounds = Rounds(view("bills"), view("bills"))
    assert rounds.after().actions == ()
    held = rounds.seen.control.topic("east", "second", "bills")
    (write,) = rounds.after(control=rounds.seen.control.fold([held.tombstone()])).actions
    assert write.record.state == "active"


def test_a_topic_is_copied_once_the_other_one_with_its_target_is_gone():
    both = view("east.orders", "orders")
    rounds = Rounds(both, view("east.orders"))
    assert rounds.after().problems["second"] != ()
    alone = rounds.after(source=view("east.orders", after=both))
    assert alone.problems["second"] == ()


@pytest.mark.parametrize("gone", [True, False])
def test_a_topic_is_copied_once_no_other_source_writes_its_target(gone):
    other = TopicRecord(
        source="north", link="other", topic="bills", target="bills", topic_id="x", partitions=2,
        target_partitions=2, max_message_bytes=1, state="active", activated=True, at_ms=1,
    )  # fmt: skip
    control = EMPTY.fold([other.encode()])
    rounds = Rounds(view("bills"), view("bills"), control=control)
    assert rounds.after().problems["second"] != ()
    end = other.tombstone() if gone else other.model_copy(update={"state": "gone"}).encode()
    freed = rounds.after(control=rounds.seen.control.fold([end]))
    assert freed.problems["second"] == ()
