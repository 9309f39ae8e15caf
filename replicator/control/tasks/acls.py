"""Duty: rights on the pair's source, carried over to the target every minute."""

from replicator.control.tasks.acl_sync import AclSync, acls_wanted
from replicator.control.tasks.task import DutyDesk
from replicator.kafka.admin import ClusterAdmin
from replicator.problem import Problem

INTERVAL_SECONDS = 60.0


class AclDuty:
    """See ``replicator.control.tasks.task.Duty``."""

    name = "ACLs"
    interval_seconds = INTERVAL_SECONDS

    def __init__(self, desk: DutyDesk) -> None:
        client_id = f"{desk.client_id}-acls"
        self._source = ClusterAdmin(desk.pair.source, client_id=client_id)
        self._target = ClusterAdmin(desk.pair.target, client_id=client_id)
        self._sync = AclSync(desk.plan, desk.pair, source=self._source, target=self._target)

    async def turn(self) -> tuple[Problem, ...]:
        """Adds what the target lacks; what it refuses is a problem."""
        return await self._sync.run_once()

    def close(self) -> None:
        """Gives connections back."""
        self._source.close()
        self._target.close()


def acl_duty(desk: DutyDesk) -> AclDuty | None:
    """The duty, or None where no link of the pair wants it."""
    return AclDuty(desk) if acls_wanted(desk.pair) else None
