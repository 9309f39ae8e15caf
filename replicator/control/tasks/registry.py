"""Which duties a pair's controller has, by what its links ask for."""

from replicator.control.tasks.acls import acl_duty
from replicator.control.tasks.canary import canary_duty
from replicator.control.tasks.groups import group_duty
from replicator.control.tasks.last_contact import contact_duty
from replicator.control.tasks.mm2_heartbeats import heartbeat_duty
from replicator.control.tasks.mm2_offsets import mm2_duty
from replicator.control.tasks.split_brain import split_brain_duty
from replicator.control.tasks.task import Duty, DutyDesk

_BUILDERS = (
    group_duty,
    acl_duty,
    contact_duty,
    split_brain_duty,
    canary_duty,
    heartbeat_duty,
    mm2_duty,
)


def duties_of(desk: DutyDesk) -> tuple[Duty, ...]:
    """The duties of one pair, opened; whoever runs them closes them."""
    built = (build(desk) for build in _BUILDERS)
    return tuple(duty for duty in built if duty is not None)
