"""Other topologies that copy to a pair's source from where the pair leads. Pure.

Two files, one for each direction, are as much a cycle as one file with both. A lane of either cannot tell that by its
own file, so who sees their topics writes it down, and lanes look from then on for what came back. Until the other
one has seen ours, `auto` marks each copy with a header, which both tell without looking.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from replicator.control.records.pair_records import OppositeTopologies
from replicator.control.store.state import ControlState
from replicator.identifiers import topologies_from
from replicator.topology.plan import PairPlan


def opposite_to_record(
    pair: PairPlan,
    topics: Iterable[str],
    control: ControlState,
    *,
    at_ms: int,
    aware: AbstractSet[str] = frozenset(),
) -> OppositeTopologies | None:
    """The record to be written now; None where it says all of that already.

    One that was seen once stays: that its topics are not listed any more is no proof that its copies are gone.

    Args:
        pair: its flows say from where copies must not go back.
        topics: all topics of the source.
        control: of the pair's target.
        at_ms: milliseconds since the epoch.
        aware: topologies of which it is known now that their workers look for our copies.
    """
    source = pair.source.alias
    topics = tuple(topics)
    blocked = {alias for flow in pair.flows for alias in flow.blocked}
    found = topologies_from(blocked, topics) - {pair.topology}
    held, held_unaware = control.opposite_topologies(source), control.unaware_topologies(source)
    # Others, which come here from further on, look for copies of topologies that stand where they copy from.
    new = topologies_from({pair.target.alias}, topics) - {pair.topology, *held}
    unaware = new.union(held_unaware) - aware
    if found <= set(held) and unaware == set(held_unaware):
        return None
    names = tuple(sorted(found.union(held)))
    return OppositeTopologies(
        source=source, topologies=names, unaware=tuple(sorted(unaware)), at_ms=at_ms
    )
