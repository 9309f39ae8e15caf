"""Which cluster a transition leaves and which it promotes; refuses what makes no sense. Pure."""

from replicator.errors import InputError, RefusedError
from replicator.failover.rules.request import TransitionRequest
from replicator.topology.plan import LinkPlan
from replicator.topology.roles import Role, has_roles

UNFINISHED = frozenset({"fencing", "draining", "verifying"})
"""States in which an unfinished switchover fences writers on the cluster that is still active."""


def directions(
    link: LinkPlan,
    role: Role,
    request: TransitionRequest,
    *,
    silent: frozenset[str],
    fenced: bool = False,
) -> tuple[str, str]:
    """The cluster that is left and the cluster that becomes active, or is used.

    On a link with an active cluster ``to`` defaults to the other one.

    Args:
        link: the link with its flows as its role has them.
        role: in force, as far as it is visible.
        request: the operator's request.
        silent: aliases of clusters that do not answer.
        fenced: a fence of the active cluster is on record.

    Raises:
        InputError: the request leaves the direction open, or names no cluster of the link.
        RefusedError: that cluster is active already, or both claim to be.
    """
    if has_roles(link):
        return _with_roles(link, role, request, silent=silent, fenced=fenced)
    return _without_roles(link, request)


def _with_roles(
    link: LinkPlan,
    role: Role,
    request: TransitionRequest,
    *,
    silent: frozenset[str],
    fenced: bool,
) -> tuple[str, str]:
    """On a link with an active cluster.

    A failover may also promote the cluster that is active by all that can be seen, where its writers are fenced, as
    by an unfinished switchover, and the other cluster, with the journal, is lost: the epoch that it begins is newer
    than any that the lost cluster may have begun.
    """
    other = next(str(alias) for alias in link.clusters if alias != role.active)
    names = " and ".join(link.clusters)
    to = request.to or other
    if to not in link.clusters:
        raise InputError(
            f"'{to}' is not a cluster of link '{link.name}'",
            subject=link.name, remedy=f"Its clusters are {names}: --to {other}.",
        )  # fmt: skip
    if role.state == "conflict":
        if request.kind != "failover" or request.to is None:
            raise RefusedError(
                f"ROLE_CONFLICT: {names} both claim epoch {role.epoch}", subject=link.name,
                remedy="Decide which one is to be active: "
                f"replicator failover --link {link.name} --to CLUSTER --accept-loss",
            )  # fmt: skip
        return next(str(a) for a in link.clusters if a != to), to
    if to == role.active:
        if request.kind == "failover" and other in silent and (fenced or role.state in UNFINISHED):
            return other, to
        raise RefusedError(
            f"{to} is the active cluster already, since epoch {role.epoch}", subject=link.name,
            remedy=f"The other cluster is {other}. Nothing was changed.",
        )  # fmt: skip
    return role.active, to


def _without_roles(link: LinkPlan, request: TransitionRequest) -> tuple[str, str]:
    """From where to where groups move on a link without an active cluster."""
    found = [
        (str(flow.source), str(flow.target))
        for flow in link.flows
        if request.to in {None, flow.target} and request.source in {None, flow.source}
    ]
    if len(found) != 1:
        known = ", ".join(flow.id for flow in link.flows)
        raise InputError(
            f"link '{link.name}' has several flows; which cluster is left for which?",
            subject=link.name, remedy=f"Give --from and --to of one of them: {known}.",
        )  # fmt: skip
    return found[0]
