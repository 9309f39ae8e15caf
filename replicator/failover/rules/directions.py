"""From where to where a transition goes; refuses what makes no sense. Pure."""

from replicator.errors import InputError, RefusedError
from replicator.failover.rules.request import TransitionRequest
from replicator.topology.plan import LinkPlan
from replicator.topology.roles import Role, has_roles

UNFINISHED = frozenset({"fencing", "draining", "verifying"})
"""States in which a switchover that was begun keeps writers off the side that is still active."""


def directions(
    link: LinkPlan, role: Role, request: TransitionRequest, *, silent: frozenset[str]
) -> tuple[str, str]:
    """The side that is left and the side that is to be active, or to be used.

    Args:
        link: the link with its flows as its role has them.
        role: in force, as far as it is visible.
        request: what is asked for.
        silent: aliases of clusters that do not answer.

    Raises:
        InputError: it is not said where to, or no side of the link was named.
        RefusedError: that side is active already, or both claim to be.
    """
    if has_roles(link):
        return _reversing(link, role, request, silent=silent)
    return _leaving(link, request)


def _reversing(
    link: LinkPlan, role: Role, request: TransitionRequest, *, silent: frozenset[str]
) -> tuple[str, str]:
    """On a link with an active side.

    A failover may also go to the side that is active by all that can be seen, where an unfinished
    change had kept its writers off and the other side, with the journal, is lost: the epoch that it
    begins is newer than any that the lost side may have begun.
    """
    other = next(str(alias) for alias in link.clusters if alias != role.active)
    to = request.to or (other if request.kind == "failback" else "")
    if not to or to not in link.clusters:
        sides = " and ".join(link.clusters)
        raise InputError(
            f"'{to}' is not a side of link '{link.name}'" if to else "it is not said where to",
            subject=link.name, remedy=f"Its sides are {sides}: --to {other}.",
        )  # fmt: skip
    if role.state == "conflict":
        if request.kind != "failover":
            raise RefusedError(
                f"ROLE_CONFLICT: epoch {role.epoch} is claimed by both sides", subject=link.name,
                remedy=f"Decide: replicator failover --link {link.name} --to ... --accept-loss",
            )  # fmt: skip
        return next(str(a) for a in link.clusters if a != to), to
    if to == role.active:
        if request.kind == "failover" and other in silent and role.state in UNFINISHED:
            return other, to
        raise RefusedError(
            f"{to} is the active side already, since epoch {role.epoch}", subject=link.name,
            remedy=f"The other side is {other}. Nothing was changed.",
        )  # fmt: skip
    return role.active, to


def _leaving(link: LinkPlan, request: TransitionRequest) -> tuple[str, str]:
    """From where to where groups move on a link without an active side."""
    ways = [
        (str(flow.source), str(flow.target))
        for flow in link.flows
        if request.to in {None, flow.target} and request.source in {None, flow.source}
    ]
    if len(ways) != 1:
        known = ", ".join(flow.id for flow in link.flows)
        raise InputError(
            "it is not said which side is left for which",
            subject=link.name, remedy=f"Name --from and --to of one of its flows: {known}.",
        )  # fmt: skip
    return ways[0]
