"""A decision that asked for nothing holds until something it rests on changes.

Most rounds of most pairs see what the round before saw; to decide again over hundreds of topics is
what an idle worker would spend most of its time with.
"""

from dataclasses import replace

from replicator.control.reconcile import Decision, reconcile
from replicator.control.snapshot import PairSnapshot
from replicator.topology.plan import PairPlan


class Settled:
    """Remembers the last decision of one pair; for one thread."""

    def __init__(self) -> None:
        self._snapshot: PairSnapshot | None = None
        self._decision: Decision | None = None

    def decide(self, pair: PairPlan, snapshot: PairSnapshot) -> Decision:
        """What ``reconcile`` says."""
        if (
            self._decision is not None
            and self._snapshot is not None
            and _same(pair, snapshot, self._snapshot)
        ):
            return self._decision
        decision = reconcile(pair, snapshot)
        lasting = not decision.actions and not _waits(pair, snapshot)
        self._snapshot = snapshot if lasting else None
        self._decision = decision
        return decision


def _waits(pair: PairPlan, snapshot: PairSnapshot) -> bool:
    """Whether time alone may change the decision: deletions are carried over after a while."""
    records = snapshot.control.topics(pair.source.alias)
    return any(record.state == "gone" for record in records)


def _same(pair: PairPlan, new: PairSnapshot, old: PairSnapshot) -> bool:
    source = pair.source.alias
    return (
        replace(new, at_ms=old.at_ms, control=old.control) == old
        and new.control.asks_the_same(old.control)
        and all(
            new.control.problems(source, flow.link) == old.control.problems(source, flow.link)
            for flow in pair.flows
        )
    )
