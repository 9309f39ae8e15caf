"""From a cluster of the plan to the settings of a librdkafka client.

Secrets are read at the call, so a new client always has the current ones. The user's own
settings come last, but never replace one that ordering, delivery or failure detection rests on.
"""

import logging
from collections.abc import Callable
from typing import Any, Literal

from confluent_kafka import KafkaError

from replicator.kafka.clients.groupless import NO_GROUP
from replicator.kafka.clients.tokens import token_callback
from replicator.logins.chain_file import chain_file
from replicator.logins.cluster_login import login_of, try_with
from replicator.topology.file.secrets import ResolvedSecurity
from replicator.topology.plan import ClusterPlan
from replicator.topology.spec.owned_settings import owner_reason
from replicator.wire.probes.login_trial import log_in

Config = dict[str, Any]
Isolation = Literal["read_committed", "read_uncommitted"]
Role = Literal["consumer", "producer", "admin"]

try_with(log_in)  # a process that makes clients tries new logins first

_BATCH_BYTES = 1_000_000

LOGIN = "replicator.login"
"""Stands among the settings until the client is made: what it logs in with, and whether that changed."""

LARGEST_ANSWER_BYTES = 100_000_000
"""The client library's own default."""

LOGGER = logging.getLogger("replicator.kafka")
LOGGER.addHandler(logging.NullHandler())  # without one, the library's chatter would reach stderr

_CONSUMER_ONLY = (
    "fetch.", "max.partition.fetch.bytes", "queued.", "consume.",
)  # fmt: skip
_PRODUCER_ONLY = (
    "queue.buffering.", "linger.ms", "batch.", "compression.", "dr.",
)  # fmt: skip


def client_config(
    cluster: ClusterPlan,
    *,
    client_id: str,
    on_error: Callable[[KafkaError], None] | None = None,
) -> Config:
    """Settings every client of the cluster has; ``on_error`` hears of connections that fail.

    Raises:
        SecretUnavailableError: a referenced secret is missing.
        AuthenticationFailedError: there is no token to log in with.
    """
    config: Config = {
        "bootstrap.servers": ",".join(cluster.bootstrap_servers),
        "client.id": client_id,
        "allow.auto.create.topics": False,
        "broker.address.family": "any",
        "enable.metrics.push": False,
        "log_level": 4,
        "logger": LOGGER,
        "metadata.max.age.ms": 180_000,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 2_000,
        "socket.connection.setup.timeout.ms": 10_000,
        "socket.keepalive.enable": True,
        # A connection that swallows everything is given up after this long.
        "socket.timeout.ms": 12_000,
        "topic.metadata.refresh.interval.ms": 60_000,
    }
    if on_error is not None:
        config["error_cb"] = on_error
    login = login_of(cluster)
    config.update(_security(cluster, login.security()))
    if login.tokens is not None:
        oauth = cluster.security.oauth
        config["oauth_cb"] = token_callback(login.tokens, oauth.extensions if oauth else ())
    config[LOGIN] = login
    return config


def consumer_config(
    cluster: ClusterPlan,
    *,
    client_id: str,
    group_id: str = NO_GROUP,
    isolation: Isolation = "read_committed",
    fetch_wait_seconds: float = 0.1,
    fetch_bytes: int = 50 * 1024 * 1024,
    partition_fetch_bytes: int = 4 * 1024 * 1024,
    queue_bytes: int = 64 * 1024 * 1024,
    follower_reads: bool = False,
    on_error: Callable[[KafkaError], None] | None = None,
) -> Config:
    """Settings of a consumer that keeps its own positions.

    Without a ``group_id`` it needs no right on any group. It never commits by itself, reports the end of each partition, checks checksums, and reports an
    offset that no longer exists instead of jumping. ``queue_bytes`` bounds the memory of what was
    fetched ahead. Only with ``follower_reads`` does the cluster's ``client.rack`` hold: a follower may
    be behind its leader, and who reads checkpoints or control records there reads the past.
    """
    tuned: Config = {
        "fetch.wait.max.ms": _milliseconds(fetch_wait_seconds),
        "fetch.max.bytes": fetch_bytes,
        # Of no use to a consumer, but the client library wants it no larger than a fetch.
        "message.max.bytes": min(1_000_000, fetch_bytes),
        "max.partition.fetch.bytes": partition_fetch_bytes,
        # Whatever is asked for, the first batch of an answer comes whole.
        "receive.message.max.bytes": max(
            LARGEST_ANSWER_BYTES, fetch_bytes + partition_fetch_bytes + 1024
        ),
        "queued.max.messages.kbytes": max(1, queue_bytes // 1024),
        "queued.min.messages": 50_000,
        # The default of one second stalls a consumer that has filled its queue.
        "fetch.queue.backoff.ms": 10,
        "fetch.error.backoff.ms": 100,
        # A broker that is cut off from the controllers goes on leading, and says that nothing comes any more. Any other
        # one that is asked says who leads now.
        "topic.metadata.refresh.interval.ms": 20_000,
    }
    owned: Config = {
        "group.id": group_id,
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "check.crcs": True,
    }
    base = client_config(cluster, client_id=client_id, on_error=on_error)
    wanted = user_settings(cluster, "consumer")
    if not follower_reads:
        wanted.pop("client.rack", None)
    return base | tuned | wanted | owned


def producer_config(
    cluster: ClusterPlan,
    *,
    client_id: str,
    transactional_id: str | None = None,
    transaction_timeout_seconds: float = 60.0,
    linger_seconds: float = 0.005,
    compression: str = "none",
    max_message_bytes: int = 1_048_588,
    queue_bytes: int = 64 * 1024 * 1024,
    requests_in_flight: int = 1,
    on_delivery: Callable[[Any, Any], None] | None = None,
    only_failed_deliveries: bool = False,
    on_error: Callable[[KafkaError], None] | None = None,
) -> Config:
    """Settings of an idempotent producer that keeps order and never gives a record up by itself.

    ``max_message_bytes`` must follow the target topic's limit: one produce request is never larger.
    Without a transaction a record waits for its broker without bound; inside one, as long as the
    transaction may take.

    With more than one request in flight the first write to a partition can be reported as stored
    and be lost (KAFKA-15591); a caller that asks for more watches those (docs/decisions/
    first-writes-are-watched.md).
    """
    tuned: Config = {
        "linger.ms": linger_seconds * 1000,
        "compression.type": compression,
        "batch.size": min(_BATCH_BYTES, max_message_bytes),
        "batch.num.messages": 100_000,
        "message.max.bytes": max_message_bytes,
        "queue.buffering.max.kbytes": max(1, queue_bytes // 1024),
        "queue.buffering.max.messages": 1_000_000,
        "socket.nagle.disable": True,
        "retry.backoff.max.ms": 500,
    }
    owned: Config = {
        "enable.idempotence": True,
        "acks": "all",
        "max.in.flight.requests.per.connection": requests_in_flight,
        "delivery.report.only.error": only_failed_deliveries,
    }
    if on_delivery is not None:
        owned["on_delivery"] = on_delivery
    if transactional_id is None:
        owned["message.timeout.ms"] = 0
    config = client_config(cluster, client_id=client_id, on_error=on_error)
    config |= tuned | user_settings(cluster, "producer") | owned
    if transactional_id is not None:
        limit = _milliseconds(transaction_timeout_seconds)
        config["transactional.id"] = transactional_id
        config["transaction.timeout.ms"] = config["message.timeout.ms"] = limit
        # The library refuses a longer one.
        config["socket.timeout.ms"] = min(int(config["socket.timeout.ms"]), limit)
    return config


def admin_config(
    cluster: ClusterPlan,
    *,
    client_id: str,
    on_error: Callable[[KafkaError], None] | None = None,
) -> Config:
    """Settings of an admin client."""
    base = client_config(cluster, client_id=client_id, on_error=on_error)
    return base | user_settings(cluster, "admin")


def user_settings(cluster: ClusterPlan, role: Role) -> dict[str, str]:
    """The cluster's own librdkafka settings that this kind of client knows and may be given.

    Settings for the other kinds are left out, because the library warns of each one of them.
    """
    foreign: tuple[str, ...] = ()
    if role != "consumer":
        foreign += _CONSUMER_ONLY
    if role != "producer":
        foreign += _PRODUCER_ONLY
    return {
        name: value
        for name, value in cluster.kafka
        if owner_reason(name) is None and not name.startswith(foreign)
    }


def _security(cluster: ClusterPlan, security: ResolvedSecurity) -> Config:
    config: Config = {"security.protocol": security.protocol}
    if security.mechanism is not None:
        config["sasl.mechanism"] = security.mechanism
        if security.username is not None:
            config["sasl.username"] = security.username
        if security.password is not None:
            config["sasl.password"] = security.password
    if security.ca is not None:
        config["ssl.ca.pem"] = security.ca
    if security.certificate is not None:
        # From text librdkafka takes the first certificate only; from a file the whole chain is sent.
        chain = security.certificate.count("-----BEGIN CERTIFICATE") > 1
        if chain:
            config["ssl.certificate.location"] = str(chain_file(cluster.security, security))
        else:
            config["ssl.certificate.pem"] = security.certificate
    if security.key is not None:
        config["ssl.key.pem"] = security.key
    if security.key_password is not None:
        config["ssl.key.password"] = security.key_password
    return config


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
