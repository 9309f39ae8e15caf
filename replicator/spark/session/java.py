"""Checks before Spark starts that this machine has what Spark needs, so that what is missing is named."""

import importlib.util
import os
import re
import shutil
from pathlib import Path

from replicator.errors import ReplicatorError
from replicator.programs import run_program
from replicator.wire.connection.tcp import open_tcp

MINIMUM_JAVA = 17
_ASK_SECONDS = 20.0
_MODULES = ("pyspark", "pyarrow", "pandas")
_CONNECT_SECONDS = 5.0
_ADDRESS = re.compile(r"(\[[^\]]+\]|[^/,:\[\]]+):(\d+)")
_VERSION = re.compile(r'version "(\d+)')
_JAVA_REMEDY = (
    f"Install a Java {MINIMUM_JAVA} runtime or newer and have `java` on PATH or JAVA_HOME set: Debian, "
    "Ubuntu: `apt install openjdk-17-jre-headless`; macOS: `brew install openjdk@17`."
)


class SparkUnavailableError(ReplicatorError):
    """Spark cannot run here: the extra or a Java runtime is missing, or it did not start."""

    code = "SPARK_UNAVAILABLE"


def require_spark() -> None:
    """Checks that the Python packages and a Java runtime are there.

    Raises:
        SparkUnavailableError: one is missing or too old; names it and how to get it.
    """
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise SparkUnavailableError(
            f"this command runs on Spark, and {', '.join(missing)} cannot be imported",
            remedy="Install the extra: `pip install 'replicator[spark]'`.",
        )
    require_java()


def require_java() -> None:
    """Checks that the Java runtime that Spark will use is there and new enough.

    Raises:
        SparkUnavailableError: it is missing, does not run, or is too old.
    """
    java = _java()
    home = os.environ.get("JAVA_HOME")
    if java is None and home:
        raise SparkUnavailableError(
            f"Spark needs Java, and JAVA_HOME is {home}, where there is no bin/java",
            remedy=f"Correct or unset JAVA_HOME. {_JAVA_REMEDY}",
        )
    if java is None:
        raise SparkUnavailableError("Spark needs Java, and there is none", remedy=_JAVA_REMEDY)
    answer = run_program([java, "-version"], timeout_seconds=_ASK_SECONDS)
    found = _VERSION.search(answer.output)
    if found is None:
        why = answer.problem or "it does not print its version"
        raise SparkUnavailableError(f"{java} does not run ({why})", remedy=_JAVA_REMEDY)
    if int(found.group(1)) < MINIMUM_JAVA:
        raise SparkUnavailableError(
            f"Spark needs Java {MINIMUM_JAVA} or newer, and {java} is {found.group(1)}",
            remedy=_JAVA_REMEDY,
        )


def require_reachable(master: str) -> None:
    """Checks that a standalone or Kubernetes master answers; Spark itself waits a minute for it.

    Raises:
        SparkUnavailableError: no address of the master accepts a connection.
    """
    addresses = _ADDRESS.findall(master) if master.startswith(("spark://", "k8s://")) else []
    reasons: list[str] = []
    for host, port in addresses:
        try:
            open_tcp((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    if reasons:
        raise SparkUnavailableError(
            f"no Spark master answers at {master} ({'; '.join(reasons)})",
            remedy="Check --master, and that the master runs.",
        )


def _java() -> str | None:
    """The runtime that Spark takes: that of JAVA_HOME before the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        own = Path(home) / "bin" / "java"
        return str(own) if own.exists() else None
    return shutil.which("java")
