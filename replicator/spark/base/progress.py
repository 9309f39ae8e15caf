"""Progress of Spark jobs as bars on standard error, from the completion of tasks."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from rich.progress import Progress, TaskID

LOOK_SECONDS = 0.3
_RECENT_STAGES = 64


@contextlib.contextmanager
def progress(session: "SparkSession", doing: str, *, shown: bool | None = None) -> Iterator[None]:
    """Shows how far the jobs are that are started inside; nothing when stderr is no terminal.

    Args:
        session: whose jobs; all of them, since a command has the session for itself.
        doing: what is being done, for people.
        shown: None decides by whether standard error is a terminal.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.completed:.0f} of {task.total:.0f} tasks"),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
    )
    ended = threading.Event()
    with bars:
        bar = bars.add_task(doing, total=1)
        watcher = threading.Thread(
            target=_watch,
            args=(session.sparkContext, bars, bar, ended),
            name="spark-progress",
            daemon=True,
        )
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _watch(
    context: "SparkContext", bars: "Progress", bar: "TaskID", ended: threading.Event
) -> None:
    """Adds up the tasks of all stages seen; a finished stage counts as whole."""
    tracker = context.statusTracker()
    seen: dict[int, tuple[int, int]] = {}
    while not ended.wait(LOOK_SECONDS):
        with contextlib.suppress(Exception):  # a bar is no reason to fail
            active = set(tracker.getActiveStageIds())
            for stage in [*active, *seen][:_RECENT_STAGES]:
                info = tracker.getStageInfo(stage)
                if info is not None:
                    seen[stage] = (info.numCompletedTasks, info.numTasks)
            done = sum(completed for completed, _ in seen.values())
            bars.update(bar, completed=done, total=max(1, sum(total for _, total in seen.values())))
    bars.update(bar, completed=bars.tasks[0].total or 1)
