"""What local brokers run in: JVMs started from Maven jars, or containers where asked for.

``REPLICATOR_TEST_BACKEND=containers`` asks for containers; anything they lack is an error that says
so, never a silent change of backend, or a green run would not mean what it says.
"""

import os
from pathlib import Path
from typing import Protocol

from replicator.errors import InputError
from replicator.testing.cluster.broker import Broker, LocalBroker
from replicator.testing.cluster.broker_settings import BrokerPorts, Jvm
from replicator.testing.cluster.class_archive import class_archive_flags
from replicator.testing.cluster.jars import broker_jars

VARIABLE = "REPLICATOR_TEST_BACKEND"


class Backend(Protocol):
    """Makes brokers."""

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
        ...


class JarBackend:
    """JVMs of this machine.

    Raises:
        InputError: Java or Maven is missing.
    """

    def __init__(self) -> None:
        self._jars = broker_jars()
        self._archive = class_archive_flags(self._jars)

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
        return LocalBroker(
            node_id=node_id,
            directory=directory,
            ports=ports,
            jars=self._jars,
            jvm=jvm,
            heap_megabytes=heap_megabytes,
            # The archive was made under the fast-start flags; with others it is not used anyway.
            flags=self._archive if jvm == "fast-start" else (),
        )


def choose_backend() -> Backend:
    """The backend the environment asks for, ready to use.

    Raises:
        InputError: it can not be used here, with the reason.
    """
    asked = os.environ.get(VARIABLE, "jars")
    if asked == "jars":
        return JarBackend()
    if asked == "containers":
        from replicator.testing.cluster.containers import ContainerBackend

        return ContainerBackend()
    raise InputError(f"'{asked}' is no backend", subject=VARIABLE, remedy="Use jars or containers.")
