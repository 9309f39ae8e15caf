"""Who is active on a link, and what that makes of its flows. Pure.

A link whose shape is active-passive has two flows, one in each direction; at most one of them runs.
Which one is said by its role: the file's until a record says otherwise, then the record with the
highest epoch (and revision within it) that is visible on any of the link's clusters. A cluster that
cannot be read counts as without a record, and never delays a start.

Invariants: never do both directions run; a flow runs only out of the active side; a flow of a lower
epoch than any visible one does not run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from replicator.topology.plan import LinkPlan, Plan

RoleState = Literal[
    "mirroring",
    "fencing",
    "draining",
    "verifying",
    "declared",
    "promoting",
    "promoted",
    "salvaging",
    "realigning",
    "conflict",
]

COPYING: frozenset[str] = frozenset({"mirroring", "fencing", "draining", "verifying", "realigning"})
"""States in which records go from the active side to the other one."""


@dataclass(frozen=True, slots=True)
class Role:
    """The role of one link; ``since_ms`` is 0 for what the file says."""

    link: str
    epoch: int
    revision: int
    active: str
    state: RoleState
    since_ms: int = 0
    by: str = ""
    reason: str = ""

    @property
    def rank(self) -> tuple[int, int]:
        """What decides between two records."""
        return self.epoch, self.revision

    def lets(self, source: str) -> bool:
        """Whether a flow out of this cluster runs."""
        return self.active == source and self.state in COPYING


def has_roles(link: LinkPlan) -> bool:
    """Whether one side of the link is active and the other is not."""
    return link.active is not None


def first_role(link: LinkPlan) -> Role:
    """What holds before any record: the file's word, epoch 0."""
    return Role(link.name, 0, 0, str(link.active), "mirroring")


def role_in_force(link: LinkPlan, seen: Iterable[Role]) -> Role:
    """The highest of the records that are visible; two of one rank that differ are a conflict.

    In a conflict nothing runs: which side may write must be decided by a person.
    """
    best = first_role(link)
    for role in seen:
        if role.active not in link.clusters:
            continue  # the file was edited to other clusters: records of the clusters before mean nothing now
        if role.rank > best.rank:
            best = role
        elif role.rank == best.rank and role.active != best.active:
            best = replace(best, state="conflict", reason=role.active)
    return best


def orient(plan: Plan, roles: Mapping[str, Role]) -> Plan:
    """The plan with every link's flows as its role has them; links without a word stay as they are.

    Doing it twice equals doing it once. The hash stays: it is the file's.
    """
    links = tuple(
        _oriented(link, roles[link.name]) if link.name in roles and has_roles(link) else link
        for link in plan.links
    )
    return plan if links == plan.links else replace(plan, links=links)


def _oriented(link: LinkPlan, role: Role) -> LinkPlan:
    both = tuple(replace(flow, role_version=role.rank) for flow in (*link.flows, *link.standby))
    running = tuple(flow for flow in both if role.lets(flow.source))
    dormant = tuple(flow for flow in both if not role.lets(flow.source))
    return replace(link, flows=running, standby=dormant)


def facing(plan: Plan, link: str, source: str) -> Plan:
    """The plan as if the link ran out of this cluster, whatever its role says."""
    found = plan.link(link)
    return orient(plan, {link: replace(first_role(found), active=source)})
