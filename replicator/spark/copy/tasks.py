"""Where the tasks of a copy run: on Spark where somebody asks for it, else in processes of this machine.

The same function copies a range in both. On the cores of one machine Spark adds nothing but its start, of some
14 CPU seconds; see docs/decisions/history-without-spark.md.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from replicator.spark.copy.bulk_plan import BulkPlan
from replicator.spark.copy.local_tasks import LocalTasks, usable_cores
from replicator.spark.copy.task import CopyOrder, CopyResult, copied, patience_of_attempt
from replicator.spark.session.interruption import Interruption, interruptible, uninterrupted
from replicator.spark.session.java import require_spark
from replicator.spark.session.session import spark_session
from replicator.spark.session.settings import SparkSettings, asks_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Tasks(Protocol):
    """What runs ranges, each as one task."""

    @property
    def master(self) -> str:
        """Where they run, for the manifest."""

    @property
    def at_once(self) -> int:
        """How many run at once at most."""

    @property
    def session(self) -> "SparkSession | None":
        """The session where they run on Spark."""

    def copy(self, orders: Iterable[CopyOrder]) -> tuple[CopyResult, ...]:
        """Copies all ranges; those of different partitions at once, none is ever split.

        Raises:
            ReplicatorError: a range could not be copied; a later run goes on.
        """


class SparkTasks:
    """Tasks of a Spark session."""

    def __init__(self, session: "SparkSession") -> None:
        self.session = session
        self.master = str(session.sparkContext.master)
        self.at_once = session.sparkContext.defaultParallelism

    def copy(self, orders: Iterable[CopyOrder]) -> tuple[CopyResult, ...]:
        """One task per order."""
        listed = list(orders)
        if not listed:
            return ()
        tasks = self.session.sparkContext.parallelize(listed, len(listed))
        return tuple(tasks.map(_copied_by_spark).collect())


def _copied_by_spark(order: CopyOrder) -> CopyResult:
    return copied(order, patience_of_attempt())


def needs_spark(settings: SparkSettings, found: BulkPlan) -> bool:
    """Whether Spark runs the copy: it was asked for, or the last value of each key is looked for.

    Raises:
        InputError: the installation's Spark settings cannot be read.
    """
    return found.keeps_latest or asks_for_spark(settings)


@contextlib.contextmanager
def copy_tasks(settings: SparkSettings, found: BulkPlan, *, name: str) -> Iterator[Tasks]:
    """Yields what copies the ranges, and ends all its processes.

    Ctrl-C comes out as KeyboardInterrupt and SIGTERM as SystemExit(143).

    Args:
        settings: what the command was told about Spark.
        found: what is copied.
        name: of the Spark application.

    Raises:
        SparkUnavailableError: Spark is needed, and it is missing or does not start.
        ReplicatorError: what was done with the tasks failed.
    """
    if needs_spark(settings, found):
        require_spark()
        with spark_session(settings, name=name, with_source=found.keeps_latest) as session:
            yield SparkTasks(session)
        return
    tasks = LocalTasks(min(usable_cores(), max(1, len(found.ranges))), debug=settings.debug)
    try:
        with interruptible(Interruption(tasks.close)):
            yield tasks
    finally:
        with uninterrupted():
            tasks.close()
