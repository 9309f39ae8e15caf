"""Fences the writers of one cluster of a link, and removes the fence again.

Each time the cluster itself is asked what is there; a record never stands for a fence. The rules to add
are recorded before they are added, so that a crash in between leaves nothing behind: only what the
record names is ever removed, and rights that were there before are never touched.
``lag.find_bypass`` checks whether the fence holds, whatever the method.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from replicator.clock import Clock
from replicator.control.records.role_records import Denial, FenceRecord
from replicator.errors import (
    AuthorizerMissingError,
    NotAuthorizedError,
    RefusedError,
    ReplicatorError,
)
from replicator.failover.clusters.lag import link_keys
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.external.programs import ProgramCall, run_command
from replicator.failover.report.report import Check
from replicator.policy.copies.acl_rules import AclBinding, without_rules, write_denial
from replicator.policy.procedure import Fencing
from replicator.topology.file.secrets import read_secret
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.topic_acls import topic_acls

COMMAND_SECONDS = 120.0
LISTED_SECONDS = 10.0
"""How long added rules may take until the cluster lists them."""

LETS_IN = "allow.everyone.if.no.acl.found"


@dataclass(frozen=True, slots=True)
class FencePlan:
    """How a cluster is fenced: every rule that is ours to remove later, and those that it lacks now."""

    fencing: Fencing
    record: FenceRecord
    wanted: tuple[Denial, ...] = ()
    missing: tuple[Denial, ...] = ()


def method_in_force(fencing: Fencing | None, *, stated: bool) -> Fencing | None:
    """The link's method, or the operator's confirmation; None when there is neither."""
    if fencing is None and stated:
        return Fencing("manual")
    return fencing


def check_fencing(
    clusters: LinkClusters, cluster: ClusterPlan, fencing: Fencing | None, *, manual: bool
) -> Check:
    """Whether the writers of a cluster could be fenced, before anything is tried."""
    name = "fencing"
    method = method_in_force(fencing, stated=manual)
    if method is None:
        return Check(
            name, ok=False,
            detail=f"the link declares no way to fence writers on {cluster.alias}",
            remedy="Declare 'fencing' for the link, or stop the writers and give --manual-fence.",
        )  # fmt: skip
    if method.method == "manual":
        return Check(name, ok=True, detail="confirmed by the operator; later writes are detected")
    if method.method == "command":
        return Check(name, ok=True, detail=f"by command {method.fence[0]}")
    own = _own_principal(cluster)
    if own is not None and own in method.principals:
        return Check(
            name, ok=False, detail=f"'principals' names {own}, which the replicator itself uses",
            remedy="Remove it from the list: copies could not be written any more.",
        )  # fmt: skip
    try:
        there = topic_acls(cluster)
        bare = without_rules({topic for topic, _ in link_keys(clusters, cluster)}, there)
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
    rights = clusters.admin(cluster).describe_cluster().authorized_operations
    if "ALTER" not in rights:
        return Check(
            name, ok=False, detail=f"the replicator may not change ACLs on {cluster.alias}",
            remedy="Grant it ALTER on the cluster resource.",
        )  # fmt: skip
    if bare and _may_let_everybody_in(clusters, cluster):
        names = ", ".join(bare[:3]) + (f" and {len(bare) - 3} more" if len(bare) > 3 else "")
        return Check(
            name, ok=False,
            detail=f"no ACL speaks of {names}, and {cluster.alias} may let everybody in there "
            f"({LETS_IN}): a DENY on them would shut readers out too",
            remedy="Add ALLOW rules for those who read and copy these topics, or use method: command.",
        )  # fmt: skip
    whom = ", ".join(method.principals) or "everybody"
    return Check(name, ok=True, detail=f"by DENY ACLs for {whom}")


def _may_let_everybody_in(clusters: LinkClusters, cluster: ClusterPlan) -> bool:
    """Whether a topic without rules is open to all: brokers name that setting but not its value."""
    admin = clusters.admin(cluster)
    try:
        settings = admin.broker_settings(admin.describe_cluster().brokers[0].id)
    except ReplicatorError:
        return True  # not known
    return LETS_IN in settings and settings[LETS_IN] != "false"


def plan_fence(
    clusters: LinkClusters,
    cluster: ClusterPlan,
    fencing: Fencing,
    *,
    topics: Iterable[str],
    held: FenceRecord | None,
    at_ms: int,
    by: str,
) -> FencePlan:
    """The rules that ``apply_fence`` will add, to be recorded first.

    ``held`` is what was recorded before: rules of it that are still there, or are added again, stay ours.

    Raises:
        ReplicatorError: the rights that are there cannot be read.
    """
    wanted: tuple[Denial, ...] = ()
    missing: tuple[Denial, ...] = ()
    ours: tuple[Denial, ...] = ()
    if fencing.method == "acl":
        wanted = tuple(
            Denial(pattern="LITERAL", name=topic, principal=principal)
            for topic in sorted(topics)
            for principal in fencing.denied
        )
        there = topic_acls(cluster)
        missing = tuple(one for one in wanted if _binding(one) not in there)
        before = held.denials if held is not None else ()
        ours = tuple(one for one in before if _binding(one) in there)
    record = FenceRecord(
        link=clusters.link.name, cluster=cluster.alias, method=fencing.method,
        state="intent", at_ms=at_ms, by=by, denials=tuple(dict.fromkeys((*ours, *missing))),
    )  # fmt: skip
    return FencePlan(fencing, record, wanted, missing)


def apply_fence(
    clusters: LinkClusters, cluster: ClusterPlan, plan: FencePlan, *, clock: Clock
) -> ProgramCall | None:
    """Fences writers; doing it twice equals doing it once. Returns the call of a fencing command.

    Rules count once the cluster itself lists them.

    Raises:
        RefusedError: it cannot be done, or would fence the replicator itself.
        ReplicatorError: the cluster does not answer.
    """
    if plan.fencing.method == "command":
        return _command(plan.fencing.fence, clusters, cluster, "fence")
    if plan.fencing.method == "manual":
        return None
    answers = clusters.admin(cluster).create_acls(_binding(one) for one in plan.missing)
    for binding, refused in answers.items():
        if refused is not None:
            raise RefusedError(
                f"the DENY on topic {binding.name} was not added: {refused.message}",
                subject=f"cluster:{cluster.alias}", remedy=refused.remedy,
            )  # fmt: skip
    _wait_until_listed(cluster, plan, clock=clock)
    _refuse_if_we_are_fenced(clusters, cluster, plan)
    return None


def _wait_until_listed(cluster: ClusterPlan, plan: FencePlan, *, clock: Clock) -> None:
    """Returns when every rule of the fence is in force, by the cluster's own list."""
    if not plan.missing:
        return
    deadline = clock.monotonic() + LISTED_SECONDS
    while not {_binding(one) for one in plan.wanted} <= topic_acls(cluster):
        if clock.monotonic() >= deadline:
            raise RefusedError(
                f"the DENY rules were accepted, and {cluster.alias} does not list them",
                subject=f"cluster:{cluster.alias}",
                remedy="Look at its ACLs: something else changes them.",
            )
        clock.sleep(0.1)


def remove_fence(
    clusters: LinkClusters, cluster: ClusterPlan, fencing: Fencing, record: FenceRecord
) -> ProgramCall | None:
    """Removes the fence: exactly the rules that the record names.

    Raises:
        ReplicatorError: it could not be done; try again.
    """
    if record.method == "command":
        return _command(fencing.unfence, clusters, cluster, "unfence")
    if record.method == "manual" or not record.denials:
        return None
    answers = clusters.admin(cluster).delete_acls(_binding(one) for one in record.denials)
    for refused in answers.values():
        if refused is not None:
            raise refused
    return None


def _refuse_if_we_are_fenced(clusters: LinkClusters, cluster: ClusterPlan, plan: FencePlan) -> None:
    """A DENY beats every ALLOW: with one for everybody only a super user could still write copies."""
    if plan.fencing.principals:
        return
    topics = {one.name for one in plan.missing}
    for name, topic in clusters.admin(cluster).describe_topics(topics).items():
        if "WRITE" not in topic.authorized_operations:
            raise RefusedError(
                f"the DENY for everybody also fences the replicator itself on topic {name}",
                subject=f"cluster:{cluster.alias}",
                remedy="Name the writers under fencing.principals, or make the replicator's user a super user.",
            )


def _binding(denial: Denial) -> AclBinding:
    return write_denial(denial.name, denial.principal, pattern=denial.pattern)


def _own_principal(cluster: ClusterPlan) -> str | None:
    username = cluster.security.username
    if username is None:
        return None
    return f"User:{read_secret(username, cluster.alias, 'username')}"


def _command(
    command: tuple[str, ...],
    clusters: LinkClusters,
    cluster: ClusterPlan,
    doing: Literal["fence", "unfence"],
) -> ProgramCall:
    if not command:
        raise RefusedError(
            f"writers were fenced by a command, and the file no longer names one to {doing}",
            subject=f"cluster:{cluster.alias}",
            remedy="Put 'fencing: {method: command, ...}' back into the link, then try again.",
        )
    context = {"link": clusters.link.name, "cluster": str(cluster.alias), "doing": doing}
    ran = run_command(command, context, timeout_seconds=COMMAND_SECONDS)
    if not ran.ok:
        raise RefusedError(
            f"the {doing} command failed: {ran.output.strip()}",
            subject=f"cluster:{cluster.alias}",
            remedy="Correct the command of 'fencing', then try again.",
        )
    return ran
