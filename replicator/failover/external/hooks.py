"""Hooks of a link at one moment of a role change."""

from collections.abc import Mapping

from replicator.failover.external.programs import ProgramCall, call_webhook, run_command
from replicator.policy.procedure import Moment, Procedure


def run_hooks(
    procedure: Procedure, moment: Moment, context: Mapping[str, str]
) -> tuple[ProgramCall, ...]:
    """Runs all hooks of a moment in the order of the file; the first that fails ends it.

    Blocking, each within its own time limit. The context names link, from, to, epoch and transition.
    """
    fields = {**context, "moment": moment}
    done: list[ProgramCall] = []
    for hook in procedure.hooks:
        if hook.moment != moment:
            continue
        if hook.command:
            ran = run_command(hook.command, fields, timeout_seconds=hook.timeout_seconds)
        else:
            ran = call_webhook(hook.webhook, fields, timeout_seconds=hook.timeout_seconds)
        done.append(ran)
        if not ran.ok:
            break
    return tuple(done)


def hook_evidence(ran: tuple[ProgramCall, ...]) -> list[dict[str, object]]:
    """The hooks' output, for the journal."""
    return [one.as_json() for one in ran]
