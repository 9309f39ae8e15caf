"""What a Spark session is made of: defaults, the installation's, a properties file, single settings.

Later wins: our defaults, then what the installation says (``spark-defaults.conf``, or ``spark-submit``
and all it was given), then the properties file, then ``--conf``, then ``--master``.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from replicator.errors import InputError
from replicator.mm2.properties.java_properties import ENCODING, parse_properties
from replicator.redaction import is_secret_setting, register_secret

DEFAULT_MASTER = "local[*]"
TASK_FAILURES = 4
"""How often a task may fail before the command fails; a local master allows one by itself."""

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""In the environment of a program that spark-submit runs: its JVM is there, with its settings."""
_OF_THE_PROGRAM = {"spark.app.name"}
"""What spark-submit fills in by itself, and every command names better."""
_LOCAL = re.compile(r"local(?:\[(\*|\d+)\])?")

_DEFAULTS = {
    "spark.driver.memory": "1g",
    "spark.speculation": "false",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # Records may be a megabyte each: batches between Spark and Python, and those read of a Parquet
    # file, are bounded by that, not by what suits records of a hundred bytes: with 128 of a Parquet file at once,
    # two tasks used up 1 GB. Small records are read as fast as with 128.
    "spark.sql.execution.arrow.maxBytesPerBatch": "16777216",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.parquet.columnarReaderBatchSize": "32",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    # Spark would write INT96, which other readers take for nanoseconds or refuse.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.task.maxFailures": str(TASK_FAILURES),
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL_DEFAULTS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
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
        ship: send what tasks need to the executors of a cluster.
        modules: names of user modules that tasks import, such as those of transforms.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    properties_file: Path | None = None
    debug: bool = False
    ship: bool = False
    modules: tuple[str, ...] = ()


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


def spark_conf(
    settings: SparkSettings, installation: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All settings of the session, ``spark.master`` among them.

    Args:
        settings: what the command was told.
        installation: what this machine's Spark says by itself; None reads it.

    Raises:
        InputError: the properties file cannot be read.
    """
    found = installed_settings() if installation is None else installation
    asked = {**found, **_from_file(settings.properties_file), **dict(settings.conf)}
    master = local_with_retries(settings.master or asked.get("spark.master") or DEFAULT_MASTER)
    defaults = _DEFAULTS
    if is_local(master):
        defaults = {**_DEFAULTS, **_LOCAL_DEFAULTS}
    elif "spark.eventLog.dir" in asked:
        defaults = {**_DEFAULTS, "spark.eventLog.enabled": "true"}
    for name, value in asked.items():
        if is_secret_setting(name):
            register_secret(value)
    return {**defaults, **asked, "spark.master": master}


def installed_settings() -> dict[str, str]:
    """What spark-submit was given, where it runs this program; else ``spark-defaults.conf``.

    Spark looks for that file in ``SPARK_CONF_DIR``, else in ``conf`` below ``SPARK_HOME``.

    Raises:
        InputError: the file is there and cannot be read.
    """
    if SUBMITTED in os.environ:
        from pyspark import SparkConf, SparkContext

        SparkContext._ensure_initialized()  # noqa: SLF001  the way to the settings of the JVM that is there
        found = dict(SparkConf().getAll())
        return {name: value for name, value in found.items() if name not in _OF_THE_PROGRAM}
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and str(Path(home) / "conf"))
    file = Path(folder or "") / "spark-defaults.conf"
    return dict(_from_file(file)) if folder and file.exists() else {}


def asks_for_spark(settings: SparkSettings) -> bool:
    """Whether somebody named a master or a setting: the command, spark-submit, or the installation's defaults.

    Raises:
        InputError: ``spark-defaults.conf`` is there and cannot be read.
    """
    if settings.master or settings.conf or settings.properties_file or settings.ship:
        return True
    return SUBMITTED in os.environ or "spark.master" in installed_settings()


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
