"""Which duties a pair's controller has, by what its links ask for."""

from replicator.control.duty import Duty, DutyDesk
from replicator.control.duty_acls import acl_duty
from replicator.control.duty_canary import canary_duty
from replicator.control.duty_contact import contact_duty
from replicator.control.duty_groups import group_duty
from replicator.control.duty_mm2 import mm2_duty
from replicator.control.duty_mm2_heartbeats import heartbeat_duty
from replicator.control.duty_split_brain import split_brain_duty

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
