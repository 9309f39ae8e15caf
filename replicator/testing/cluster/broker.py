"""One local broker: its directory, its process, its signals."""

import base64
import signal
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from replicator.errors import ReplicatorError
from replicator.testing.cluster.broker_settings import (
    BrokerPorts,
    Jvm,
    jvm_flags,
    meta_properties_text,
    properties_text,
)
from replicator.testing.cluster.jars import KafkaJars, find_java, package_file
from replicator.testing.kit.child_processes import ChildProcess, start_child

_STOP_TIMEOUT_SECONDS = 20.0


class Broker(Protocol):
    """What a cluster asks of a broker, whatever it runs in."""

    @property
    def node_id(self) -> int:
        """Index in the cluster."""
        ...

    @property
    def ports(self) -> BrokerPorts:
        """Where it listens."""
        ...

    @property
    def data(self) -> Path:
        """Log segments, as the broker sees them."""
        ...

    @property
    def running(self) -> bool:
        """Whether it exists (a paused one does)."""
        ...

    @property
    def pid(self) -> int:
        """Process id on this machine."""
        ...

    def format(self, *, cluster_id: str) -> None:
        """Prepares an empty data directory; once."""
        ...

    def configure(self, settings: Mapping[str, str]) -> None:
        """Sets ``server.properties``; takes effect at the next start."""
        ...

    def start(self) -> None:
        """Starts it; does not wait for it."""
        ...

    def kill(self) -> None:
        """SIGKILL; the data stays."""
        ...

    def terminate(self) -> None:
        """An orderly end."""
        ...

    def pause(self) -> None:
        """SIGSTOP."""
        ...

    def resume(self) -> None:
        """SIGCONT."""
        ...

    def discard(self) -> None:
        """Kills it and lets go of whatever it holds; it never starts again."""
        ...

    def log_tail(self, lines: int = 30) -> str:
        """Last lines of its log."""
        ...


@dataclass(slots=True)
class LocalBroker:
    """A broker and controller in one JVM; started, killed and paused on its own.

    Attributes:
        node_id: index in the cluster.
        directory: everything of this broker is below it.
        ports: where it listens.
        jars: what it runs.
        jvm: which flags ``java`` gets.
        heap_megabytes: of the JVM.
        flags: for ``java``, beyond those.
    """

    node_id: int
    directory: Path
    ports: BrokerPorts
    jars: KafkaJars
    jvm: Jvm
    heap_megabytes: int
    flags: tuple[str, ...] = ()
    _process: ChildProcess | None = field(default=None)

    @property
    def data(self) -> Path:
        """Log segments."""
        return self.directory / "data"

    @property
    def running(self) -> bool:
        """Whether the process exists (a paused one does)."""
        return self._process is not None and self._process.exit_code() is None

    @property
    def pid(self) -> int:
        """Process id of the JVM.

        Raises:
            ReplicatorError: when it was never started.
        """
        if self._process is None:
            raise ReplicatorError("the broker was never started", subject=f"broker {self.node_id}")
        return self._process.pid

    def format(self, *, cluster_id: str) -> None:
        """Makes the data directory what ``kafka-storage format`` would, without its JVM start."""
        self.data.mkdir(parents=True)
        meta = meta_properties_text(
            cluster_id=cluster_id, node_id=self.node_id, directory_id=random_id()
        )
        (self.data / "meta.properties").write_text(meta)
        (self.data / "bootstrap.checkpoint").write_bytes(
            self.jars.bootstrap_checkpoint.read_bytes()
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        """Writes ``server.properties``; takes effect at the next start."""
        path = self.directory / "server.properties"
        path.touch(mode=0o600)  # PLAIN passwords are in it
        path.write_text(properties_text(settings))

    def start(self) -> None:
        """Starts the JVM; does not wait for it."""
        command = [
            find_java(),
            *jvm_flags(self.jvm, heap_megabytes=self.heap_megabytes),
            *self.flags,
            f"-Dreplicator.log={self.directory / 'server.log'}",
            f"-Dlog4j2.configurationFile={package_file('log4j2.xml')}",
            "-cp",
            self.jars.classpath,
            "kafka.Kafka",
            str(self.directory / "server.properties"),
        ]
        self._process = start_child(command, output=self.directory / "output.log")

    def kill(self) -> None:
        """SIGKILL; the data stays."""
        if self._process is not None:
            self._process.kill()

    def terminate(self) -> None:
        """SIGTERM and the broker's own orderly end; SIGKILL if that takes too long."""
        if self._process is not None and self.running:
            self._process.signal(signal.SIGCONT)
            self._process.signal(signal.SIGTERM)
            if not self._process.wait(_STOP_TIMEOUT_SECONDS):
                self._process.kill()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
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
