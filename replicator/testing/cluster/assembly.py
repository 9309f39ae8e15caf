"""The parts of one local cluster on disk and on ports: put together, configured, taken apart."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.testing.cluster.brokers.broker import Backend, Broker, BrokerSpec
from replicator.testing.cluster.brokers.broker_settings import (
    BrokerPorts,
    ControllerAddress,
    Jvm,
    broker_properties,
    controller_properties,
)
from replicator.testing.cluster.security import ClusterSecurity, SecuritySetup
from replicator.testing.faults.fault_proxy import FaultProxy
from replicator.testing.kit.place import HERE, Place
from replicator.testing.kit.ports import free_ports
from replicator.testing.kit.scratch import ScratchDirectory

_PORTS_PER_BROKER = 4


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The requested cluster; the same for every attempt to start."""

    name: str
    cluster_id: str
    brokers: int
    security: SecuritySetup | None
    proxied: bool
    config: Mapping[str, str]
    jvm: Jvm
    heap_megabytes: int
    place: Place = HERE
    isolable: bool = False


@dataclass(slots=True)
class Assembly:
    """What was put together: directories, formatted brokers, listening proxies; brokers are not started."""

    blueprint: Blueprint
    scratch: ScratchDirectory
    security: ClusterSecurity | None
    brokers: list[Broker] = field(default_factory=list)
    proxies: list[FaultProxy] = field(default_factory=list)
    controller: tuple[ControllerAddress, Broker] | None = None
    to_controller: list[FaultProxy] = field(default_factory=list)
    """One per broker, where the controller is a process of its own."""

    def configure(self) -> None:
        """Writes every broker's settings; they take effect at its next start."""
        setup = self.blueprint.security
        ports = [broker.ports for broker in self.brokers]
        settings: dict[str, str] = {}
        for broker in self.brokers:
            settings = broker_properties(
                node_id=broker.node_id,
                ports=ports,
                data=broker.data,
                client_protocol=setup.protocol if setup else "PLAINTEXT",
                security=self.security.broker_settings() if self.security else None,
                overrides=self.blueprint.config,
                place=self.blueprint.place,
                controller=self.controller[0] if self.controller else None,
            )
            broker.configure(settings)
        if self.controller is not None:
            own, process = self.controller
            process.configure(controller_properties(own=own, data=process.data, brokers=settings))

    def start(self) -> None:
        """Starts every process; does not wait."""
        for each in self._processes():
            each.start()

    def log_tail(self, lines: int) -> str:
        """The last log lines of every broker."""
        return "\n".join(filter(None, (broker.log_tail(lines) for broker in self.brokers)))

    def port_was_taken(self) -> bool:
        """Whether a broker ended because another program listens on its port."""
        tail = self.log_tail(lines=200)
        return "BindException" in tail or "Address already in use" in tail

    def discard(self) -> None:
        """Kills everything and deletes the data."""
        for each in self._processes():
            each.discard()
        for proxy in (*self.proxies, *self.to_controller):
            proxy.stop()
        self.scratch.remove()

    def _processes(self) -> list[Broker]:
        return [*([self.controller[1]] if self.controller else []), *self.brokers]


def assemble(blueprint: Blueprint, backend: Backend) -> Assembly:
    """Picks ports, formats data directories, writes certificates and settings, starts proxies."""
    scratch = ScratchDirectory(blueprint.name)
    setup = blueprint.security
    security = None
    if setup is not None and setup.protocol != "PLAINTEXT":
        security = ClusterSecurity(setup, scratch.path / "secrets")
    assembly = Assembly(blueprint=blueprint, scratch=scratch, security=security)
    if blueprint.isolable:
        _add_controller(assembly, backend)
    taken = iter(free_ports(_PORTS_PER_BROKER * blueprint.brokers))
    for node_id in range(blueprint.brokers):
        client, internal, controller, proxy = (next(taken) for _ in range(_PORTS_PER_BROKER))
        advertised = proxy if blueprint.proxied else client
        properties = security.java_properties() if security else ()
        if assembly.controller is not None:
            line = _names(assembly, assembly.controller[0], _line_of(node_id))
            properties = (*properties, line)
        broker = backend(
            BrokerSpec(
                node_id=node_id,
                directory=scratch.path / f"broker-{node_id}",
                ports=BrokerPorts(client, internal, controller, advertised),
                jvm=blueprint.jvm,
                heap_megabytes=blueprint.heap_megabytes,
                properties=tuple(properties),
                place=blueprint.place,
            )
        )
        broker.format(cluster_id=blueprint.cluster_id)
        assembly.brokers.append(broker)
        if blueprint.proxied:
            assembly.proxies.append(FaultProxy(port=proxy, target_port=client, seed=node_id))
    assembly.configure()
    for each in (*assembly.proxies, *assembly.to_controller):
        with contextlib.suppress(OSError):  # shows as a broker that does not get ready
            each.start()
    return assembly


def _add_controller(assembly: Assembly, backend: Backend) -> None:
    """A controller that is no broker, and a line to it for each broker, which can be cut."""
    blueprint, (port,) = assembly.blueprint, free_ports(1)
    address = ControllerAddress(node_id=blueprint.brokers, port=port)
    assembly.controller = (
        address,
        backend(
            BrokerSpec(
                node_id=address.node_id,
                directory=assembly.scratch.path / "controller",
                ports=BrokerPorts(port, port, port, port),
                jvm=blueprint.jvm,
                heap_megabytes=blueprint.heap_megabytes,
                properties=(_names(assembly, address, "127.0.0.1"),),
            )
        ),
    )
    assembly.controller[1].format(cluster_id=blueprint.cluster_id)
    for number in range(blueprint.brokers):
        proxy = FaultProxy(port=port, target_port=port, host=_line_of(number))
        assembly.to_controller.append(proxy)


def _line_of(broker: int) -> str:
    """The loopback address at which a broker finds the controller."""
    return f"127.0.1.{broker + 1}"


def _names(assembly: Assembly, controller: ControllerAddress, address: str) -> tuple[str, str]:
    """The property of a JVM by which it finds the controller at an address."""
    path = assembly.scratch.path / f"hosts-{address}"
    path.write_text(controller.hosts_text(address))
    return "jdk.net.hosts.file", str(path)
