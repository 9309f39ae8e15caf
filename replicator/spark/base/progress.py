"""Progress of Spark jobs on standard error, from the completion of tasks: a bar, or a line now and then."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOOK_SECONDS = 0.3
LINE_SECONDS = 15.0
"""Where no terminal shows a bar, a line is written this often."""
_RECENT_STAGES = 64

_OnTasks = Callable[[int, int], None]
"""How many tasks are done, of how many that are known now."""


@contextlib.contextmanager
def progress(session: "SparkSession", doing: str, *, shown: bool | None = None) -> Iterator[None]:
    """Shows how far the jobs are that are started inside.

    Args:
        session: whose jobs; all of them, since a command has the session for itself.
        doing: what is being done, for people.
        shown: a bar (True) or nothing (False); None is a bar on a terminal, and lines elsewhere.
    """
    if shown is False:
        yield
        return
    display = _bar(doing) if shown or sys.stderr.isatty() else _lines(doing)
    ended = threading.Event()
    with display as on_tasks:
        watcher = threading.Thread(
            target=_watch,
            args=(session.sparkContext, on_tasks, ended),
            name="spark-progress",
            daemon=True,
        )
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


@contextlib.contextmanager
def _bar(doing: str) -> Iterator[_OnTasks]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.completed:.0f} of {task.total:.0f} tasks"),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
    )
    with bars:
        bar = bars.add_task(doing, total=1)
        yield lambda done, total: bars.update(bar, completed=done, total=max(1, total))


@contextlib.contextmanager
def _lines(doing: str) -> Iterator[_OnTasks]:
    begun = time.monotonic()
    due = begun + LINE_SECONDS

    def on_tasks(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now < due:
            return
        due = now + LINE_SECONDS
        sys.stderr.write(progress_line(doing, done, total, now - begun) + "\n")
        sys.stderr.flush()

    yield on_tasks


def progress_line(doing: str, done: int, total: int, seconds: float) -> str:
    """How far a job is after some seconds; with an estimate once a tenth of its tasks are done. Pure."""
    said = f"{doing}: {done:,} of {total:,} tasks after {_span(seconds)}"
    if total and total > done >= total / 10:
        said += f", about {_span(seconds * (total - done) / done)} left"
    return said


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


def _watch(context: "SparkContext", on_tasks: _OnTasks, ended: threading.Event) -> None:
    """Adds up the tasks of all stages seen; a finished stage counts as whole."""
    tracker = context.statusTracker()
    seen: dict[int, tuple[int, int]] = {}
    done = total = 0
    while not ended.wait(LOOK_SECONDS):
        with contextlib.suppress(Exception):  # showing progress is no reason to fail
            active = set(tracker.getActiveStageIds())
            for stage in [*active, *seen][:_RECENT_STAGES]:
                info = tracker.getStageInfo(stage)
                if info is not None:
                    seen[stage] = (info.numCompletedTasks, info.numTasks)
            done = sum(completed for completed, _ in seen.values())
            total = sum(tasks for _, tasks in seen.values())
            on_tasks(done, total)
    on_tasks(total, total)
