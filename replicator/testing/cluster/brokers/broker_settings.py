"""What a local broker is configured with; pure text and the ports of it, no files and no processes.

Every broker has three listeners: CLIENT (what users connect to: secured and proxied as asked for),
INTERNAL (plaintext, for the brokers among themselves and for set-up by the kit) and CONTROLLER.
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from replicator.testing.kit.place import HERE, Place
from replicator.testing.kit.ports import is_free

Jvm = Literal["fast-start", "throughput"]

_JVM_FLAGS: dict[Jvm, tuple[str, ...]] = {
    # The first compiler only: half the CPU of a boot, and tests are over before the second pays.
    "fast-start": ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"),
    # As Kafka's own start script has it.
    "throughput": (
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent",
    ),
}


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """Loopback ports of one broker; ``advertised`` is the fault proxy's when there is one."""

    client: int
    internal: int
    controller: int
    advertised: int

    def are_free(self) -> bool:
        """Whether a broker could listen on its own three now."""
        return all(map(is_free, (self.client, self.internal, self.controller)))


@dataclass(frozen=True, slots=True)
class ControllerAddress:
    """Where brokers find a controller that is no broker.

    By a name, because it tells them its address: whatever that is, each of them looks it up in a file of its own.
    """

    node_id: int
    port: int
    name: str = "controller-of-tests"

    def hosts_text(self, address: str) -> str:
        """A file of names for a JVM, in which the controller is at an ``address``."""
        return f"127.0.0.1 localhost {socket.gethostname()}\n{address} {self.name}\n"


def jvm_flags(jvm: Jvm, *, heap_megabytes: int) -> tuple[str, ...]:
    """Flags for ``java``: garbage collector, compiler, heap."""
    return (
        *_JVM_FLAGS[jvm],
        f"-Xmx{heap_megabytes}m",
        f"-Xms{min(256, heap_megabytes)}m",
        "-Djava.awt.headless=true",
    )


def broker_properties(
    *,
    node_id: int,
    ports: Sequence[BrokerPorts],
    data: Path,
    client_protocol: str = "PLAINTEXT",
    security: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
    place: Place = HERE,
    controller: ControllerAddress | None = None,
) -> dict[str, str]:
    """The whole ``server.properties`` of one broker.

    Args:
        node_id: index of this broker in ``ports``.
        ports: of all brokers of the cluster, in order of their node ids.
        data: directory of the log segments.
        client_protocol: security protocol of the CLIENT listener.
        security: settings of that listener, and of the authorizer.
        overrides: settings of the kit's user; they win over everything.
        place: where the brokers run.
        controller: of a controller that is no broker; without, all brokers are controllers too.
    """
    own = ports[node_id]
    replicas = min(3, len(ports))
    in_sync = 2 if replicas == 3 else 1
    voters = ",".join(f"{number}@127.0.0.1:{each.controller}" for number, each in enumerate(ports))
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL",
        "listeners": (
            f"CLIENT://{place.client_host}:{own.client},INTERNAL://{place.internal_host}:{own.internal},"
            f"CONTROLLER://127.0.0.1:{own.controller}"
        ),
        "advertised.listeners": (
            f"CLIENT://{place.client_host}:{own.advertised},"
            f"INTERNAL://{place.internal_host}:{own.internal}"
        ),
        "listener.security.protocol.map": (
            f"CLIENT:{client_protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "share.coordinator.state.topic.num.partitions": "1",
        # The classic protocol waits this long for more members of an empty group; tests have none.
        "group.initial.rebalance.delay.ms": "0",
        # Retention, deletion and compaction show within a second instead of minutes.
        "log.retention.check.interval.ms": "1000",
        "log.initial.task.delay.ms": "1000",
        "log.segment.delete.delay.ms": "1000",
        "log.cleaner.backoff.ms": "1000",
        "log.cleaner.dedupe.buffer.size": "16777216",
        # A killed broker is noticed after this, and may register again only then; shorter, and a
        # starved machine loses healthy ones. A lone broker is starved together with its controller.
        "broker.session.timeout.ms": "6000" if len(ports) > 1 else "1500",
        "broker.heartbeat.interval.ms": "300",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "4",
        # With one broker leadership cannot move, and the attempt delays the stop.
        "controlled.shutdown.enable": "true" if len(ports) > 1 else "false",
    }
    if controller is not None:
        settings |= {
            "process.roles": "broker",
            "controller.quorum.voters": f"{controller.node_id}@{controller.name}:{controller.port}",
            "listeners": settings["listeners"].rpartition(",CONTROLLER:")[0],
        }
    return {**settings, **(security or {}), **(overrides or {})}


def controller_properties(
    *, own: ControllerAddress, data: Path, brokers: Mapping[str, str]
) -> dict[str, str]:
    """The ``server.properties`` of a controller that is no broker; ``brokers`` are the settings of one that uses it."""
    of_brokers = {
        "listeners",
        "advertised.listeners",
        "inter.broker.listener.name",
        "process.roles",
    }
    settings = {name: value for name, value in brokers.items() if name not in of_brokers}
    return {
        **settings,
        "process.roles": "controller",
        "node.id": str(own.node_id),
        "controller.quorum.voters": f"{own.node_id}@{own.name}:{own.port}",
        "listeners": f"CONTROLLER://127.0.0.1:{own.port}",
        "advertised.listeners": f"CONTROLLER://{own.name}:{own.port}",
        "log.dirs": str(data),
    }


def properties_text(settings: Mapping[str, str]) -> str:
    """A Java properties file; backslashes and line ends inside values are kept."""
    return "".join(
        f"{key}={value.replace(chr(92), chr(92) * 2).replace(chr(10), chr(92) + 'n')}\n"
        for key, value in settings.items()
    )


def meta_properties_text(*, cluster_id: str, node_id: int, directory_id: str) -> str:
    """``meta.properties`` of a formatted data directory."""
    return f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={directory_id}\n"
