"""Parts of a scene that follow from the plan. Pure."""

from replicator.policy.copies.naming import target_name
from replicator.testing.checker.routes import Naming
from replicator.topology.plan import LinkPlan, PairPlan, Plan


def link_of(plan: Plan, name: str) -> LinkPlan:
    """The link of that name.

    Raises:
        KeyError: there is none; a drill file that was checked against the plan has one.
    """
    for link in plan.links:
        if link.name == name:
            return link
    raise KeyError(name)


def pair_of(plan: Plan, link: str, flow: str) -> PairPlan:
    """The clusters of a flow of a link; with an empty ``flow`` of its only, or first, one."""
    wanted = flow or str(link_of(plan, link).flows[0].id)
    for pair in plan.pairs:
        if pair.id == wanted:
            return pair
    raise KeyError(wanted)


def naming_of(plan: Plan, link: str) -> Naming:
    """Names of topics on targets, as the checker takes them."""
    found = link_of(plan, link)
    policy = (*found.flows, *found.standby)[0].policy

    def name(source: str, topic: str, _target: str) -> str | None:
        return target_name(policy.naming, source, topic)

    return name
