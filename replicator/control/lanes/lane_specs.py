"""What the lanes of one worker should do, computed again only when something it rests on changed."""

from collections.abc import Set as AbstractSet

from replicator.control.lanes.desired import lane_specs
from replicator.control.store.state import ControlState
from replicator.dataplane.transport.spec import LaneSpec
from replicator.topology.plan import PairPlan, Plan

_Basis = tuple[Plan, PairPlan, ControlState, frozenset[int]]


class LaneSpecs:
    """Remembers the last answer; for one thread."""

    def __init__(self) -> None:
        self._basis: _Basis | None = None
        self._orders: dict[int, LaneSpec] = {}

    def of(
        self, plan: Plan, pair: PairPlan, control: ControlState, lanes: AbstractSet[int]
    ) -> dict[int, LaneSpec]:
        """The spec of each of the lanes, by number; see ``desired.lane_specs``."""
        basis = (plan, pair, control, frozenset(lanes))
        if self._basis is None or not _same_orders(basis, self._basis):
            self._orders = lane_specs(plan=plan, pair=pair, control=control, lanes=lanes)
        self._basis = basis
        return self._orders


def _same_orders(new: _Basis, old: _Basis) -> bool:
    plan, pair, control, lanes = new
    return plan is old[0] and pair is old[1] and lanes == old[3] and control.same_orders(old[2])
