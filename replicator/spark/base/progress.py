"""Progress of Spark jobs on standard error, by records and bytes: a bar, or a line now and then."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from replicator.spark.base.amounts import Amount, progress_line, size_text

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOOK_SECONDS = 0.3
ASK_SECONDS = 3.0
"""How often a cluster or Spark's own figures are asked how many records are done."""
LINE_SECONDS = 15.0
"""Where no terminal shows a bar, a line is written this often."""
_RECENT_STAGES = 64


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the jobs are: tasks that ended, those known, and what is done of the whole."""

    done: int = 0
    total: int = 0
    reached: Amount | None = None


_OnStanding = Callable[[Standing], None]


@contextlib.contextmanager
def progress(
    session: "SparkSession | None",
    doing: str,
    *,
    shown: bool | None = None,
    whole: Amount | None = None,
    reached: Callable[[], Amount] | None = None,
) -> Iterator[None]:
    """Shows how far the jobs are that are started inside.

    Args:
        session: whose jobs; all of them, since a command has the session for itself. None where no Spark runs:
            then ``reached`` alone says how far they are.
        doing: what is being done, for people.
        shown: a bar (True) or nothing (False); None is a bar on a terminal, and lines elsewhere.
        whole: what there is to do; None where only tasks can be counted.
        reached: says what is done, called every few seconds in a thread of its own; by default the
            records are taken that Spark's stages have read.
    """
    if shown is False:
        yield
        return
    display = _bar(doing, whole) if shown or sys.stderr.isatty() else _lines(doing, whole)
    ended = threading.Event()
    with display as on_standing:
        context = None if session is None else session.sparkContext
        watcher = _Watcher(context, on_standing, ended, whole, reached)
        thread = threading.Thread(target=watcher.run, name="spark-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextlib.contextmanager
def _bar(doing: str, whole: Amount | None) -> Iterator[_OnStanding]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
    )

    def on_standing(now: Standing) -> None:
        if whole is None or now.reached is None:
            said = f"{now.done:,} of {now.total:,} tasks"
            bars.update(bar, completed=now.done, total=max(1, now.total), said=said)
            return
        said = f"{now.reached.records:,} of {whole.records:,} records"
        if now.reached.size >= 0 and whole.size >= 0:
            said += f", {size_text(now.reached.size)} of {size_text(whole.size)}"
        bars.update(bar, completed=now.reached.records, total=max(1, whole.records), said=said)

    with bars:
        bar = bars.add_task(doing, total=1, said="")
        yield on_standing


@contextlib.contextmanager
def _lines(doing: str, whole: Amount | None) -> Iterator[_OnStanding]:
    begun = time.monotonic()
    due = begun + LINE_SECONDS

    def on_standing(standing: Standing) -> None:
        nonlocal due
        now = time.monotonic()
        if now < due:
            return
        due = now + LINE_SECONDS
        line = progress_line(
            doing, standing.done, standing.total, now - begun,
            reached=standing.reached, whole=whole,
        )  # fmt: skip
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    yield on_standing


class _Watcher:
    """Adds up the tasks and the records of all stages seen; a finished stage counts as whole."""

    def __init__(
        self,
        context: "SparkContext | None",
        on_standing: _OnStanding,
        ended: threading.Event,
        whole: Amount | None,
        reached: Callable[[], Amount] | None,
    ) -> None:
        self._context = context
        self._on_standing = on_standing
        self._ended = ended
        self._whole = whole
        self._ask = reached
        self._before: set[int] = set()
        self._stages: dict[int, tuple[int, int]] = {}
        self._records: dict[int, int] = {}
        self._reached: Amount | None = None
        self._asked_at = time.monotonic()

    def run(self) -> None:
        """Looks until the work has ended."""
        while not self._ended.wait(LOOK_SECONDS):
            with contextlib.suppress(Exception):  # showing progress is no reason to fail
                self._look()
                self._on_standing(self._standing())
        total = sum(tasks for _, tasks in self._stages.values())
        whole = self._whole if self._reached is not None else None
        with contextlib.suppress(Exception):
            self._on_standing(Standing(total, total, whole))

    def _standing(self) -> Standing:
        done = sum(completed for completed, _ in self._stages.values())
        total = sum(tasks for _, tasks in self._stages.values())
        return Standing(done, total, self._reached)

    def _look(self) -> None:
        recent = [] if self._context is None else self._stages_seen(self._context)
        if self._whole is None or time.monotonic() - self._asked_at < ASK_SECONDS:
            return
        self._asked_at = time.monotonic()
        if self._ask is not None:
            self._reached = self._ask()
            return
        context: Any = self._context
        store = context._jsc.sc().statusStore()  # noqa: SLF001  the figures of Spark's own pages
        for stage in recent:
            self._records[stage] = store.lastStageAttempt(stage).inputRecords()
        self._reached = self._whole.part(sum(self._records.values()))

    def _stages_seen(self, context: "SparkContext") -> list[int]:
        """Counts the tasks of the stages; returns those that may still move."""
        tracker = context.statusTracker()
        active = set(tracker.getActiveStageIds())
        recent = [*active, *self._stages][:_RECENT_STAGES]
        for stage in recent:
            info = tracker.getStageInfo(stage)
            if info is not None:
                self._stages[stage] = (info.numCompletedTasks, info.numTasks)
        return recent
