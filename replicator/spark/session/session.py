"""One Spark session per command: started quietly, watched, cancelled cleanly, and always stopped.

A session that is already there (a notebook's, a test run's) is used as it is and left running.
"""

import contextlib
import logging
import os
import signal
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from replicator.spark.base.failures import spark_failures
from replicator.spark.session.java import SparkUnavailableError, require_spark
from replicator.spark.session.settings import SparkSettings, is_local, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_TAIL_LINES = 3


@contextlib.contextmanager
def spark_session(settings: SparkSettings, *, name: str) -> "Iterator[SparkSession]":
    """Yields a session with the ``replicator-kafka`` source registered; stops it if it started it.

    Ctrl-C and SIGTERM cancel running jobs and come out as KeyboardInterrupt. Errors of Spark come
    out as errors of our tree, those of our own tasks as they were raised.

    Args:
        settings: master, settings and how much is shown.
        name: of the application, as Spark's own tools show it.

    Raises:
        SparkUnavailableError: the extra or Java is missing, or the session does not start.
        InputError: a setting or the properties file cannot be used.
        ReplicatorError: what was done with the session failed.
    """
    require_spark()
    from pyspark.sql import SparkSession

    from replicator.spark.source.data_source import KafkaDataSource

    held = SparkSession.getActiveSession()
    if held is not None:
        held.dataSource.register(KafkaDataSource)
        with spark_failures():
            yield held
        return
    with tempfile.TemporaryDirectory(prefix="replicator-spark-") as folder:
        interrupts = signal.getsignal(signal.SIGINT)
        session = _start(settings, name, Path(folder))
        if threading.current_thread() is threading.main_thread():
            # PySpark installs a handler of its own, which fails once its session has ended; what it
            # does meanwhile is done below.
            signal.signal(signal.SIGINT, interrupts)
        try:
            session.dataSource.register(KafkaDataSource)
            with _terminated_as_interrupted(), _without_chatter(), spark_failures():
                yield session
        except BaseException:
            with contextlib.suppress(Exception):  # the driver may be gone: the first error counts
                session.sparkContext.cancelAllJobs()
            raise
        finally:
            with contextlib.suppress(Exception):
                session.stop()


def _start(settings: SparkSettings, name: str, folder: Path) -> "SparkSession":
    from pyspark.sql import SparkSession

    conf = spark_conf(settings)
    local = is_local(conf["spark.master"])
    # PySpark reads only the environment to find the Python of its tasks.
    python = conf.get("spark.pyspark.python") or (sys.executable if local else None)
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    conf.setdefault("spark.sql.warehouse.dir", str(folder / "warehouse"))
    log = folder / "driver.log"
    # It logs every connection it closes, with tracebacks for those that an interrupt breaks.
    logging.getLogger("py4j").setLevel(logging.WARNING if settings.debug else logging.CRITICAL + 1)
    builder = SparkSession.builder.appName(name).config(map={**conf})
    try:
        with contextlib.nullcontext() if settings.debug else _stderr_into(log):
            session = builder.getOrCreate()
    except Exception as error:
        raise SparkUnavailableError(
            f"Spark did not start with master {conf['spark.master']}: {_why(log, error)}",
            remedy="Check --master and --conf; --debug shows everything Spark says.",
        ) from error
    session.sparkContext.setLogLevel("WARN" if settings.debug else "OFF")
    if not settings.debug:
        _silence_counters(session)
    if not local:
        session.sparkContext.addPyFile(str(_packed(folder)))
    return session


def _silence_counters(session: "SparkSession") -> None:
    """The library's server of counters prints a traceback when the driver goes away before it."""
    context: Any = session.sparkContext
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


@contextlib.contextmanager
def _stderr_into(log: Path) -> Iterator[None]:
    """Lets the JVM inherit a file as its standard error: most of what it writes helps no operator."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
            try:
                yield
            finally:
                os.dup2(kept, 2)
    finally:
        os.close(kept)


def _why(log: Path, error: Exception) -> str:
    """The JVM's last lines, else what the Python exception says."""
    if log.exists():
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
        said = [line for line in lines if line and not line.startswith(("at ", "WARNING", "..."))]
        if said:
            return " / ".join(said[-_LOG_TAIL_LINES:])
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _packed(folder: Path) -> Path:
    """This package as an archive that executors put on their path."""
    import replicator

    root = Path(replicator.__file__).parent
    archive = folder / "replicator.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                packed.write(file, Path("replicator") / file.relative_to(root))
    return archive


@contextlib.contextmanager
def _without_chatter() -> Iterator[None]:
    """Keeps the library from printing a traceback of its own when it is interrupted."""

    def ours(record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"

    root = logging.getLogger()
    root.addFilter(ours)
    try:
        yield
    finally:
        root.removeFilter(ours)


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends a command the way Ctrl-C does; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
