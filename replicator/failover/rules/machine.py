"""The order of a role change, and when each step may be taken. Pure.

The journal says what was done, the clusters say what holds now; both are frozen. A fact that could
not be read is None, and no step that could lose a record is taken on an unknown fact.

Invariants, each broken on purpose in a test:

1. The new cluster is promoted by a switchover only after draining and verifying were done, while the
   fence holds and nothing is left to copy, by facts that were read just now.
2. Nothing is rolled back once the new cluster was promoted.
3. A step that was done is not done again.
4. Once the facts stay good, every sequence ends.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from replicator.failover.rules.request import Kind
from replicator.topology.roles import RoleState


class Step(StrEnum):
    """Steps of all three procedures; the value is what people and the journal read."""

    PREPARE = "prepare"
    FENCE = "fence"
    DRAIN = "drain"
    VERIFY = "verify"
    PROMOTE = "promote"
    TURN = "turn"
    RELEASE = "release"
    DECLARE = "declare"
    COMPLETE = "complete"
    REJOIN = "rejoin"
    SALVAGE = "salvage"
    INJECT = "inject"
    REALIGN = "realign"
    CATCH_UP = "catch-up"
    MOVE_GROUPS = "move-groups"
    MARK = "mark"
    UNMARK = "unmark"


SWITCHOVER = (
    Step.PREPARE, Step.FENCE, Step.DRAIN, Step.VERIFY, Step.PROMOTE, Step.TURN, Step.RELEASE,
)  # fmt: skip
FAILOVER = (Step.DECLARE, Step.PROMOTE, Step.COMPLETE, Step.RELEASE)
LEAVE = (Step.MOVE_GROUPS, Step.MARK)
"""A switchover or a failover on a link without an active cluster: its groups move, the flows stay."""
RETURN = (Step.MOVE_GROUPS, Step.UNMARK)
REVERSE = (Step.REJOIN, Step.SALVAGE, Step.INJECT, Step.REALIGN, Step.CATCH_UP)

STATE_OF: dict[Step, RoleState] = {
    Step.FENCE: "fencing",
    Step.DRAIN: "draining",
    Step.VERIFY: "verifying",
    Step.PROMOTE: "promoting",
    Step.DECLARE: "declared",
    Step.REJOIN: "salvaging",
}
"""The role's state from the beginning of a step; steps without one leave it as it is."""

STATE_AFTER: dict[Step, RoleState] = {
    Step.TURN: "mirroring",
    Step.COMPLETE: "promoted",
    Step.REALIGN: "realigning",
    Step.CATCH_UP: "mirroring",
}
"""The role's state from the end of a step: written when its work is done."""


def steps_of(kind: Kind, *, and_switch: bool = True, with_roles: bool = True) -> tuple[Step, ...]:
    """The steps of a procedure in order; a failback may end with the reversed mirroring."""
    if not with_roles:
        return RETURN if kind == "failback" else LEAVE
    if kind == "switchover":
        return SWITCHOVER
    if kind == "failover":
        return FAILOVER
    return (*REVERSE, *SWITCHOVER) if and_switch else REVERSE


@dataclass(frozen=True, slots=True)
class TransitionProgress:
    """What the journal says: steps in order, which of them are done, whether it is rolled back."""

    steps: tuple[Step, ...]
    done: frozenset[Step] = frozenset()
    rolling_back: bool = False

    @property
    def next(self) -> Step | None:
        """The first step that is not done."""
        return next((step for step in self.steps if step not in self.done), None)


@dataclass(frozen=True, slots=True)
class TransitionFacts:
    """What the clusters showed a moment ago; None is not known.

    Attributes:
        lag_records: what the running flow still has to copy, up to the fenced ends once there are any.
        unknown: of which partitions it cannot be said, and why; then ``lag_records`` is None.
        open_transactions: which of them hold records back; empty where none does.
        fence_holds: whether nobody wrote on the old cluster since the fence; True before there is one.
        groups_ready: whether no group on the old cluster will commit anything more that matters.
        groups_wait: what is missing to that, for people.
        waited_seconds: since the step began.
        patience_seconds: how long the step may wait.
    """

    lag_records: int | None = None
    unknown: str = ""
    open_transactions: str = ""
    fence_holds: bool | None = None
    groups_ready: bool | None = None
    groups_wait: str = ""
    waited_seconds: float = 0.0
    patience_seconds: float = 60.0

    @property
    def late(self) -> bool:
        """Whether the step has waited long enough."""
        return self.waited_seconds >= self.patience_seconds


@dataclass(frozen=True, slots=True)
class Action:
    """What to do now and why, in one line."""

    do: Literal["run", "wait", "roll-back", "stop", "finish"]
    reason: str
    step: Step | None = None


_FENCED = (Step.DRAIN, Step.VERIFY, Step.PROMOTE)


def decide(progress: TransitionProgress, facts: TransitionFacts) -> Action:
    """The next action. ``stop`` ends the run and leaves the transition open, to be resumed."""
    step = progress.next
    if progress.rolling_back:
        return _rolling_back(progress)
    if step is None:
        return Action("finish", "every step is done")
    if Step.FENCE in progress.steps and step in _FENCED:
        return _under_fence(step, facts)
    if step is Step.CATCH_UP:
        return _catching_up(step, facts)
    return Action("run", "it is next", step)


def promoted(progress: TransitionProgress) -> bool:
    """Whether writers may be on the new cluster, so that nothing can be rolled back."""
    return Step.PROMOTE in progress.done


def _rolling_back(progress: TransitionProgress) -> Action:
    if promoted(progress):
        return Action("stop", "the new cluster was promoted: it can only be resumed, or fail back")
    return Action("roll-back", "requested, and the new cluster was not promoted")


def _under_fence(step: Step, facts: TransitionFacts) -> Action:
    if facts.fence_holds is False:
        return Action("roll-back", "a record was written to the old cluster past the fence")
    if facts.fence_holds is None or facts.lag_records is None:
        if facts.late:
            return Action("roll-back", _not_known(facts))
        return Action("wait", facts.unknown or "a cluster does not answer")
    if facts.lag_records > 0:
        behind = f" ({facts.open_transactions})" if facts.open_transactions else ""
        if facts.late:
            return Action(
                "roll-back", f"{facts.lag_records} records were not copied in time{behind}"
            )
        return Action("wait", f"{facts.lag_records} records to copy{behind}")
    if step is Step.VERIFY and not facts.groups_ready and not facts.late:
        return Action("wait", facts.groups_wait or "groups have not been looked at")
    return Action("run", "nothing is left to copy and the fence holds", step)


def _not_known(facts: TransitionFacts) -> str:
    if facts.unknown:
        return f"it is not known whether everything was copied: {facts.unknown}"
    return "the copying position could not be read in time"


def _catching_up(step: Step, facts: TransitionFacts) -> Action:
    if facts.lag_records == 0:
        return Action("run", "nothing is left to copy", step)
    if facts.late:
        return Action("stop", "the reversed flow has not caught up in time; resume later")
    if facts.lag_records is None:
        return Action("wait", facts.unknown or "a cluster does not answer")
    return Action("wait", f"{facts.lag_records} records to copy")
