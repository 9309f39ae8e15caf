"""From `fencing` and `hooks` of the file to the frozen procedure of a link."""

from collections.abc import Iterator

from replicator.policy.procedure import Automatic, Fencing, Hook, Moment, Procedure
from replicator.topology.spec.policy_spec import PolicySpec
from replicator.topology.spec.procedure_spec import AclFencing, CommandFencing, HooksSpec
from replicator.topology.spec.procedure_spec import Hook as HookSpec


def link_procedure(spec: PolicySpec) -> Procedure:
    """What a link does around its role changes."""
    hooks = tuple(_hooks(spec.hooks)) if spec.hooks is not None else ()
    return Procedure(_fencing(spec), hooks, _automatic(spec))


def _automatic(spec: PolicySpec) -> Automatic | None:
    given = spec.failover.automatic if spec.failover is not None else None
    if given is None:
        return None
    return Automatic(
        witness_cluster=given.witness.cluster or "",
        witness_http=given.witness.http or "",
        after_seconds=given.after,
        interval_seconds=given.interval,
        max_lost_records=given.max_lost_records,
    )


def _fencing(spec: PolicySpec) -> Fencing | None:
    given = spec.fencing
    if given is None:
        return None
    if isinstance(given, AclFencing):
        principals = tuple(given.principals or ())
        return Fencing("acl", principals=principals, fence_passive=given.fence_passive)
    if isinstance(given, CommandFencing):
        return Fencing(
            "command",
            fence=tuple(given.fence),
            unfence=tuple(given.unfence),
            fence_passive=given.fence_passive,
        )
    return Fencing("manual", fence_passive=given.fence_passive)


def _hooks(spec: HooksSpec) -> Iterator[Hook]:
    moments: tuple[tuple[Moment, list[HookSpec] | None], ...] = (
        ("before-fence", spec.before_fence),
        ("after-fence", spec.after_fence),
        ("before-promote", spec.before_promote),
        ("after-promote", spec.after_promote),
    )
    for moment, hooks in moments:
        for hook in hooks or ():
            yield Hook(moment, tuple(hook.command or ()), hook.webhook or "", hook.timeout)
