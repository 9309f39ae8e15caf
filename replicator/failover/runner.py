"""Carries a transition out: the one entry of the room."""

from replicator.clock import Clock
from replicator.failover.report import TransitionReport
from replicator.failover.request import Answer, OnStep, TransitionRequest
from replicator.topology.plan import Plan


def run_transition(
    plan: Plan,
    request: TransitionRequest,
    *,
    clock: Clock,
    on_step: OnStep,
    answer: Answer,
) -> TransitionReport:
    """Runs, resumes or rolls back one role change. Blocking.

    Args:
        plan: as compiled from the file; roles are read from the clusters.
        request: what is wanted.
        clock: time as a dependency.
        on_step: hears of every step as it begins, goes on and ends.
        answer: asked once, after the loss was stated and before anything changes.

    Raises:
        InputError: no such link or cluster.
        RefusedError: a safety check said no; nothing was changed.
        ReplicatorError: a cluster that is needed does not answer; resume later.
    """
    raise NotImplementedError
