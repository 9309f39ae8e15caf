"""Periodic task: group positions of the pair's source, carried over to the target every few seconds."""

from replicator.control.tasks.sync.task_translator import task_translator
from replicator.control.tasks.task import TaskContext
from replicator.offsets.groups.group_report import SyncReport
from replicator.offsets.groups.group_sync import GroupSync
from replicator.problem import Problem

EMPTY_SECONDS = 60.0
"""How often it is written down that there are no groups."""


class GroupSyncTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "group positions"

    def __init__(self, context: TaskContext, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self._context = context
        self._translator = task_translator(context, "groups")
        self._sync = GroupSync(
            context.plan, context.pair, translator=self._translator, clock=context.clock
        )
        self._empty_since = float("-inf")

    async def run(self) -> tuple[Problem, ...]:
        """One round over all groups; what could not be carried over is a problem each."""
        report = await self._sync.run_once()
        if self._is_news(report):
            await self._context.store([report])
        self._count(report)
        return (*self._unheard(report), *(
            Problem(
                "GROUP_REFUSED",
                f"group:{group}",
                f"the position of group '{group}' was not carried over: {reason}",
                "`replicator groups` shows every partition of it and what a move would re-read.",
            )
            for group, reason in report.refusals()
        ))  # fmt: skip

    def _unheard(self, report: SyncReport) -> tuple[Problem, ...]:
        why = report.unheard
        if why is None:
            return ()
        alias = self._context.pair.source.alias
        message = f"some groups of {alias} cannot be seen, and their positions stay: {why.message}"
        return (Problem(why.code, f"cluster:{alias}", message, why.remedy),)

    def _is_news(self, report: SyncReport) -> bool:
        """A round over no group reports nothing that the one before did not."""
        now = self._context.clock.monotonic()
        if not report.groups and now - self._empty_since < EMPTY_SECONDS:
            return False
        self._empty_since = float("-inf") if report.groups else now
        return True

    def close(self) -> None:
        """Closes its connections."""
        self._translator.close()

    def _count(self, report: SyncReport) -> None:
        syncing = {
            flow.link for flow in self._context.pair.flows if flow.policy.sync_groups.enabled
        }
        for link in syncing:
            figures = self._context.figures[link]
            figures.groups_synced_at_ms = report.at_ms
            for group in report.groups:
                if group.link == link:
                    for partition in group.partitions:
                        held = figures.translations.get(partition.grade, 0)
                        figures.translations[partition.grade] = held + 1


def group_sync_task(context: TaskContext) -> GroupSyncTask | None:
    """The task, or None where no link of the pair wants it."""
    rules = (flow.policy.sync_groups for flow in context.pair.flows)
    intervals = [rule.interval_seconds for rule in rules if rule.enabled]
    return GroupSyncTask(context, min(intervals)) if intervals else None
