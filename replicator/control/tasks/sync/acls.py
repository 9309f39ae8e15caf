"""Periodic task: rights on the pair's source, carried over to the target every minute."""

from replicator.control.tasks.sync.acl_sync import AclSync, acls_wanted
from replicator.control.tasks.task import TaskContext
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.problem import Problem

INTERVAL_SECONDS = 60.0


class AclTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "ACLs"
    interval_seconds = INTERVAL_SECONDS

    def __init__(self, context: TaskContext) -> None:
        client_id = f"{context.client_id}-acls"
        self._source = ClusterAdmin(context.pair.source, client_id=client_id)
        self._target = ClusterAdmin(context.pair.target, client_id=client_id)
        self._sync = AclSync(context.plan, context.pair, source=self._source, target=self._target)

    async def run(self) -> tuple[Problem, ...]:
        """Adds the rights that the target lacks; each one it refuses is a problem."""
        return await self._sync.run_once()

    def close(self) -> None:
        """Closes its connections."""
        self._source.close()
        self._target.close()


def acl_task(context: TaskContext) -> AclTask | None:
    """The task, or None where no link of the pair wants it."""
    return AclTask(context) if acls_wanted(context.pair) else None
