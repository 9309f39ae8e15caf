"""Which duties a pair's controller has, by what its links ask for."""

from replicator.control.duty import Duty, DutyDesk
from replicator.control.duty_groups import group_duty

_BUILDERS = (group_duty,)


def duties_of(desk: DutyDesk) -> tuple[Duty, ...]:
    """The duties of one pair, opened; whoever runs them closes them."""
    built = (build(desk) for build in _BUILDERS)
    return tuple(duty for duty in built if duty is not None)
