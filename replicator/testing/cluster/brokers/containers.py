"""Brokers in containers, for machines that have a Docker engine and no Java.

Same configuration, ports and directories as brokers from jars: containers share the host's network
and mount the broker's directory under its own path. Only the image differs, which is Apache's.
"""

import contextlib
import functools
import os
import socket

from docker.errors import (  # type: ignore[import-untyped]  # ships no types
    APIError,
    DockerException,
)
from docker.models.containers import Container  # type: ignore[import-untyped]  # same
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from replicator.errors import InputError
from replicator.testing.cluster.brokers.broker import Backend, Broker, BrokerSpec
from replicator.testing.cluster.brokers.jars import kafka_version

_STOP_TIMEOUT_SECONDS = 20


class ContainerBroker(Broker):
    """A broker and controller in one container."""

    def __init__(self, spec: BrokerSpec, *, image: str) -> None:
        super().__init__(spec)
        self._image = image
        self._cluster_id = ""
        self._holder: DockerContainer | None = None

    @property
    def running(self) -> bool:
        """Whether the container runs."""
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
        flags = self._java_flags
        scratch = str(self.directory.parent)  # certificates lie beside the brokers' directories
        self._holder = (
            DockerContainer(self._image)
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
        """SIGKILL to the container."""
        if self.running:
            self._container().kill()

    def terminate(self) -> None:
        """Stops the container in order."""
        if self.running:
            self.resume()
            self._container().stop(timeout=_STOP_TIMEOUT_SECONDS)

    def pause(self) -> None:
        """Freezes the container."""
        self._container().pause()

    def resume(self) -> None:
        """Unfreezes the container."""
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
            raise self._never_started()
        return self._holder.get_wrapped_container()


def container_backend() -> Backend:
    """Makes brokers in containers of the local Docker engine.

    Raises:
        InputError: no engine answers.
    """
    try:
        _knock()
        DockerClient().client.ping()
    except (OSError, DockerException) as error:
        raise InputError(
            f"no Docker engine answers: {error}",
            subject="REPLICATOR_TEST_BACKEND=containers",
            remedy="Start the engine, or unset the variable to boot brokers from jars.",
        ) from error
    return functools.partial(ContainerBroker, image=f"apache/kafka:{kafka_version()}")


def _knock() -> None:
    """Tries the engine's socket first: the client leaks its own when no engine answers."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if host.startswith("unix://"):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe:
            probe.connect(host.removeprefix("unix://"))
