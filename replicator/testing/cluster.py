"""Real Kafka clusters on this machine, for tests, drills and demos.

A ``LocalCluster`` is one or more KRaft brokers (each also a controller) on free loopback ports with
data in a temporary directory. It can be killed, restarted, paused and, through proxies, cut off.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient

from replicator.errors import InputError, ReplicatorError
from replicator.testing import access, topics
from replicator.testing.broker import LocalBroker, random_id
from replicator.testing.broker_settings import BrokerPorts, Jvm, broker_properties
from replicator.testing.class_archive import class_archive_flags
from replicator.testing.fault_proxy import FaultProxy, ProxyGroup
from replicator.testing.jars import KafkaJars, broker_jars
from replicator.testing.ports import answers, free_ports, is_free
from replicator.testing.scratch import ScratchDirectory
from replicator.testing.security import ClusterSecurity, SecuritySetup
from replicator.testing.waiting import NotInTimeError, wait_until

_PORT_ATTEMPTS = 5
_LOG_LINES = 30


class LocalCluster:
    """A cluster under test; also a context manager.

    Args:
        name: for messages and directory names; usually the alias in the topology.
        brokers: one, or three for leader moves and a real in-sync set.
        security: of the listener clients use; none is plaintext.
        proxied: whether clients go through a fault proxy.
        config: broker settings that win over the kit's.
        jvm: ``fast-start`` for tests, ``throughput`` for benchmarks.
        heap_megabytes: of each broker.
    """

    def __init__(
        self,
        name: str,
        *,
        brokers: int = 1,
        security: SecuritySetup | None = None,
        proxied: bool = False,
        config: Mapping[str, str] | None = None,
        jvm: Jvm = "fast-start",
        heap_megabytes: int = 400,
    ) -> None:
        if brokers < 1:
            raise InputError("a cluster has at least one broker", subject=name)
        self.name = name
        self.cluster_id = random_id()
        self.brokers: list[LocalBroker] = []
        self.proxies: list[FaultProxy] = []
        self._broker_count = brokers
        self._setup = security
        self._security: ClusterSecurity | None = None
        self._proxied = proxied
        self._config = dict(config or {})
        self._jvm: Jvm = jvm
        self._heap_megabytes = heap_megabytes
        self._scratch: ScratchDirectory | None = None
        self._jars: KafkaJars | None = None
        self._admin: AdminClient | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- life ---------------------------------------------------------------------------------

    def start(self, *, timeout_seconds: float = 60.0) -> None:
        """Boots all brokers and returns when clients can work.

        Raises:
            InputError: Java or Maven is missing.
            ReplicatorError: a broker ended or did not get ready; the message shows its log.
        """
        if self._scratch is not None:
            raise InputError("the cluster was started already", subject=self.name)
        self._jars = broker_jars()
        try:
            self._boot(timeout_seconds)
        except BaseException:
            self.stop()
            raise

    def _boot(self, timeout_seconds: float) -> None:
        for attempt in range(_PORT_ATTEMPTS):
            self._prepare()
            for broker in self.brokers:
                self._launch(broker)
            try:
                self.wait_ready(timeout_seconds)
            except ReplicatorError:
                if attempt == _PORT_ATTEMPTS - 1 or not self._port_was_taken():
                    raise
                self.stop()  # somebody took a port between our look and the broker's
            else:
                break
        if self._security is not None and self._security.scram:
            for user, password in self._security.passwords.items():
                self._put_scram_user(user, password)

    def stop(self) -> None:
        """Ends every broker at once and deletes the data; a second call does nothing."""
        self._admin = None
        for broker in self.brokers:
            broker.kill()
        for proxy in self.proxies:
            proxy.stop()
        self.brokers, self.proxies = [], []
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def kill(self, broker: int | None = None) -> None:
        """SIGKILL to one broker or all; data and ports are kept for ``restart``."""
        for each in self._chosen(broker):
            each.kill()

    def restart(self, broker: int | None = None, *, timeout_seconds: float = 60.0) -> None:
        """Starts one broker or all again, on the same ports and data; a running one ends in order.

        Raises:
            NotInTimeError: it did not get ready; the message shows its log.
        """
        chosen = self._chosen(broker)
        for each in chosen:
            each.terminate()
        self._write_configuration()
        for each in chosen:
            wait_until(
                functools.partial(_ports_are_free, each.ports),
                timeout_seconds=timeout_seconds,
                describe=f"the ports of {self.name} broker {each.node_id} to be free again",
            )
            self._launch(each)
        self.wait_ready(timeout_seconds)

    def pause(self, broker: int | None = None) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        for each in self._chosen(broker):
            each.pause()

    def resume(self, broker: int | None = None) -> None:
        """SIGCONT."""
        for each in self._chosen(broker):
            each.resume()

    def wait_ready(self, timeout_seconds: float = 60.0) -> None:
        """Waits until every running broker serves and knows of the others.

        Raises:
            NotInTimeError: they did not get ready, or one ended; the message shows the logs.
        """
        running = [broker for broker in self.brokers if broker.running]
        if not running:
            raise NotInTimeError("no broker is running", subject=self.name, remedy=self.log_tail())

        def ready() -> bool:
            for broker in running:
                if not broker.running:
                    raise NotInTimeError(
                        f"broker {broker.node_id} ended while it was waited for:\n{self.log_tail()}",
                        subject=self.name,
                    )
                if not answers(broker.ports.client):
                    return False
            return topics.live_brokers(self.admin()) >= len(running)

        wait_until(
            ready,
            timeout_seconds=timeout_seconds,
            describe=lambda: f"cluster {self.name} to be ready\n{self.log_tail()}",
        )

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        """The last log lines of every broker."""
        return "\n".join(filter(None, (broker.log_tail(lines) for broker in self.brokers)))

    # -- addresses ----------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> list[str]:
        """What clients connect to (the proxies, where there are any)."""
        return [f"127.0.0.1:{broker.ports.advertised}" for broker in self.brokers]

    @property
    def admin_bootstrap_servers(self) -> list[str]:
        """Plaintext, all rights, never through a proxy: for set-up and for looking behind a fault."""
        return [f"127.0.0.1:{broker.ports.internal}" for broker in self.brokers]

    @property
    def proxy(self) -> ProxyGroup:
        """All proxies together.

        Raises:
            InputError: the cluster was not started with ``proxied=True``.
        """
        if not self.proxies:
            raise InputError(
                "the cluster has no proxies", subject=self.name, remedy="Ask for proxied=True."
            )
        return ProxyGroup(self.proxies)

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """Settings for librdkafka of an ordinary client (default user: the first)."""
        settings = {"bootstrap.servers": ",".join(self.bootstrap_servers)}
        return settings | (self._security.client_settings(user) if self._security else {})

    def admin_settings(self) -> dict[str, str]:
        """Settings for librdkafka for the INTERNAL listener."""
        return {"bootstrap.servers": ",".join(self.admin_bootstrap_servers)}

    def admin(self) -> AdminClient:
        """A client of the INTERNAL listener; one per cluster, quiet about brokers that are down."""
        if self._admin is None:
            self._admin = AdminClient({**self.admin_settings(), "log_level": 2})
        return self._admin

    def topology_entry(self, user: str | None = None) -> dict[str, object]:
        """What stands under ``spec.clusters.<alias>`` of a topology file."""
        entry: dict[str, object] = {"bootstrapServers": self.bootstrap_servers}
        if self._security is not None:
            entry["security"] = self._security.topology_security(user)
        return entry

    def topology_security(self, user: str | None = None) -> dict[str, object]:
        """The ``security`` block alone.

        Raises:
            InputError: the cluster is not secured.
        """
        return self._secured().topology_security(user)

    # -- set-up -------------------------------------------------------------------------------

    def create_topic(
        self, name: str, *, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Creates a topic and returns when every partition has a leader."""
        topics.create_topic(self.admin(), name=name, partitions=partitions, config=config or {})

    def delete_topic(self, name: str) -> None:
        """Deletes a topic and returns when it is gone."""
        topics.delete_topic(self.admin(), name=name)

    def add_user(self, user: str, password: str = "") -> None:
        """Adds a user, or gives it another password.

        PLAIN passwords live in the brokers' configuration, so there this restarts them.

        Raises:
            InputError: the cluster is not secured.
        """
        security = self._secured()
        security.set_password(user, password)
        if security.scram:
            self._put_scram_user(user, password)
        elif security.passwords:
            self.restart()

    def rotate_password(self, user: str, password: str) -> None:
        """Changes a password, in the cluster and in the file that ``topology_security`` names."""
        self.add_user(user, password)

    def allow(
        self,
        user: str,
        operations: Iterable[access.Operation],
        *,
        resource: access.Resource = "topic",
        name: str = "*",
        prefixed: bool = False,
    ) -> None:
        """Adds ALLOW ACLs; the cluster resource is called ``kafka-cluster``."""
        self._add_acls(
            user, operations, resource=resource, name=name, prefixed=prefixed, deny=False
        )

    def deny(
        self,
        user: str,
        operations: Iterable[access.Operation],
        *,
        resource: access.Resource = "topic",
        name: str = "*",
        prefixed: bool = False,
    ) -> None:
        """Adds DENY ACLs, which beat every ALLOW."""
        self._add_acls(user, operations, resource=resource, name=name, prefixed=prefixed, deny=True)

    def revoke_all(self, user: str) -> int:
        """Removes every ACL of a user; returns how many there were."""
        return access.delete_acls(self.admin(), user=user)

    # -- inside -------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._scratch = ScratchDirectory(self.name)
        if self._setup is not None and self._setup.protocol != "PLAINTEXT":
            self._security = ClusterSecurity(self._setup, self._scratch.path / "secrets")
        taken = iter(free_ports(4 * self._broker_count))
        for node_id in range(self._broker_count):
            client, internal, controller, proxy = (next(taken) for _ in range(4))
            ports = BrokerPorts(client, internal, controller, proxy if self._proxied else client)
            directory = self._scratch.path / f"broker-{node_id}"
            broker = LocalBroker(node_id, directory, ports, self._jvm, self._heap_megabytes)
            broker.format(
                cluster_id=self.cluster_id,
                jars=self._existing(self._jars),
            )
            self.brokers.append(broker)
            if self._proxied:
                self.proxies.append(FaultProxy(port=proxy, target_port=client, seed=node_id))
        self._write_configuration()
        for each in self.proxies:
            with contextlib.suppress(OSError):  # shows as a broker that does not get ready
                each.start()

    def _launch(self, broker: LocalBroker) -> None:
        jars = self._existing(self._jars)
        broker.start(jars, flags=class_archive_flags(jars) if self._jvm == "fast-start" else ())

    def _write_configuration(self) -> None:
        ports = [broker.ports for broker in self.brokers]
        for broker in self.brokers:
            settings = broker_properties(
                node_id=broker.node_id,
                ports=ports,
                data=broker.data,
                client_protocol=self._setup.protocol if self._setup else "PLAINTEXT",
                security=self._security.broker_settings() if self._security else None,
                overrides=self._config,
            )
            broker.configure(settings)

    def _port_was_taken(self) -> bool:
        tail = self.log_tail(lines=200)
        return "BindException" in tail or "Address already in use" in tail

    def _chosen(self, broker: int | None) -> list[LocalBroker]:
        return self.brokers if broker is None else [self.brokers[broker]]

    def _secured(self) -> ClusterSecurity:
        if self._security is None:
            raise InputError(
                "the cluster is not secured", subject=self.name, remedy="Ask for a SecuritySetup."
            )
        return self._security

    def _existing(self, jars: KafkaJars | None) -> KafkaJars:
        if jars is None:
            raise InputError("the cluster was not started", subject=self.name)
        return jars

    def _put_scram_user(self, user: str, password: str) -> None:
        mechanism = self._secured().setup.mechanism or ""
        access.put_scram_user(self.admin(), user=user, password=password, mechanism=mechanism)

    def _add_acls(
        self,
        user: str,
        operations: Iterable[access.Operation],
        *,
        resource: access.Resource,
        name: str,
        prefixed: bool,
        deny: bool,
    ) -> None:
        acls = access.bindings(
            user=user,
            operations=operations,
            resource=resource,
            name=name,
            prefixed=prefixed,
            deny=deny,
        )
        access.create_acls(self.admin(), acls)


def start_all(clusters: Iterable[LocalCluster]) -> None:
    """Starts several clusters at the same time; if one fails, all are stopped.

    Raises:
        ReplicatorError: of the first that failed.
    """
    chosen = list(clusters)
    if not chosen:
        return
    class_archive_flags(broker_jars())  # made once, not by each
    with ThreadPoolExecutor(len(chosen)) as pool:
        outcomes = [pool.submit(cluster.start) for cluster in chosen]
    failures = [error for outcome in outcomes if (error := outcome.exception()) is not None]
    if failures:
        for cluster in chosen:
            cluster.stop()
        raise failures[0]


def _ports_are_free(ports: BrokerPorts) -> bool:
    return all(map(is_free, (ports.client, ports.internal, ports.controller)))
