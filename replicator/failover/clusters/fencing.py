"""Keeping writers off one side of a link, and letting them on again exactly as it was.

What will be added is on record before it is added, so that a crash in between leaves nothing behind:
only what the record names is ever taken away, and rights that were there before are never touched.
Whether the fence is tight is not believed but looked at (``watching``), with every method.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from replicator.control.store.role_records import Denial, FenceRecord
from replicator.errors import (
    AuthorizerMissingError,
    NotAuthorizedError,
    RefusedError,
    ReplicatorError,
)
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.clusters.programs import ProgramCall, run_command
from replicator.failover.rules.report import Check
from replicator.policy.acl_rules import TOPIC, AclBinding
from replicator.policy.procedure import Fencing
from replicator.topology.plan import ClusterPlan
from replicator.topology.secrets import read_secret
from replicator.wire.topic_acls import topic_acls

COMMAND_SECONDS = 120.0
EVERYBODY = "User:*"


@dataclass(frozen=True, slots=True)
class FencePlan:
    """How a side is fenced: what the record says, and what the method needs."""

    fencing: Fencing
    record: FenceRecord


def method_in_force(fencing: Fencing | None, *, stated: bool) -> Fencing | None:
    """The link's method, or the operator's word; None when there is neither."""
    if fencing is None and stated:
        return Fencing("manual")
    return fencing


def check_fencing(
    sides: LinkClusters, cluster: ClusterPlan, fencing: Fencing | None, *, manual: bool
) -> Check:
    """Whether writers could be kept off a side, before anything is tried."""
    name = "fencing"
    method = method_in_force(fencing, stated=manual)
    if method is None:
        return Check(
            name, ok=False,
            detail=f"nothing is declared that keeps writers off {cluster.alias}",
            remedy="Declare 'fencing' for the link, or state --manual-fence once writers are off.",
        )  # fmt: skip
    if method.method == "manual":
        return Check(name, ok=True, detail="by the operator's word; writes past it are noticed")
    if method.method == "command":
        return Check(name, ok=True, detail=f"by command {method.fence[0]}")
    own = _own_principal(cluster)
    if own is not None and own in method.principals:
        return Check(
            name, ok=False, detail=f"'principals' names {own}, which the replicator itself uses",
            remedy="Take it off the list: copies could not be written any more.",
        )  # fmt: skip
    try:
        topic_acls(cluster)
    except AuthorizerMissingError:
        return Check(
            name, ok=False, detail=f"{cluster.alias} has no authorizer, so ACLs fence nobody",
            remedy="Use method: command or manual.",
        )  # fmt: skip
    except NotAuthorizedError as error:
        return Check(
            name, ok=False, detail=error.message,
            remedy="Grant the replicator DESCRIBE and ALTER on the cluster resource.",
        )  # fmt: skip
    except ReplicatorError as error:
        return Check(name, ok=False, detail=error.message, remedy=error.remedy)
    rights = sides.admin(cluster).describe_cluster().authorized_operations
    if "ALTER" not in rights:
        return Check(
            name, ok=False, detail=f"the replicator may not change ACLs on {cluster.alias}",
            remedy="Grant it ALTER on the cluster resource.",
        )  # fmt: skip
    whom = ", ".join(method.principals) or "everybody"
    return Check(name, ok=True, detail=f"by DENY ACLs for {whom}")


def plan_fence(
    sides: LinkClusters,
    cluster: ClusterPlan,
    fencing: Fencing,
    *,
    topics: Iterable[str],
    at_ms: int,
    by: str,
) -> FencePlan:
    """What will be added, to be put on record before ``raise_fence``.

    Raises:
        ReplicatorError: the rights that are there cannot be read.
    """
    denials: tuple[Denial, ...] = ()
    if fencing.method == "acl":
        wanted = [
            Denial(pattern="LITERAL", name=topic, principal=principal)
            for topic in sorted(topics)
            for principal in fencing.principals or (EVERYBODY,)
        ]
        there = topic_acls(cluster)
        denials = tuple(one for one in wanted if _binding(one) not in there)
    record = FenceRecord(
        link=sides.link.name, cluster=cluster.alias, method=fencing.method,
        state="intent", at_ms=at_ms, by=by, denials=denials,
    )  # fmt: skip
    return FencePlan(fencing, record)


def raise_fence(sides: LinkClusters, cluster: ClusterPlan, plan: FencePlan) -> ProgramCall | None:
    """Keeps writers off; doing it twice equals doing it once. Returns what a command said.

    Raises:
        RefusedError: it cannot be done, or would keep the replicator itself off.
        ReplicatorError: the cluster does not answer.
    """
    if plan.fencing.method == "command":
        return _command(plan.fencing.fence, sides, cluster, "fence")
    if plan.fencing.method == "manual":
        return None
    answers = sides.admin(cluster).create_acls(_binding(one) for one in plan.record.denials)
    for binding, refused in answers.items():
        if refused is not None:
            raise RefusedError(
                f"the DENY on topic {binding.name} was not added: {refused.message}",
                subject=f"cluster:{cluster.alias}", remedy=refused.remedy,
            )  # fmt: skip
    _still_ours(sides, cluster, plan)
    return None


def lower_fence(
    sides: LinkClusters, cluster: ClusterPlan, fencing: Fencing, record: FenceRecord
) -> ProgramCall | None:
    """Lets writers on: takes away exactly what the record names.

    Raises:
        ReplicatorError: it could not be done; ask again.
    """
    if record.method == "command":
        return _command(fencing.unfence, sides, cluster, "unfence")
    if record.method == "manual" or not record.denials:
        return None
    answers = sides.admin(cluster).delete_acls(_binding(one) for one in record.denials)
    for refused in answers.values():
        if refused is not None:
            raise refused
    return None


def _still_ours(sides: LinkClusters, cluster: ClusterPlan, plan: FencePlan) -> None:
    """A DENY beats every ALLOW: with one for everybody only a super user could still write copies."""
    if plan.fencing.principals:
        return
    topics = {one.name for one in plan.record.denials}
    for name, topic in sides.admin(cluster).describe_topics(topics).items():
        if "WRITE" not in topic.authorized_operations:
            raise RefusedError(
                f"the DENY for everybody keeps the replicator itself off topic {name}",
                subject=f"cluster:{cluster.alias}",
                remedy="Name the writers under fencing.principals, or make our user a super user.",
            )


def _binding(denial: Denial) -> AclBinding:
    return AclBinding(TOPIC, denial.pattern, denial.name, denial.principal, "*", "WRITE", "DENY")


def _own_principal(cluster: ClusterPlan) -> str | None:
    username = cluster.security.username
    if username is None:
        return None
    return f"User:{read_secret(username, cluster.alias, 'username')}"


def _command(
    command: tuple[str, ...],
    sides: LinkClusters,
    cluster: ClusterPlan,
    doing: Literal["fence", "unfence"],
) -> ProgramCall:
    if not command:
        raise RefusedError(
            f"writers were kept off by a command, and the file names none to {doing} any more",
            subject=f"cluster:{cluster.alias}",
            remedy="Put 'fencing: {method: command, ...}' back into the link, then try again.",
        )
    context = {"link": sides.link.name, "cluster": str(cluster.alias), "doing": doing}
    ran = run_command(command, context, timeout_seconds=COMMAND_SECONDS)
    if not ran.ok:
        raise RefusedError(
            f"the {doing} command failed: {ran.output.strip()}",
            subject=f"cluster:{cluster.alias}",
            remedy="Mend the command of 'fencing', then try again.",
        )
    return ran
