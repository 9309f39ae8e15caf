"""What stands between a link and its normal course: open transition, fences, what returned. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from replicator.control.records.role_records import FenceRecord, ReturnRecord, TransitionRecord
from replicator.control.roles.open_transitions import open_transition
from replicator.control.store.state import ControlState
from replicator.problem import Problem
from replicator.topology.plan import LinkPlan
from replicator.topology.roles import Role


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """Of one link, by the control topics that are visible.

    Attributes:
        transition: the one that holds the link.
        fences: what fences writers, one for each cluster at most.
        returned: what was found on the passive cluster after the failover in force.
        problems: what an operator must know now.
    """

    transition: TransitionRecord | None
    fences: tuple[FenceRecord, ...]
    returned: ReturnRecord | None
    problems: tuple[Problem, ...]


def link_facts(states: Iterable[ControlState], link: LinkPlan, role: Role) -> LinkFacts:
    """Reads them out of the control topics of the link's clusters."""
    seen = tuple(states)
    found = _fences(seen, link, role)
    transition = open_transition(seen, link.name)
    returns = [
        one
        for state in seen
        for alias in link.clusters
        if alias != role.active
        and (one := state.returned(link.name, str(alias))) is not None
        and one.epoch == role.epoch
    ]
    returned = max(returns, key=lambda one: one.at_ms, default=None)
    problems = [*_conflict(link, role), *_fenced_active(role, found.get(role.active), transition)]
    # Once a failback has begun, its own steps judge the cluster that returns.
    if returned is not None and role.state == "promoted":
        problems += [Problem(o.code, o.subject, o.detail, o.remedy) for o in returned.problems]
    return LinkFacts(transition, tuple(found.values()), returned, tuple(problems))


def active_fence(states: Iterable[ControlState], link: LinkPlan, role: Role) -> FenceRecord | None:
    """The fence on record that keeps writers out of the active cluster."""
    return _fences(states, link, role).get(role.active)


def _fences(states: Iterable[ControlState], link: LinkPlan, role: Role) -> dict[str, FenceRecord]:
    found: dict[str, FenceRecord] = {}
    for state in states:
        for alias in link.clusters:
            fence = state.fence(link.name, str(alias))
            if fence is None or not stands(fence, role):
                continue
            if _newer(fence, found.get(fence.cluster)):
                found[fence.cluster] = fence
    return found


def stands(fence: FenceRecord, role: Role) -> bool:
    """Whether a fence on record is about the role in force; of another epoch it means nothing.

    On the passive cluster it was put up in the epoch before it became passive or in the one that then
    began, on the active one in this epoch. -1 is not known.
    """
    if fence.cluster != role.active:
        return fence.epoch in {-1, role.epoch, role.epoch - 1}
    return fence.epoch == role.epoch or (fence.epoch == -1 and fence.at_ms >= role.since_ms)


def _newer(one: FenceRecord, held: FenceRecord | None) -> bool:
    return held is None or (one.at_ms, one.state == "held") > (held.at_ms, held.state == "held")


def _conflict(link: LinkPlan, role: Role) -> list[Problem]:
    if role.state != "conflict":
        return []
    return [
        Problem(
            "ROLE_CONFLICT", link.name, f"epoch {role.epoch} is claimed by {role.active} and {role.reason}",
            f"Decide which side is active: replicator failover --link {link.name} --to ...",
        )
    ]  # fmt: skip


def _fenced_active(
    role: Role, fence: FenceRecord | None, transition: TransitionRecord | None
) -> list[Problem]:
    """A fence on the active cluster that no open transition explains keeps applications out."""
    if fence is None or transition is not None:
        return []
    return [
        Problem(
            "ACTIVE_FENCED", role.link,
            f"a fence ({fence.method}) by {fence.by} is on record for {role.active}, which is active",
            f"Writers may be refused on {role.active}. This lets them in: "
            f"replicator switchover --link {role.link} --rollback",
        )
    ]  # fmt: skip
