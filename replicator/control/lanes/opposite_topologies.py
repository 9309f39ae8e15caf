"""Other topologies that copy to a pair's source from where the pair leads. Pure.

Two files, one for each direction, are as much a cycle as one file with both. A lane of either cannot tell that by its
own file, so who sees their topics writes it down, and lanes look from then on for what came back.
"""

from collections.abc import Iterable

from replicator.control.records.pair_records import OppositeTopologies
from replicator.control.store.state import ControlState
from replicator.identifiers import topologies_from
from replicator.topology.plan import PairPlan


def opposite_to_record(
    pair: PairPlan, topics: Iterable[str], control: ControlState, *, at_ms: int
) -> OppositeTopologies | None:
    """The record to be written now; None where it names all of them already.

    One that was seen once stays: that its topics are not listed any more is no proof that its copies are gone.

    Args:
        pair: its flows say from where copies must not go back.
        topics: all topics of the source.
        control: of the pair's target.
        at_ms: milliseconds since the epoch.
    """
    blocked = {alias for flow in pair.flows for alias in flow.blocked}
    found = topologies_from(blocked, topics) - {pair.topology}
    held = control.opposite_topologies(pair.source.alias)
    if found <= set(held):
        return None
    names = tuple(sorted(found.union(held)))
    return OppositeTopologies(source=pair.source.alias, topologies=names, at_ms=at_ms)
