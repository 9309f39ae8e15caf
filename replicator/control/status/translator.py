"""A translator of positions that knows what was put back from quarantine; for commands and the API."""

from collections.abc import Callable, Mapping

from replicator.control.store.read import read_control
from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import NotFoundError
from replicator.offsets.lines import ReplicatedPartition
from replicator.offsets.translator import Translator
from replicator.topology.plan import Plan

CLIENT_ID = "replicator-offsets"


def open_translator(
    plan: Plan, *, followed: Mapping[str, ControlState] | None = None
) -> Translator:
    """A translator for one command; control topics in ``followed`` (by cluster) are not read again."""
    return Translator(plan, client_id=CLIENT_ID, replayed=_replayed(plan, dict(followed or {})))


def _replayed(
    plan: Plan, states: dict[str, ControlState]
) -> Callable[[ReplicatedPartition], frozenset[int]]:
    """Source offsets that were put back from quarantine, from the control topic of the target."""

    def of(line: ReplicatedPartition) -> frozenset[int]:
        alias = line.target.alias
        if alias not in states:
            try:
                states[alias] = read_control(plan.topology, line.target, client_id=CLIENT_ID)
            except NotFoundError:
                states[alias] = EMPTY  # never applied
        return frozenset(
            record.offset
            for record in states[alias].quarantine_outcomes(line.source.alias, line.topic)
            if record.outcome == "replayed" and record.partition == line.partition
        )

    return of
