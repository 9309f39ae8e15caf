"""Real Kafka clusters on this machine, for tests, drills and demos.

A ``LocalCluster`` is one or more KRaft brokers (each also a controller) on free loopback ports with
data in a temporary directory. It can be killed, restarted, paused and, through proxies, cut off.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from confluent_kafka.admin import AdminClient

from replicator.errors import InputError, ReplicatorError
from replicator.testing.cluster import access, readiness, topics
from replicator.testing.cluster.assembly import Assembly, Blueprint, assemble
from replicator.testing.cluster.brokers.backends import choose_backend
from replicator.testing.cluster.brokers.broker import Backend, Broker, random_id
from replicator.testing.cluster.brokers.broker_settings import Jvm
from replicator.testing.cluster.kept_admin import KeptAdmin
from replicator.testing.cluster.security import ClusterSecurity, SecuritySetup
from replicator.testing.faults.fault_proxy import FaultProxy, ProxyGroup
from replicator.testing.kit.place import HERE, Place
from replicator.testing.kit.waiting import wait_until

_PORT_ATTEMPTS = 5
_LOG_LINES = 30


class LocalCluster:
    """A cluster under test; also a context manager.

    Args:
        name: for messages and directory names; usually the alias in the topology.
        brokers: one, or three for leader moves and a real in-sync set.
        security: of the listener clients use; none is plaintext.
        proxied: whether clients go through a fault proxy.
        isolable: whether the controller is a process of its own, off which brokers can be cut (``isolate``).
        config: broker settings that win over the kit's.
        jvm: ``fast-start`` for tests, ``throughput`` for benchmarks.
        heap_megabytes: of each broker.
        place: where its brokers run; the far end of a ``WanLine``, plaintext and without proxies.
    """

    def __init__(
        self,
        name: str,
        *,
        brokers: int = 1,
        security: SecuritySetup | None = None,
        proxied: bool = False,
        isolable: bool = False,
        config: Mapping[str, str] | None = None,
        jvm: Jvm = "fast-start",
        heap_megabytes: int = 400,
        place: Place = HERE,
    ) -> None:
        if brokers < 1:
            raise InputError("a cluster has at least one broker", subject=name)
        if place != HERE and (proxied or security is not None):
            raise InputError("a cluster far away is plaintext and has no proxies", subject=name)
        self.name = name
        self.cluster_id = random_id()
        self._blueprint = Blueprint(
            name=name,
            cluster_id=self.cluster_id,
            brokers=brokers,
            security=security,
            proxied=proxied,
            config=dict(config or {}),
            jvm=jvm,
            heap_megabytes=heap_megabytes,
            place=place,
            isolable=isolable,
        )
        self._assembly: Assembly | None = None
        self._admin = KeptAdmin()

    def __enter__(self) -> Self:
        if self._assembly is None:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, *, timeout_seconds: float = 60.0) -> None:
        """Boots all brokers and returns when clients can work.

        Raises:
            InputError: Java or Maven is missing.
            ReplicatorError: a broker ended or did not get ready; the message shows its log.
        """
        if self._assembly is not None:
            raise InputError("the cluster was started already", subject=self.name)
        backend = choose_backend(self._blueprint.place)
        try:
            self._boot(backend, timeout_seconds)
        except BaseException:
            self.stop()
            raise

    def _boot(self, backend: Backend, timeout_seconds: float) -> None:
        for attempt in range(_PORT_ATTEMPTS):
            assembly = self._assembly = assemble(self._blueprint, backend)
            assembly.start()
            try:
                self.wait_ready(timeout_seconds)
            except ReplicatorError:
                if attempt == _PORT_ATTEMPTS - 1 or not assembly.port_was_taken():
                    raise
                self.stop()  # another program took a port before the broker did
            else:
                break
        security = self._started().security
        if security is not None and security.scram:
            for user, password in security.passwords.items():
                self._put_scram_user(user, password)

    def stop(self) -> None:
        """Ends every broker at once and deletes the data; a second call does nothing."""
        self._admin.close()
        if self._assembly is not None:
            self._assembly.discard()
            self._assembly = None

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
        self._started().configure()
        for each in chosen:
            wait_until(
                each.ports.are_free,
                timeout_seconds=timeout_seconds,
                describe=f"the ports of {self.name} broker {each.node_id} to be free again",
            )
            each.start()
        self.wait_ready(timeout_seconds)

    def pause(self, broker: int | None = None) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        for each in self._chosen(broker):
            each.pause()

    def resume(self, broker: int | None = None) -> None:
        """SIGCONT."""
        for each in self._chosen(broker):
            each.resume()

    def isolate(self, broker: int) -> None:
        """Cuts a broker off from the controller; clients and the other brokers reach it as before.

        It goes on as it is: it leads what it led, though others are elected after ``broker.session.timeout.ms``,
        and describes the cluster as it was.

        Raises:
            InputError: the cluster was not started with ``isolable=True``.
        """
        self._line_to_controller(broker).cut()

    def rejoin(self, broker: int) -> None:
        """Ends ``isolate``."""
        self._line_to_controller(broker).heal()

    def wait_ready(self, timeout_seconds: float = 60.0) -> None:
        """Waits until every running broker serves and knows of the others.

        Raises:
            NotInTimeError: they did not get ready, or one ended; the message shows the logs.
        """
        readiness.wait_ready(
            self.name,
            self.brokers,
            self.admin(),
            timeout_seconds=timeout_seconds,
            log_tail=self.log_tail,
        )

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        """The last log lines of every broker."""
        return self._assembly.log_tail(lines) if self._assembly else ""

    @property
    def brokers(self) -> Sequence[Broker]:
        """The brokers, by node id; none before the start."""
        return self._assembly.brokers if self._assembly else ()

    @property
    def proxies(self) -> Sequence[FaultProxy]:
        """One per broker, where asked for."""
        return self._assembly.proxies if self._assembly else ()

    @property
    def bootstrap_servers(self) -> list[str]:
        """What clients connect to (the proxies, where there are any)."""
        host = self._blueprint.place.client_host
        return [f"{host}:{broker.ports.advertised}" for broker in self.brokers]

    @property
    def admin_bootstrap_servers(self) -> list[str]:
        """Plaintext, all rights, never through a proxy: for set-up and for looking behind a fault."""
        host = self._blueprint.place.internal_host
        return [f"{host}:{broker.ports.internal}" for broker in self.brokers]

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
        security = self._started().security
        return settings | (security.client_settings(user) if security else {})

    def admin_settings(self) -> dict[str, str]:
        """Settings for librdkafka for the INTERNAL listener."""
        return {"bootstrap.servers": ",".join(self.admin_bootstrap_servers)}

    def admin(self) -> AdminClient:
        """A client of the INTERNAL listener; one per cluster, quiet about brokers that are down."""
        up = any(broker.running for broker in self.brokers)
        return self._admin.client(self.admin_settings(), up=up)

    def topology_entry(self, user: str | None = None) -> dict[str, object]:
        """The entry of ``spec.clusters.<alias>`` in a topology file."""
        entry: dict[str, object] = {"bootstrapServers": self.bootstrap_servers}
        security = self._started().security
        if security is not None:
            entry["security"] = security.topology_security(user)
        return entry

    def topology_security(self, user: str | None = None) -> dict[str, object]:
        """The ``security`` block alone.

        Raises:
            InputError: the cluster is not secured.
        """
        return self._secured().topology_security(user)

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

    def renew_certificate(self, user: str, *, authority: int = 0) -> None:
        """Gives a user another certificate, in the files that ``topology_security`` names."""
        self._secured().renew_certificate(user, authority=authority)

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
        access.create_acls(
            self.admin(), user=user, operations=operations, resource=resource, name=name,
            prefixed=prefixed,
        )  # fmt: skip

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
        access.create_acls(
            self.admin(), user=user, operations=operations, resource=resource, name=name,
            prefixed=prefixed, deny=True,
        )  # fmt: skip

    def revoke_all(self, user: str) -> int:
        """Removes every ACL of a user; returns how many there were."""
        return access.delete_acls(self.admin(), user=user)

    def _started(self) -> Assembly:
        if self._assembly is None:
            raise InputError("the cluster is not started", subject=self.name)
        return self._assembly

    def _line_to_controller(self, broker: int) -> FaultProxy:
        lines = self._started().to_controller
        if not lines:
            raise InputError(
                "its brokers are controllers too",
                subject=self.name,
                remedy="Ask for isolable=True.",
            )
        return lines[broker]

    def _chosen(self, broker: int | None) -> list[Broker]:
        brokers = self._started().brokers
        return brokers if broker is None else [brokers[broker]]

    def _secured(self) -> ClusterSecurity:
        security = self._started().security
        if security is None:
            raise InputError(
                "the cluster is not secured", subject=self.name, remedy="Ask for a SecuritySetup."
            )
        return security

    def _put_scram_user(self, user: str, password: str) -> None:
        mechanism = self._secured().setup.mechanism or ""
        access.put_scram_user(self.admin(), user=user, password=password, mechanism=mechanism)


def start_all(clusters: Iterable[LocalCluster]) -> None:
    """Starts several clusters at the same time; if one fails, all are stopped.

    Raises:
        ReplicatorError: of the first that failed.
    """
    chosen = list(clusters)
    if not chosen:
        return
    choose_backend()  # fetches jars once, not for each
    with ThreadPoolExecutor(len(chosen)) as pool:
        outcomes = [pool.submit(cluster.start) for cluster in chosen]
    failures = [error for outcome in outcomes if (error := outcome.exception()) is not None]
    if failures:
        for cluster in chosen:
            cluster.stop()
        raise failures[0]
