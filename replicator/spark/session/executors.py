"""Are the executors fit for our tasks? Asked by a job of its own, before the first task.

A task that lacks a package fails after partitions were taken from their lanes, in the words of Python.
So each executor first reports its Python and its packages; what is missing or other is named at once.
"""

import contextlib
import importlib
import importlib.metadata
import os
import platform
import socket
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from replicator.errors import InputError, ReplicatorError
from replicator.spark.base.java_errors import PYTHON_CODE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB_GROUP = "replicator-executors"
_ROUNDS = 3
_TASKS_PER_EXECUTOR = 4
"""Spark places tasks as it likes: a few more than one for each executor reach all of them."""
_QUIET_SECONDS = 15.0
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class ExecutorReport:
    """What one executor's Python has.

    Attributes:
        place: host and working folder, which tell executors apart.
        host: for people.
        python: ``major.minor``.
        platform: system, machine and C library.
        versions: by distribution; those that are not there left out.
        broken: distributions and user modules that cannot be imported, with the reason.
    """

    place: str
    host: str
    python: str
    platform: str
    versions: tuple[tuple[str, str], ...]
    broken: tuple[tuple[str, str], ...]


def report(needed: Sequence[str], modules: Sequence[str]) -> ExecutorReport:
    """What this Python has of the distributions and modules; runs in a task, and on the driver."""
    versions: list[tuple[str, str]] = []
    broken: list[tuple[str, str]] = []
    owners = _top_modules(needed)
    for name in needed:
        try:
            versions.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
        broken += _import_problem(owners.get(name, ""), name)
    for module in modules:
        broken += _import_problem(module, module)
    host = socket.gethostname()
    return ExecutorReport(
        place=f"{host}:{os.getcwd()}",  # noqa: PTH109  the words of the system
        host=host,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        platform=" ".join((platform.system(), platform.machine(), *platform.libc_ver())).strip(),
        versions=tuple(versions),
        broken=tuple(broken),
    )


def problems(
    here: ExecutorReport, reports: Iterable[ExecutorReport], needed: Sequence[str]
) -> tuple[str, ...]:
    """What is wrong with executors, each once with the hosts it concerns. Pure.

    Versions are compared by their first two numbers: a patch release changes no behaviour.
    """
    found: dict[str, list[str]] = {}
    ours = dict(here.versions)
    for each in reports:
        said: list[str] = []
        if each.python != here.python:
            said.append(f"Python {each.python} instead of {here.python}")
        there = dict(each.versions)
        missing = [name for name in needed if name not in there]
        if missing:
            said.append(f"no {', '.join(missing)}")
        said += [
            f"{name} {there[name]} instead of {ours[name]}"
            for name in needed
            if name in there and name in ours and _minor(there[name]) != _minor(ours[name])
        ]
        said += [f"{name} cannot be imported ({reason})" for name, reason in each.broken]
        for text in said:
            hosts = found.setdefault(text, [])
            if each.host not in hosts:
                hosts.append(each.host)
    return tuple(f"{text} (on {_some(hosts)})" for text, hosts in found.items())


def check_executors(
    session: "SparkSession", needed: Sequence[str], modules: Sequence[str], *, shipped: bool
) -> None:
    """Asks every executor that there is.

    Args:
        session: of a master other than local.
        needed: distributions that tasks import.
        modules: user modules that tasks import.
        shipped: whether the environment was packed for them.

    Raises:
        InputError: an executor lacks something, or has another version; each is named.
    """
    here = report(needed, ())
    with _told_when_quiet():
        try:
            reports = _asked(session, tuple(needed), tuple(modules))
        except ReplicatorError as error:
            if error.code == PYTHON_CODE:
                raise InputError(
                    error.message, subject=error.subject, remedy=error.remedy
                ) from error
            raise
    wrong = problems(here, reports, needed)
    if not wrong:
        return
    other = sorted({each.platform for each in reports} - {here.platform})
    hint = (
        f" They run {other[0]}, and this machine is {here.platform}." if shipped and other else ""
    )
    remedy = (
        "Run the command on a machine like the executors, or install these packages there."
        if shipped
        else "Install them there, or let --ship send what tasks need; --conf spark.pyspark.python=PATH names "
        "another Python."
    )
    raise InputError(f"Spark's executors have {'; '.join(wrong)}.{hint}", remedy=remedy)


def _asked(
    session: "SparkSession", needed: tuple[str, ...], modules: tuple[str, ...]
) -> list[ExecutorReport]:
    from replicator.spark.base.failures import spark_failures

    context: Any = session.sparkContext
    context.setJobGroup(JOB_GROUP, "Asking executors what they have")
    found: dict[str, ExecutorReport] = {}
    for _ in range(_ROUNDS):
        executors = max(1, context._jsc.sc().getExecutorMemoryStatus().size() - 1)  # noqa: SLF001
        tasks = _TASKS_PER_EXECUTOR * executors
        with spark_failures():
            rows = context.parallelize(range(tasks), tasks).map(_Ask(needed, modules)).collect()
        found |= {row.place: row for row in rows}
        if len(found) >= executors:
            break
    context.setLocalProperty("spark.jobGroup.id", None)
    context.setLocalProperty("spark.job.description", None)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Ask:
    """The body of a task."""

    needed: tuple[str, ...]
    modules: tuple[str, ...]

    def __call__(self, _number: int) -> ExecutorReport:
        return report(self.needed, self.modules)


@contextlib.contextmanager
def _told_when_quiet() -> Iterator[None]:
    """Says what is waited for where the cluster has no executor to give."""

    def tell() -> None:
        sys.stderr.write("Waiting for the executors of the Spark cluster: none has answered yet.\n")
        sys.stderr.flush()

    timer = threading.Timer(_QUIET_SECONDS, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _top_modules(needed: Sequence[str]) -> dict[str, str]:
    """What is imported of a distribution."""
    return {name: _MODULES.get(name, name.replace("-", "_")) for name in needed}


_MODULES = {"kafka-python": "kafka"}


def _import_problem(module: str, name: str) -> list[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a library's own worries are not what is asked
            importlib.import_module(module)
    except Exception as error:  # noqa: BLE001  compiled parts and user modules raise what they like
        return [(name, f"{type(error).__name__}: {error}")]
    return []


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


def _some(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - _SHOWN} more" if len(hosts) > _SHOWN else ""
    return f"{', '.join(hosts[:_SHOWN])}{more}"
