"""The translator of a periodic task: with the facts of commands, and the followers of its worker."""

from collections.abc import Mapping

from replicator.control.status.translator import open_translator
from replicator.control.store.state import ControlState
from replicator.control.tasks.task import TaskContext
from replicator.offsets.translation.translator import Translator


def task_translator(context: TaskContext, name: str) -> Translator:
    """A translator under the task's name; the task closes it."""

    def followed() -> Mapping[str, ControlState]:
        return {**context.controls(), str(context.pair.target.alias): context.control()}

    return open_translator(
        context.plan,
        client_id=f"{context.client_id}-{name}",
        clock=context.clock,
        admins=context.admins,
        followed=followed,
    )
