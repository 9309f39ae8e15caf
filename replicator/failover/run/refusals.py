"""Why an operator's command is refused by what is on record, before anything is changed."""

from replicator.control.roles.link_facts import active_fence
from replicator.control.roles.read import RolesRead
from replicator.errors import RefusedError
from replicator.topology.plan import LinkPlan


def cannot_reverse(link: LinkPlan) -> RefusedError:
    """The error where a link has no way back."""
    return RefusedError(
        "the link's naming adds the source to topic names, so its reverse flow would copy other topics",
        subject=link.name,
        remedy="Use naming: identity for a link whose roles are to change.",
    )


def nothing_open(link: LinkPlan, read: RolesRead) -> RefusedError:
    """The error where no open transition is visible."""
    silent = ", ".join(alias for alias in read.silent if alias in link.clusters)
    hidden = f", as far as can be seen: {silent} does not answer" if silent else ""
    role = read.role(link)
    remedy = f"Look at 'replicator history --link {link.name}'."
    if silent:
        remedy = f"Bring {silent} back, or see 'replicator failover --help'."
        if active_fence(read.states.values(), link, role) is not None:
            remedy = (
                f"Bring {silent} back and try again; writers of {role.active} are fenced. If {silent} is lost: "
                f"replicator failover --link {link.name} --to {role.active}"
            )
    return RefusedError(
        f"no transition of the link is open{hidden}", subject=link.name, remedy=remedy
    )
