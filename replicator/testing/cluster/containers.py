"""Brokers in containers, for machines that have a Docker engine and no Java.

Same configuration, ports and directories as brokers from jars: containers share the host's network
and mount the broker's directory under its own path. Only the image differs, which is Apache's.
"""

import contextlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from docker.errors import (  # type: ignore[import-untyped]  # ships no types
    APIError,
    DockerException,
)
from docker.models.containers import Container  # type: ignore[import-untyped]  # same
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from replicator.errors import InputError, ReplicatorError
from replicator.testing.cluster.broker import Broker
from replicator.testing.cluster.broker_settings import BrokerPorts, Jvm, jvm_flags, properties_text
from replicator.testing.cluster.jars import kafka_version

_STOP_TIMEOUT_SECONDS = 20


@dataclass(slots=True)
class ContainerBroker:
    """A broker and controller in one container."""

    node_id: int
    directory: Path
    ports: BrokerPorts
    image: str
    jvm: Jvm
    heap_megabytes: int
    _cluster_id: str = ""
    _holder: DockerContainer | None = field(default=None)

    @property
    def data(self) -> Path:
        """Log segments; the same path inside and outside."""
        return self.directory / "data"

    @property
    def running(self) -> bool:
        """Whether the container runs (a paused one does)."""
        if self._holder is None:
            return False
        container = self._container()
        container.reload()
        return container.status in {"running", "paused"}

    @property
    def pid(self) -> int:
        """Process id of the JVM on the host."""
        container = self._container()
        container.reload()
        return int(container.attrs["State"]["Pid"])

    def format(self, *, cluster_id: str) -> None:
        """Makes the directory; the image's own tool formats it at the first start."""
        self.data.mkdir(parents=True)
        self._cluster_id = cluster_id

    def configure(self, settings: Mapping[str, str]) -> None:
        """Writes ``server.properties``; takes effect at the next start."""
        path = self.directory / "server.properties"
        path.touch(mode=0o600)
        path.write_text(properties_text(settings))

    def command(self) -> list[str]:
        """What runs inside: format an empty directory, then become the broker."""
        properties = self.directory / "server.properties"
        tools = "/opt/kafka/bin"
        formatting = f"{tools}/kafka-storage.sh format --ignore-formatted -t {self._cluster_id} -c {properties}"
        return ["sh", "-c", f"{formatting} && exec {tools}/kafka-server-start.sh {properties}"]

    def start(self) -> None:
        """Creates the container, or starts the one that was killed; does not wait for it."""
        if self._holder is not None:
            self._container().start()
            return
        flags = jvm_flags(self.jvm, heap_megabytes=self.heap_megabytes)
        scratch = str(self.directory.parent)  # certificates lie beside the brokers' directories
        self._holder = (
            DockerContainer(self.image)
            .with_command(self.command())
            .with_env("KAFKA_HEAP_OPTS", " ".join(flag for flag in flags if flag.startswith("-Xm")))
            .with_env(
                "KAFKA_JVM_PERFORMANCE_OPTS",
                " ".join(flag for flag in flags if not flag.startswith("-Xm")),
            )
            .with_env("LOG_DIR", str(self.directory))
            .with_volume_mapping(scratch, scratch, "rw")
            .with_kwargs(network_mode="host", entrypoint="", user=f"{os.getuid()}:{os.getgid()}")
        )
        self._holder.start()

    def kill(self) -> None:
        """SIGKILL; the data stays."""
        if self.running:
            self._container().kill()

    def terminate(self) -> None:
        """An orderly end."""
        if self.running:
            self.resume()
            self._container().stop(timeout=_STOP_TIMEOUT_SECONDS)

    def pause(self) -> None:
        """Freezes the container."""
        self._container().pause()

    def resume(self) -> None:
        """Thaws it; one that was not frozen is no error."""
        with contextlib.suppress(APIError):
            self._container().unpause()

    def discard(self) -> None:
        """Kills and removes the container."""
        if self._holder is not None:
            self._holder.stop()
            self._holder = None

    def log_tail(self, lines: int = 30) -> str:
        """Last lines of its output."""
        if self._holder is None:
            return ""
        text = self._container().logs(tail=lines).decode(errors="replace").strip()
        return f"--- broker {self.node_id} container\n{text}"

    def _container(self) -> Container:
        if self._holder is None:
            raise ReplicatorError("the broker was never started", subject=f"broker {self.node_id}")
        return self._holder.get_wrapped_container()


class ContainerBackend:
    """Containers of the local Docker engine.

    Raises:
        InputError: no engine answers.
    """

    def __init__(self) -> None:
        try:
            _knock()
            DockerClient().client.ping()
        except (OSError, DockerException) as error:
            raise InputError(
                f"no Docker engine answers: {error}",
                subject="REPLICATOR_TEST_BACKEND=containers",
                remedy="Start the engine, or unset the variable to boot brokers from jars.",
            ) from error
        self._image = f"apache/kafka:{kafka_version()}"

    def broker(
        self,
        *,
        node_id: int,
        directory: Path,
        ports: BrokerPorts,
        jvm: Jvm,
        heap_megabytes: int,
    ) -> Broker:
        """A broker that is not started yet."""
        return ContainerBroker(
            node_id=node_id,
            directory=directory,
            ports=ports,
            image=self._image,
            jvm=jvm,
            heap_megabytes=heap_megabytes,
        )


def _knock() -> None:
    """Tries the engine's socket first: the client leaks its own when nobody answers."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if host.startswith("unix://"):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe:
            probe.connect(host.removeprefix("unix://"))
