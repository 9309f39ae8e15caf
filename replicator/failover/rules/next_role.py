"""The next role record of a link. Pure.

Invariants: an epoch begins only with a promotion or with its rollback; within an epoch revisions only
grow; the record that a step would write is recognised when it is there already.
"""

from replicator.control.records.role_records import RoleRecord
from replicator.topology.roles import Role, RoleState


def next_role(
    now: Role,
    *,
    active: str,
    state: RoleState,
    at_ms: int,
    by: str,
    reason: str,
    transition: str,
) -> RoleRecord:
    """The record that follows; a change of the active cluster begins an epoch, else a revision.

    Rolling a promotion back begins an epoch as well: a worker that saw the promotion must see
    something newer.
    """
    turned = active != now.active
    return RoleRecord(
        link=now.link,
        epoch=now.epoch + 1 if turned else now.epoch,
        revision=0 if turned else now.revision + 1,
        active=active,
        state=state,
        since=at_ms,
        by=by,
        reason=reason,
        transition=transition,
    )


def stands(held: RoleRecord | None, *, active: str, state: RoleState, transition: str) -> bool:
    """Whether the stored record already says what a step of this transition would write."""
    return held is not None and (held.active, held.state, held.transition) == (
        active,
        state,
        transition,
    )
