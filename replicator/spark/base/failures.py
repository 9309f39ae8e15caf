"""Errors of Spark jobs as errors of this product.

A task's own error reaches the driver inside the text of Java errors. So a task encodes what it raises in
one line that the driver finds and decodes.
"""

import contextlib
import json
import re
from collections.abc import Iterator

from replicator.errors import InputError, RefusedError, ReplicatorError
from replicator.spark.base.java_errors import SparkJobError, spark_job_error

_MARK = "REPLICATOR-TASK-ERROR "
_FOUND = re.compile(re.escape(_MARK) + r"(\{.*?\}) END")
_KINDS: dict[int, type[ReplicatorError]] = {2: InputError, 3: RefusedError}


class TaskError(Exception):
    """What a task raises instead of a ReplicatorError: its text survives the way to the driver."""


@contextlib.contextmanager
def task_errors() -> Iterator[None]:
    """To be put around the body of every task and every reader that runs in a Python worker."""
    try:
        yield
    except ReplicatorError as error:
        encoded = {
            "message": error.message,
            "subject": error.subject,
            "remedy": error.remedy,
            "code": error.code,
            "exit": error.exit_code,
            "retriable": error.retriable,
        }
        # The sentence first: it is what a notebook shows.
        raise TaskError(f"{error.paragraph()} {_MARK}{json.dumps(encoded)} END") from error


@contextlib.contextmanager
def spark_failures() -> Iterator[None]:
    """On the driver: turns what Spark raises into an error of our tree.

    Raises:
        ReplicatorError: a task's own error with its code, subject, remedy and exit code, or a
            SparkJobError with the most telling line.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, TaskError) as error:
        raise as_replicator_error(str(error)) from error


def said_by_a_task(text: str) -> ReplicatorError | None:
    """The error that one of our tasks or readers raised; None where it is Spark's own. Pure."""
    return as_replicator_error(text) if _FOUND.search(text) else None


def as_replicator_error(text: str) -> ReplicatorError:
    """What went wrong, from whatever Spark said. Pure."""
    found = _FOUND.search(text)
    if found is not None:
        encoded = json.loads(found.group(1))
        kind = _KINDS.get(encoded["exit"], SparkJobError)
        error = kind(encoded["message"], subject=encoded["subject"], remedy=encoded["remedy"])
        error.code, error.retriable = encoded["code"], encoded["retriable"]
        return error
    return spark_job_error(text)
