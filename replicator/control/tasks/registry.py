"""Which periodic tasks a pair's controller runs, by what its links ask for."""

from replicator.control.tasks.sync.acls import acl_task
from replicator.control.tasks.sync.groups import group_sync_task
from replicator.control.tasks.sync.mm2_heartbeats import mm2_heartbeat_task
from replicator.control.tasks.sync.mm2_offsets import mm2_offsets_task
from replicator.control.tasks.task import PeriodicTask, TaskContext
from replicator.control.tasks.watch.canary import canary_task
from replicator.control.tasks.watch.denied_writers import denied_writers_task
from replicator.control.tasks.watch.last_contact import last_contact_task
from replicator.control.tasks.watch.open_transactions import open_transactions_task
from replicator.control.tasks.watch.split_brain import split_brain_task

_BUILDERS = (
    group_sync_task,
    acl_task,
    last_contact_task,
    split_brain_task,
    denied_writers_task,
    canary_task,
    mm2_heartbeat_task,
    mm2_offsets_task,
    open_transactions_task,
)


def tasks_of(context: TaskContext) -> tuple[PeriodicTask, ...]:
    """The tasks of one pair, opened; the caller closes them."""
    built = (build(context) for build in _BUILDERS)
    return tuple(task for task in built if task is not None)
