"""Kafka's own Java clients and tools, run once and to the end: the judges of what we write."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from replicator.errors import InputError, ReplicatorError
from replicator.testing.cluster.brokers.jars import KafkaJars, find_java, mirror_jars, package_file

_TIMEOUT_SECONDS = 120.0
_QUICK_START = ("-Xmx256m", "-XX:TieredStopAtLevel=1")
_CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def compile_java(sources: Sequence[Path], into: Path, *, jars: KafkaJars | None = None) -> Path:
    """Compiles Java sources against Kafka's jars; returns the directory of the classes.

    Raises:
        InputError: there is no compiler, or the sources do not compile.
    """
    beside = Path(find_java()).resolve().with_name("javac")
    javac = str(beside) if beside.exists() else shutil.which("javac")
    if javac is None:
        raise InputError(
            "no Java compiler was found",
            subject="javac",
            remedy="Install a JDK, 17 or newer: Debian, Ubuntu: `apt install openjdk-17-jdk-headless`.",
        )
    into.mkdir(parents=True, exist_ok=True)
    classpath = (jars or mirror_jars()).classpath
    command = [javac, "-nowarn", "-d", str(into), "-cp", classpath, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(f"the sources do not compile:\n{done.stderr}", subject="javac")
    return into


def run_java(
    main: str,
    arguments: Sequence[str],
    *,
    log: Path,
    classes: Path | None = None,
    jars: KafkaJars | None = None,
) -> str:
    """Runs a main class with Kafka's jars; returns what it printed. Its log goes to a file.

    Raises:
        ReplicatorError: it failed, with the end of its output, or did not end in time.
    """
    classpath = (jars or mirror_jars()).classpath
    command = [
        find_java(),
        *_QUICK_START,
        f"-Dreplicator.log={log}",
        f"-Dlog4j2.configurationFile={package_file('log4j2.xml')}",
        "-cp",
        classpath if classes is None else f"{classes}:{classpath}",
        main,
        *arguments,
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise ReplicatorError(f"{main} did not end in {_TIMEOUT_SECONDS:g} s") from error
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise ReplicatorError(f"{main} failed (exit code {done.returncode}):\n{tail}")
    return done.stdout


def console_consumer(
    bootstrap_servers: str,
    topic: str,
    *,
    formatter: str,
    records: int,
    log: Path,
    settings: Mapping[str, str] | None = None,
) -> list[str]:
    """The first records of a topic as Kafka's console consumer prints them with a formatter.

    Args:
        bootstrap_servers: of a cluster without security.
        topic: read from its beginning.
        formatter: class name of a ``MessageFormatter``.
        records: how many to wait for.
        log: for the consumer's own words.
        settings: of the consumer, beside its defaults.
    """
    options = [f"--command-property={name}={value}" for name, value in (settings or {}).items()]
    arguments = [
        "--bootstrap-server", bootstrap_servers, "--topic", topic, "--from-beginning",
        "--max-messages", str(records), "--timeout-ms", "60000", "--formatter", formatter, *options,
    ]  # fmt: skip
    lines = run_java(_CONSOLE_CONSUMER, arguments, log=log).splitlines()
    return [line for line in lines if not re.match(r"Processed a total of", line)]
