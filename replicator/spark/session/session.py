"""One Spark session per command: started quietly, and always ended with all its processes.

A session that is already there (a notebook's, a test run's) is used as it is and left running.
"""

import contextlib
import logging
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replicator.spark.base.failures import spark_failures
from replicator.spark.base.java_errors import errors_in_log, innermost_cause
from replicator.spark.session.executors import check_executors
from replicator.spark.session.interruption import Interruption, interruptible, uninterrupted
from replicator.spark.session.java import SparkUnavailableError, require_reachable, require_spark
from replicator.spark.session.processes import child_processes, end_processes
from replicator.spark.session.settings import DEFAULT_MASTER, SparkSettings, is_local, spark_conf
from replicator.spark.session.shipping import NEEDED, SITE, pack_site

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_SECONDS = 10.0
GRACE_SECONDS = 2.0


@contextlib.contextmanager
def spark_session(
    settings: SparkSettings, *, name: str, with_source: bool = True
) -> "Iterator[SparkSession]":
    """Yields a session with the ``replicator-kafka`` source registered; stops it if it started it.

    Ctrl-C comes out as KeyboardInterrupt and SIGTERM as SystemExit(143), also while Spark starts; the
    JVM and all Python workers have ended then. Errors of Spark come out as errors of our tree, those of
    our own tasks as they were raised.

    Args:
        settings: master, settings and how much is shown.
        name: of the application, as Spark's own tools show it.
        with_source: whether the source is needed; without it Spark SQL is not started.

    Raises:
        SparkUnavailableError: the extra or Java is missing, or the session does not start.
        InputError: a setting or the properties file cannot be used.
        ReplicatorError: what was done with the session failed.
    """
    before = child_processes()
    interruption = Interruption(lambda: _end_processes(before))
    with interruptible(interruption):
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
        session: SparkSession | None = None
        try:
            with interruptible(interruption):
                session = _start(settings, name, Path(folder))
            # Again: PySpark installs a handler of its own while it starts.
            with interruptible(interruption):
                _prepare_executors(session, settings, Path(folder))
                if with_source:
                    session.dataSource.register(KafkaDataSource)
                with spark_failures():
                    yield session
        except Exception:
            _stop(session)
            raise
        else:
            _stop(session)
        finally:
            with uninterrupted():
                _end_processes(before)
                _forget_jvm()


def _stop(session: "SparkSession | None") -> None:
    """Stops a session in order; a driver that is gone or hangs is ended by ``_end_processes``."""
    if session is not None:
        stopping = threading.Thread(target=_stopped, args=(session,), daemon=True)
        stopping.start()
        stopping.join(STOP_SECONDS)


def _stopped(session: "SparkSession") -> None:
    with contextlib.suppress(Exception):
        session.stop()


def _end_processes(before: frozenset[int]) -> None:
    """Ends the JVM and the Python workers; while it starts, whatever was started since ``before``."""
    jvm = _jvm()
    roots = child_processes() - before if jvm is None else frozenset({jvm.pid})
    end_processes(roots, grace_seconds=GRACE_SECONDS)


def _forget_jvm() -> None:
    """So that a later session of this process starts a JVM of its own."""
    from pyspark import SparkContext

    jvm = _jvm()
    if jvm is not None:
        with contextlib.suppress(OSError), jvm:  # closes its pipe and waits for its end
            pass
    context: Any = SparkContext
    context._gateway = context._jvm = context._active_spark_context = None  # noqa: SLF001


def _jvm() -> "subprocess.Popen[bytes] | None":
    """The JVM that PySpark has started, once it answers."""
    library = sys.modules.get("pyspark")
    gateway = getattr(getattr(library, "SparkContext", None), "_gateway", None)
    return getattr(gateway, "proc", None)


def _start(settings: SparkSettings, name: str, folder: Path) -> "SparkSession":
    from pyspark.sql import SparkSession

    conf = spark_conf(settings)
    require_reachable(conf["spark.master"])
    local = is_local(conf["spark.master"])
    # PySpark reads only the environment to find the Python of its tasks.
    python = conf.get("spark.pyspark.python") or (sys.executable if local else None)
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    conf.setdefault("spark.sql.warehouse.dir", str(folder / "warehouse"))
    log = folder / "driver.log"
    quiet_library(debug=settings.debug)
    if settings.ship and not local:
        site = "spark.executorEnv.PYTHONPATH"
        conf[site] = os.pathsep.join(filter(None, (SITE, conf.get(site))))
    builder = SparkSession.builder.appName(name).config(map={**conf})
    try:
        with (
            contextlib.nullcontext() if local else _own_packages_on_python_path(),
            contextlib.nullcontext() if settings.debug else _stderr_into(log),
        ):
            session = builder.getOrCreate()
    except Exception as error:
        raise SparkUnavailableError(
            f"Spark did not start with master {conf['spark.master']}: {_why(log, error)}",
            remedy="Check --master and --conf; --debug shows everything Spark says.",
        ) from error
    session.sparkContext.setLogLevel("WARN" if settings.debug else "OFF")
    if not settings.debug:
        _silence_counters(session)
    return session


def _prepare_executors(session: "SparkSession", settings: SparkSettings, folder: Path) -> None:
    """On a cluster: sends what tasks need, and asks the executors whether they have all of it.

    Raises:
        InputError: an executor lacks a package or has another version.
    """
    context = session.sparkContext
    if is_local(context.master or DEFAULT_MASTER):
        return
    context.addPyFile(str(_packed(folder)))
    if settings.ship:
        context.addArchive(f"{pack_site(folder, settings.modules)}#{SITE}")
    check_executors(session, NEEDED, settings.modules, shipped=settings.ship)


@contextlib.contextmanager
def _own_packages_on_python_path() -> Iterator[None]:
    """For the JVM's own Python, which plans queries on this machine and is named as the executors' is.

    Executors are not started from here and have a path of their own.
    """
    kept = os.environ.get("PYTHONPATH")
    library = sysconfig.get_path("stdlib")
    own = [
        each
        for each in sys.path
        if each
        and Path(each).is_dir()
        and ("site-packages" in each or not each.startswith(library))
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join(own)
    try:
        yield
    finally:
        if kept is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = kept


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
    """The JVM's first error, without the format of Spark's log; else what the Python exception says."""
    said = errors_in_log(log.read_text(errors="replace")) if log.exists() else ""
    if said:
        return said
    return innermost_cause(str(error)).rstrip(".")


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


def quiet_library(*, debug: bool = False) -> None:
    """Keeps the library from printing tracebacks of its own, for as long as this process lives.

    It logs every connection that breaks, on the root logger: those that an interrupt breaks, and those over
    which its own threads still ask for something when the JVM has ended.
    """
    logging.getLogger("py4j").setLevel(logging.WARNING if debug else logging.CRITICAL + 1)
    root = logging.getLogger()
    if _is_ours not in root.filters:
        root.addFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
