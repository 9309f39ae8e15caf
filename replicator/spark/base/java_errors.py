"""What went wrong in the JVM or in a task's Python, as one sentence with a remedy. Pure.

Spark wraps a cause into several errors, and Py4J names only the outermost call. The text of its stack
trace holds them all: the rules below look for the causes that operators meet, and else the innermost
cause is named.
"""

import re
from collections.abc import Callable

from replicator.errors import ReplicatorError


class SparkJobError(ReplicatorError):
    """A job failed; the message says why, as far as Spark reports it."""

    code = "SPARK_JOB_FAILED"


PYTHON_CODE = "SPARK_PYTHON"
"""Of errors about the Python or the Spark release of the executors, which persist however often it is tried."""

_CAUSE = re.compile(r"^(?:: |Caused by: )((?:[\w$]+\.)+[\w$]+)(?:: (.*))?$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_WRITING = re.compile(r"while writing rows to (\S+?)\.? ")
_ERROR_LINES = 2
_LOG_LINE = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:TRACE|DEBUG|INFO|WARN) |at |Using Spark|WARNING|\.\.\."
    r"|Setting default log level|To adjust logging level"
)
_LOG_PREFIX = re.compile(
    r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d ERROR [\w$.]+: |^Exception in thread \"\w+\" (?:[\w$]+\.)+\w+: "
)
_NO_PACKAGES = re.compile(
    r"RuntimeException: \[((?:unresolved dependency|download failed): [^\n]*)\]"
)
"""Said by Spark's resolver of packages, at the end of a long report."""
_MORE_MEMORY = (
    "Give it more with --conf spark.driver.memory=4g (or spark.executor.memory on a cluster)."
)
_Error = Callable[[re.Match[str], str], SparkJobError]
_Rule = tuple[re.Pattern[str], _Error]


def spark_job_error(text: str) -> SparkJobError:
    """The error for what Spark, Py4J or a task's traceback says."""
    for pattern, error in _RULES:
        found = pattern.search(text)
        if found is not None:
            return error(found, text)
    return SparkJobError(
        f"a Spark job failed: {innermost_cause(text).rstrip('.')}",
        remedy="Run it again with --debug for the details.",
    )


def innermost_cause(text: str) -> str:
    """The last error that the text names: a Python one before a Java one, else its first line."""
    named = _PYTHON_ERROR.findall(text)
    if named:
        return f"{named[-1][0]}: {named[-1][1]}"
    causes = [(name, message) for name, message in _CAUSE.findall(text) if message]
    if causes:
        name, message = causes[-1]
        return f"{name.rpartition('.')[2]}: {message}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no reason given"


def _damaged_file(found: re.Match[str], text: str) -> SparkJobError:
    return SparkJobError(
        f"the file cannot be read ({innermost_cause(text).rstrip('.')})",
        subject=found.group(1).rstrip("."),
        remedy="It is damaged: bring it back from a copy.",
    )


def _missing_file(found: re.Match[str], _text: str) -> SparkJobError:
    return SparkJobError(
        "the file is not there any more",
        subject=found.group(1).rstrip("."),
        remedy="Another command may have replaced it: run it again.",
    )


def _full_disk(_found: re.Match[str], text: str) -> SparkJobError:
    writing = _WRITING.search(text)
    return SparkJobError(
        "no space is left on the disk",
        subject=writing.group(1) if writing else "",
        remedy="Free space there or name another folder; Spark's own files go to spark.local.dir.",
    )


def _unwritable(found: re.Match[str], _text: str) -> SparkJobError:
    folder = next((part for part in found.groups() if part), "")
    return SparkJobError(
        "the folder cannot be written",
        subject=folder.partition("/_temporary/")[0],
        remedy="Name another folder, or permit this user to write there.",
    )


def _says(message: str, remedy: str, *, code: str = SparkJobError.code) -> _Error:
    """An error whose message has groups of the pattern as ``{1}``, and the innermost cause as ``{cause}``."""

    def error(found: re.Match[str], text: str) -> SparkJobError:
        cause = innermost_cause(text).rstrip(".")
        made = SparkJobError(message.format(found[0], *found.groups(), cause=cause), remedy=remedy)
        made.code = code
        return made

    return error


_RULES: tuple[_Rule, ...] = (
    (
        re.compile(
            r"default credentials were not found|NoAuthWithAWSException|NoAwsCredentialsException"
            r"|Unable to load credentials|No AWS Credentials|ConfigurationPropertyNotFoundException"
            r"|Failure to initialize configuration for storage account"
        ),
        _says(
            "there are no credentials for the object store ({cause})",
            "Name them as docs/spark.md says for this store ('In object stores').",
        ),
    ),
    (
        re.compile(
            r"Status Code: 403|InvalidAccessKeyId|SignatureDoesNotMatch|AuthenticationFailed|, 403,"
        ),
        _says(
            "the object store refuses our credentials ({cause})",
            "Check them and what they permit: reading, writing, listing and deleting.",
        ),
    ),
    (
        re.compile(r"UnknownHostException: (?:Unable to resolve host )?([\w-]+(?:\.[\w-]+)+)"),
        _says(
            "there is no host '{1}'",
            "Check the name of the store, account or cluster, and that this machine can look it up.",
        ),
    ),
    (re.compile(r"No space left on device|DiskOutOfSpaceException"), _full_disk),
    (re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST\].*? file (\S+)"), _missing_file),
    (re.compile(r"Encountered error while reading file (\S+)"), _damaged_file),
    (
        re.compile(
            r"Mkdirs failed to create (\S+)|Parent path is not a directory: (\S+)"
            r"|(?:AccessControlException|AccessDeniedException|Permission denied)[^/\n]*(/[^\s:\"]+)"
            r"|(/[^\s:\"]+) \(Permission denied\)|(/[^\s:\"]+)[^\n]*Read-only file system"
        ),
        _unwritable,
    ),
    (
        re.compile(r'No FileSystem for scheme "([^"]+)"'),
        _says(
            "Spark has no file system for '{1}'",
            "Add its jar with --conf spark.jars.packages=... (for s3a: org.apache.hadoop:hadoop-aws).",
        ),
    ),
    (
        re.compile(r"ModuleNotFoundError: No module named '([^']+)'"),
        _says(
            "the Python of Spark's tasks has no package '{1}'",
            "Install it where tasks run (docs/spark.md lists what they need), or name another Python "
            "with --conf spark.pyspark.python=PATH.",
        ),
    ),
    (
        re.compile(r'Cannot run program "([^"]*python[^"]*)"'),
        _says(
            "Spark's tasks cannot start Python as '{1}'",
            "Name one that is installed where tasks run with --conf spark.pyspark.python=PATH.",
            code=PYTHON_CODE,
        ),
    ),
    (
        re.compile(
            r"PYTHON_VERSION_MISMATCH\][^\n]*worker[^\d\n]*([\d.]+\d)[^\n]*driver[^\d\n]*([\d.]+\d)"
        ),
        _says(
            "Spark's tasks run Python {1}, and this command runs {2}",
            "Install the same version where tasks run and name it with --conf spark.pyspark.python=PATH.",
            code=PYTHON_CODE,
        ),
    ),
    (
        re.compile(r"InvalidClassException: org\.apache\.spark"),
        _says(
            "the cluster runs another release of Spark than this command",
            "Install the cluster's release beside replicator: `pip install pyspark==RELEASE`.",
            code=PYTHON_CODE,
        ),
    ),
    (
        re.compile(r"OutOfMemoryError: Java heap space"),
        _says(
            "Spark ran out of memory",
            _MORE_MEMORY,
        ),
    ),
    (
        re.compile(r"cancelled because SparkContext was shut down"),
        _says(
            "Spark ended while a job ran, as it does where its driver has no memory left",
            _MORE_MEMORY,
        ),
    ),
)


def errors_in_log(text: str) -> str:
    """The first errors of what a JVM wrote while it started, without the format of Spark's log; "" where there are none."""
    packages = _NO_PACKAGES.search(text)
    if packages is not None:
        return f"packages of spark.jars.packages cannot be fetched ({packages.group(1)})"
    lines = [line.strip() for line in text.splitlines()]
    said = [_LOG_PREFIX.sub("", line) for line in lines if line and not _LOG_LINE.match(line)]
    return " / ".join(said[:_ERROR_LINES]).rstrip(".")
