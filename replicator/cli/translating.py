"""What the commands about positions share: a translator that knows what was put back from quarantine."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from replicator.control.control_state import ControlState
    from replicator.offsets.lines import Line
    from replicator.offsets.translator import Translator
    from replicator.topology.plan import Plan

CLIENT_ID = "replicator-offsets"


def open_translator(plan: "Plan") -> "Translator":
    """A translator for one command."""
    from replicator.offsets.translator import Translator

    return Translator(plan, client_id=CLIENT_ID, replayed=_replayed(plan))


def _replayed(plan: "Plan") -> "Callable[[Line], frozenset[int]]":
    """Source offsets that were put back from quarantine, from the control topic of the target."""
    from replicator.control.bootstrap import read_control
    from replicator.control.control_state import EMPTY
    from replicator.control.records import QuarantineOutcome
    from replicator.errors import NotFoundError

    states: dict[str, ControlState] = {}

    def of(line: "Line") -> frozenset[int]:
        alias = line.target.alias
        if alias not in states:
            try:
                states[alias] = read_control(plan.topology, line.target, client_id=CLIENT_ID)
            except NotFoundError:
                states[alias] = EMPTY  # never applied
        return frozenset(
            record.offset
            for record in states[alias].records.values()
            if isinstance(record, QuarantineOutcome)
            and record.outcome == "replayed"
            and (record.source, record.topic, record.partition)
            == (line.source.alias, line.topic, line.partition)
        )

    return of
