"""Real Kafka from Maven jars: fetched once into a cache, then only read.

The cache directory is named after the Kafka version and a hash of the shipped pom, so another
version or another dependency is another directory and nothing in the cache is ever changed. Maven
itself knows which repository or mirror to use (its ``settings.xml``); nothing is assumed here.
"""

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from replicator.errors import InputError, ReplicatorError
from replicator.testing.kit.cache import cache_root

MINIMUM_JAVA = 17
_FETCH_TIMEOUT_SECONDS = 900  # a cold Maven repository behind a slow mirror
_JAVA_REMEDY = (
    "Install a Java 17 runtime or newer and have `java` on PATH or JAVA_HOME set: Debian, Ubuntu: "
    "`apt install openjdk-17-jre-headless`; macOS: `brew install openjdk@17`."
)
_MAVEN_REMEDY = "Install Maven and have `mvn` on PATH: Debian, Ubuntu: `apt install maven`; macOS: `brew install maven`."
# Static quorum: what the storage tool writes then is the same for every cluster of this version.
_FORMAT_PROPERTIES = """\
process.roles=broker,controller
node.id=0
controller.quorum.voters=0@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs={data}
"""


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """A directory of jars that is complete.

    Attributes:
        version: of Kafka.
        directory: holds the jars and, for brokers, ``bootstrap.checkpoint``.
    """

    version: str
    directory: Path

    @property
    def classpath(self) -> str:
        """For ``java -cp``."""
        return f"{self.directory}/*"

    @property
    def bootstrap_checkpoint(self) -> Path:
        """What ``kafka-storage format`` writes for a new cluster: its feature levels.

        Made once, because the tool costs a JVM start of its own; a broker without the file would
        boot with every feature but the metadata version at zero, unlike any cluster in production.
        """
        return self.directory / "bootstrap.checkpoint"


def package_file(name: str) -> Path:
    """Path of a file shipped in ``local_kafka``."""
    return Path(str(resources.files("replicator.testing.cluster") / "local_kafka" / name))


def find_java() -> str:
    """Path of a ``java`` that is new enough.

    Raises:
        InputError: none is installed, or only an old one.
    """
    home = os.environ.get("JAVA_HOME")
    candidate = str(Path(home) / "bin" / "java") if home else "java"
    java = shutil.which(candidate) or shutil.which("java")
    if java is None:
        raise InputError(
            "no Java was found, local Kafka needs one", subject="java", remedy=_JAVA_REMEDY
        )
    found = _java_version(java)
    if found < MINIMUM_JAVA:
        raise InputError(
            f"{java} is Java {found}, local Kafka needs {MINIMUM_JAVA}",
            subject="java",
            remedy=_JAVA_REMEDY,
        )
    return java


@functools.cache
def _java_version(java: str) -> int:
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)(?:\.(\d+))?', shown.stderr + shown.stdout)
    if match is None:
        return 0
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major  # Java 8 calls itself 1.8


def broker_jars() -> KafkaJars:
    """The jars of a broker, fetched on first use.

    Raises:
        InputError: Java or Maven is missing, with how to get it.
        ReplicatorError: Maven failed, with the end of its output.
    """
    return _cached("broker", profile=None)


def mirror_jars() -> KafkaJars:
    """The jars of MirrorMaker 2 (the yardstick of benchmarks), fetched on first use.

    Raises:
        InputError: Java or Maven is missing, with how to get it.
        ReplicatorError: Maven failed, with the end of its output.
    """
    return _cached("mirror", profile="mirror")


@functools.cache
def _pom() -> tuple[str, str]:
    """Kafka version and a short hash of the pom."""
    text = package_file("pom.xml").read_bytes()
    version = re.search(rb"<kafka\.version>([^<]+)<", text)
    if version is None:
        raise ReplicatorError("the shipped pom.xml names no kafka.version", subject="pom.xml")
    return version[1].decode(), hashlib.sha256(text).hexdigest()[:10]


def kafka_version() -> str:
    """The version of Kafka the kit runs."""
    return _pom()[0]


def _cached(kind: str, *, profile: str | None) -> KafkaJars:
    version, digest = _pom()
    home = cache_root() / f"kafka-{version}-{digest}"
    jars = KafkaJars(version=version, directory=home / kind)
    if jars.directory.is_dir():
        return jars
    java = find_java()
    home.mkdir(parents=True, exist_ok=True)
    with (home / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the second process waits and then finds the directory
        if not jars.directory.is_dir():
            with tempfile.TemporaryDirectory(dir=home, prefix=f"{kind}-") as scratch:
                fetched = Path(scratch) / "jars"
                _fetch(fetched, profile=profile)
                if profile is None:
                    _make_bootstrap_checkpoint(java, fetched, Path(scratch))
                fetched.rename(jars.directory)
    return jars


def _fetch(target: Path, *, profile: str | None) -> None:
    chosen = ["-P", profile] if profile else []
    run_maven(
        package_file("pom.xml"),
        *chosen,
        "dependency:copy-dependencies",
        f"-DoutputDirectory={target}",
        "-DincludeScope=runtime",
    )


def run_maven(pom: Path, *arguments: str) -> None:
    """Runs Maven quietly on a pom.

    Raises:
        InputError: it is not installed, with how to get it.
        ReplicatorError: it failed, with the end of its output.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise InputError(
            "no Maven was found, it fetches the jars of local Kafka once",
            subject="mvn",
            remedy=_MAVEN_REMEDY,
        )
    command = [maven, "-q", "-B", "-Dstyle.color=never", "-f", str(pom), *arguments]
    _run(command, "Maven could not fetch the jars of local Kafka")


def _make_bootstrap_checkpoint(java: str, jars: Path, scratch: Path) -> None:
    properties = scratch / "format.properties"
    data = scratch / "data"
    properties.write_text(_FORMAT_PROPERTIES.format(data=data))
    command = [
        java,
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        f"-Dreplicator.log={scratch}/format.log",
    ]
    command += [f"-Dlog4j2.configurationFile={package_file('log4j2.xml')}", "-cp", f"{jars}/*"]
    command += [
        "kafka.tools.StorageTool",
        "format",
        "-t",
        "AAAAAAAAAAAAAAAAAAAAAQ",
        "-c",
        str(properties),
    ]
    _run(command, "Kafka's storage tool failed")
    (data / "bootstrap.checkpoint").rename(jars / "bootstrap.checkpoint")


def _run(command: list[str], failure: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_FETCH_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise ReplicatorError(f"{failure}: not done in {_FETCH_TIMEOUT_SECONDS} s") from error
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise ReplicatorError(
            f"{failure} (exit code {done.returncode}):\n{tail}", subject=command[0]
        )
