"""A decision that asked for nothing holds until something it rests on changes.

Most rounds of most pairs see what the round before saw; to decide again over hundreds of topics is
what an idle worker would spend most of its time with.
"""

from dataclasses import replace

from replicator.control.reconcile.decide import Decision, reconcile
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.topology.plan import PairPlan


class DecisionCache:
    """Remembers decisions of one pair that asked for nothing; for one thread.

    The last two: rounds that read all settings see more than those between them.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[PairSnapshot, Decision]] = []

    def decide(self, pair: PairPlan, snapshot: PairSnapshot) -> Decision:
        """What ``reconcile`` says."""
        for seen, decision in self._kept:
            if _same(pair, snapshot, seen):
                return decision
        decision = reconcile(pair, snapshot)
        if decision.actions:
            self._kept.clear()
        elif not _waits(pair, snapshot):
            self._kept = [(snapshot, decision), *self._kept][:2]
        return decision


def _waits(pair: PairPlan, snapshot: PairSnapshot) -> bool:
    """Whether time alone may change the decision: deletions are carried over after a while."""
    records = snapshot.control.topics(pair.source.alias)
    return any(record.state == "gone" for record in records)


def _same(pair: PairPlan, new: PairSnapshot, old: PairSnapshot) -> bool:
    source = pair.source.alias
    return (
        replace(new, at_ms=old.at_ms, control=old.control) == old
        and new.control.same_orders(old.control)
        and all(
            new.control.problems(source, flow.link) == old.control.problems(source, flow.link)
            for flow in pair.flows
        )
    )
