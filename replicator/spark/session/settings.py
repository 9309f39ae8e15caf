"""What a Spark session is made of: defaults, a properties file, single settings. Pure but for the file.

Later wins: our defaults, then the properties file, then ``--conf``, then ``--master``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from replicator.errors import InputError
from replicator.mm2.properties import ENCODING, parse_properties
from replicator.redaction import is_secret_setting, register_secret

DEFAULT_MASTER = "local[*]"
TASK_FAILURES = 4
"""How often a task may fail before the command fails; a local master allows one by itself."""

_LOCAL = re.compile(r"local(?:\[(\*|\d+)\])?")

_DEFAULTS = {
    "spark.driver.memory": "1g",
    "spark.speculation": "false",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # Records may be a megabyte each: batches between Spark and Python, and those read of a Parquet
    # file, are bounded by that, not by what suits records of a hundred bytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": "16777216",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.parquet.columnarReaderBatchSize": "128",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.task.maxFailures": str(TASK_FAILURES),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL_DEFAULTS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "16",
}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How a command wants its session.

    Attributes:
        master: ``--master``; None leaves it to the properties file, else ``local[*]``.
        conf: single settings, each ``("spark.x", "value")``.
        properties_file: a Java properties file as ``spark-submit`` takes it.
        debug: show what Spark logs.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    properties_file: Path | None = None
    debug: bool = False


def parse_conf(given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Reads ``--conf name=value`` options.

    Raises:
        InputError: one is not of that form; all of them are named.
    """
    pairs = [text.partition("=") for text in given]
    wrong = [name for name, equals, _ in pairs if not equals or not name.startswith("spark.")]
    if wrong:
        raise InputError(
            f"not a Spark setting: {', '.join(repr(name) for name in wrong)}",
            remedy="Write --conf spark.name=value.",
        )
    return tuple((name, value) for name, _, value in pairs)


def spark_conf(settings: SparkSettings) -> dict[str, str]:
    """All settings of the session, ``spark.master`` among them.

    Raises:
        InputError: the properties file cannot be read.
    """
    asked = {**_from_file(settings.properties_file), **dict(settings.conf)}
    master = local_with_retries(settings.master or asked.get("spark.master") or DEFAULT_MASTER)
    local = _LOCAL_DEFAULTS if is_local(master) else {}
    for name, value in asked.items():
        if is_secret_setting(name):
            register_secret(value)
    return {**_DEFAULTS, **local, **asked, "spark.master": master}


def is_local(master: str) -> bool:
    """Whether tasks run in this machine's own process."""
    return master.startswith("local[") or master == "local"


def local_with_retries(master: str) -> str:
    """A local master that retries failed tasks, as real clusters do; others as they are."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return master
    return f"local[{found.group(1) or 1},{TASK_FAILURES}]"


def _from_file(path: Path | None) -> Mapping[str, str]:
    if path is None:
        return {}
    try:
        text = path.read_text(encoding=ENCODING)
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror or error})",
            subject=str(path),
            remedy="Name a Spark properties file with --properties-file.",
        ) from error
    return {
        entry.key: entry.value.strip()
        for entry in parse_properties(text)
        if entry.key.startswith("spark.")
    }
