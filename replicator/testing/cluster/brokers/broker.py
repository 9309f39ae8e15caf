"""One broker of a local cluster: what a cluster asks of it, and the kind that is a JVM from Maven jars."""

import base64
import signal
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from replicator.errors import ReplicatorError
from replicator.testing.cluster.brokers.broker_settings import (
    BrokerPorts,
    Jvm,
    jvm_flags,
    meta_properties_text,
    properties_text,
)
from replicator.testing.cluster.brokers.jars import KafkaJars, find_java, package_file
from replicator.testing.kit.child_processes import ChildProcess, start_child
from replicator.testing.kit.place import HERE, Place

_STOP_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """What one broker is asked to be, whatever it runs in.

    Attributes:
        node_id: index in the cluster.
        directory: everything of this broker is below it.
        ports: where it listens.
        jvm: which flags ``java`` gets.
        heap_megabytes: of the JVM.
        properties: system properties of the JVM, for what no broker setting says.
        place: where it runs.
    """

    node_id: int
    directory: Path
    ports: BrokerPorts
    jvm: Jvm = "fast-start"
    heap_megabytes: int = 400
    properties: tuple[tuple[str, str], ...] = ()
    place: Place = HERE


class Broker(ABC):
    """A broker and controller in one; started, killed and paused on its own."""

    def __init__(self, spec: BrokerSpec) -> None:
        self.node_id = spec.node_id
        self.directory = spec.directory
        self.ports = spec.ports
        self.place = spec.place
        self._java_flags = (
            *jvm_flags(spec.jvm, heap_megabytes=spec.heap_megabytes),
            *(f"-D{name}={value}" for name, value in spec.properties),
        )

    @property
    def data(self) -> Path:
        """Log segments; the same path for the broker and for us."""
        return self.directory / "data"

    def configure(self, settings: Mapping[str, str]) -> None:
        """Writes ``server.properties``; takes effect at the next start."""
        path = self.directory / "server.properties"
        path.touch(mode=0o600)  # PLAIN passwords are in it
        path.write_text(properties_text(settings))

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether it exists (a paused one does)."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id of the JVM on this machine.

        Raises:
            ReplicatorError: it was never started.
        """

    @abstractmethod
    def format(self, *, cluster_id: str) -> None:
        """Prepares an empty data directory; once."""

    @abstractmethod
    def start(self) -> None:
        """Starts it; does not wait for it."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL; the data stays."""

    @abstractmethod
    def terminate(self) -> None:
        """Ends it in order; SIGKILL if that takes too long."""

    @abstractmethod
    def pause(self) -> None:
        """Freezes it: connections stay open and nothing answers."""

    @abstractmethod
    def resume(self) -> None:
        """Ends a pause; one that was not paused is no error."""

    @abstractmethod
    def discard(self) -> None:
        """Kills it and releases what it holds; it never starts again. Its directory stays."""

    @abstractmethod
    def log_tail(self, lines: int = 30) -> str:
        """Last lines of its log."""

    def _never_started(self) -> ReplicatorError:
        return ReplicatorError("the broker was never started", subject=f"broker {self.node_id}")


Backend = Callable[[BrokerSpec], Broker]
"""Makes a broker that is not started yet."""


class LocalBroker(Broker):
    """A broker as a JVM of this machine; ``flags`` are further ones for ``java``."""

    def __init__(self, spec: BrokerSpec, *, jars: KafkaJars, flags: tuple[str, ...] = ()) -> None:
        super().__init__(spec)
        self._jars = jars
        self._flags = flags
        self._process: ChildProcess | None = None

    @property
    def running(self) -> bool:
        """Whether the process exists."""
        return self._process is not None and self._process.exit_code() is None

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        if self._process is None:
            raise self._never_started()
        return self._process.pid

    def format(self, *, cluster_id: str) -> None:
        """Makes the data directory what ``kafka-storage format`` would, without its JVM start."""
        self.data.mkdir(parents=True)
        meta = meta_properties_text(
            cluster_id=cluster_id, node_id=self.node_id, directory_id=random_id()
        )
        (self.data / "meta.properties").write_text(meta)
        (self.data / "bootstrap.checkpoint").write_bytes(
            self._jars.bootstrap_checkpoint.read_bytes()
        )

    def start(self) -> None:
        """Starts the JVM."""
        command = [
            *self.place.command,
            find_java(),
            *self._java_flags,
            *self._flags,
            f"-Dreplicator.log={self.directory / 'server.log'}",
            f"-Dlog4j2.configurationFile={package_file('log4j2.xml')}",
            "-cp",
            self._jars.classpath,
            "kafka.Kafka",
            str(self.directory / "server.properties"),
        ]
        self._process = start_child(command, output=self.directory / "output.log")

    def kill(self) -> None:
        """SIGKILL to the JVM."""
        if self._process is not None:
            self._process.kill()

    def terminate(self) -> None:
        """SIGTERM and the broker's own orderly end."""
        if self._process is not None and self.running:
            self._process.signal(signal.SIGCONT)
            self._process.signal(signal.SIGTERM)
            if not self._process.wait(_STOP_TIMEOUT_SECONDS):
                self._process.kill()

    def pause(self) -> None:
        """SIGSTOP."""
        if self._process is not None:
            self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        if self._process is not None:
            self._process.signal(signal.SIGCONT)

    def discard(self) -> None:
        """Kills it; its directory is the cluster's to remove."""
        self.kill()

    def log_tail(self, lines: int = 30) -> str:
        """Last lines of its log (warnings and worse) and of its console output."""
        parts = []
        for name in ("server.log", "output.log"):
            path = self.directory / name
            if path.exists() and (text := path.read_text(errors="replace").strip()):
                parts.append(
                    f"--- broker {self.node_id} {name}\n" + "\n".join(text.splitlines()[-lines:])
                )
        return "\n".join(parts)


def random_id() -> str:
    """A Kafka UUID: 22 characters of URL-safe base64, not beginning with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
