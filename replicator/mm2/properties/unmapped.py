"""Keys of MirrorMaker 2, of its Connect workers and of Kafka's Java clients that map to no field. Pure.

Each has a sentence that says why: either nothing here needs it, or something is not supported. Names
are those without the prefix of their cluster or flow.
"""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["mapped", "not needed", "not supported"]


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Why a key maps to nothing."""

    outcome: Outcome
    reason: str


def _needless(reason: str, *names: str) -> dict[str, Unmapped]:
    return dict.fromkeys(names, Unmapped("not needed", reason))


def _unsupported(reason: str, *names: str) -> dict[str, Unmapped]:
    return dict.fromkeys(names, Unmapped("not supported", reason))


CONNECT = "there is no Kafka Connect worker here"
_OWN_TUNING = "lanes size their own batches, buffers and time-outs"
_SAFETY = "ordering and delivery rest on it, so the replicator sets it itself"
_EXACT_TRANSLATION = "positions are translated exactly, without offset-syncs"
_PLUGIN = "Java classes cannot be loaded"
_OAUTH = "see security.oauth for what a token can come from"
_KERBEROS = "Kerberos is not supported: the client library is built without it"

NAMES: dict[str, Unmapped] = {
    # The driver and its workers.
    **_needless(
        CONNECT, "listeners", "dedicated.mode.enable.internal.rest", "group.id", "client.id",
        "offset.flush.interval.ms", "offset.flush.timeout.ms", "scheduled.rebalance.max.delay.ms",
        "rebalance.timeout.ms", "session.timeout.ms", "heartbeat.interval.ms", "connect.protocol",
        "plugin.path", "plugin.discovery", "rest.advertised.host.name", "rest.advertised.port",
        "rest.advertised.listener", "rest.extension.classes", "admin.listeners",
        "access.control.allow.methods", "access.control.allow.origin",
        "response.http.headers.config", "connector.client.config.override.policy",
        "topic.tracking.enable", "topic.tracking.allow.reset", "tasks.max.enforce", "name",
        "connector.class", "connector.plugin.version", "config.action.reload", "transaction.boundary",
        "transaction.boundary.interval.ms", "task.shutdown.graceful.timeout.ms",
        "task.assigned.partitions", "task.index", "task.assigned.groups", "ssl.client.auth",
    ),
    **_needless(
        "the aliases come from 'clusters'", "source.cluster.alias", "target.cluster.alias"
    ),
    **_needless(
        "it holds MirrorMaker 2's progress, which --adopt reads; afterwards it is not used",
        "offset.storage.topic", "offsets.storage.topic",
    ),
    **_needless("metrics are served at /metrics of every worker",
        "metric.reporters", "metric.names.formats", "add.source.alias.to.metrics",
        "auto.include.jmx.reporter", "metrics.num.samples", "metrics.recording.level",
        "metrics.sample.window.ms", "enable.metrics.push",
    ),
    # What the connectors emit.
    **_needless(_EXACT_TRANSLATION, "offset.lag.max"),
    **_needless(
        "with mm2Compatibility, heartbeats go out every second and the rest with sync.groups",
        "emit.heartbeats.interval.seconds", "emit.checkpoints.interval.seconds",
    ),
    **_needless(
        "internal topics get three replicas, or as many as there are brokers",
        "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor",
        "offset-syncs.topic.replication.factor",
    ),
    **_needless(
        "heartbeats are carried by mm2Compatibility, not as an ordinary topic",
        "heartbeats.replication.enabled",
    ),
    **_needless(
        "settings are looked at with the topics, see discoveryInterval",
        "sync.topic.configs.interval.seconds", "sync.topic.acls.interval.seconds",
    ),
    **_needless(
        "groups are looked at with sync.groups.interval", "refresh.groups.interval.seconds"
    ),
    **_needless("settings are always changed one by one", "use.incremental.alter.configs"),
    **_needless(
        "delivery is exactly-once by default", "exactly.once.support",
    ),
    **_needless(_OWN_TUNING, "consumer.poll.timeout.ms", "admin.timeout.ms"),
    **_unsupported(
        _PLUGIN, "topic.filter.class", "group.filter.class", "config.property.filter.class",
        "forwarding.admin.class",
    ),
    # Connect, per connector.
    **_unsupported(
        "records are copied byte for byte; see 'transforms' for Python functions",
        "key.converter", "value.converter", "header.converter",
    ),
    **_unsupported(
        "Connect's transformations are Java; see 'filters' and 'transforms' of a link",
        "transforms", "predicates",
    ),
    **_unsupported(
        "a record that cannot be copied goes to quarantine or stops its partition (onRecordError)",
        "errors.tolerance", "errors.retry.timeout", "errors.retry.delay.max.ms",
    ),
    **_needless("every error is logged", "errors.log.enable", "errors.log.include.messages"),
    # Security that has no counterpart.
    **_needless(
        "TLS is that of the client library: TLS 1.2 and 1.3",
        "ssl.protocol", "ssl.enabled.protocols", "ssl.provider", "security.providers",
        "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm",
        "ssl.secure.random.implementation",
    ),
    **_needless(
        "certificates are PEM files here, without a password around them",
        "ssl.truststore.password", "ssl.truststore.type", "ssl.keystore.type",
    ),
    **_unsupported("Java's names of cipher suites are not those of OpenSSL", "ssl.cipher.suites"),
    **_unsupported(
        _PLUGIN, "ssl.engine.factory.class", "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class", "sasl.login.class",
    ),
    # Java clients.
    **_needless(
        _OWN_TUNING, "batch.size", "linger.ms", "buffer.memory", "max.request.size",
        "max.block.ms", "fetch.min.bytes", "fetch.max.bytes", "fetch.max.wait.ms",
        "max.partition.fetch.bytes", "max.poll.records", "max.poll.interval.ms",
        "request.timeout.ms", "default.api.timeout.ms", "retry.backoff.ms", "retry.backoff.max.ms",
        "reconnect.backoff.ms", "reconnect.backoff.max.ms", "metadata.max.age.ms",
        "metadata.max.idle.ms", "socket.connection.setup.timeout.ms",
        "socket.connection.setup.timeout.max.ms", "metadata.recovery.strategy",
        "metadata.recovery.rebootstrap.trigger.ms", "compression.gzip.level",
        "compression.lz4.level", "compression.zstd.level",
    ),
    **_needless(
        _SAFETY, "acks", "retries", "delivery.timeout.ms", "enable.idempotence",
        "max.in.flight.requests.per.connection", "transactional.id", "transaction.timeout.ms",
        "transaction.two.phase.commit.enable", "enable.auto.commit", "auto.commit.interval.ms",
        "group.instance.id", "group.protocol", "group.remote.assignor", "partitioner.class",
        "partitioner.ignore.keys", "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms", "partition.assignment.strategy", "check.crcs",
        "allow.auto.create.topics", "exclude.internal.topics", "bootstrap.controllers",
        "internal.throw.on.fetch.stable.offset.unsupported", "share.acknowledgement.mode",
        "share.acquire.mode",
    ),
    **_needless(
        "records are copied byte for byte", "key.serializer", "value.serializer",
        "key.deserializer", "value.deserializer",
    ),
    **_unsupported(_PLUGIN, "interceptor.classes"),
}  # fmt: skip
"""Single names."""

PREFIXES: tuple[tuple[str, Unmapped], ...] = (
    ("source.cluster.", Unmapped("not needed", "it follows from the keys of the cluster")),
    ("target.cluster.", Unmapped("not needed", "it follows from the keys of the cluster")),
    ("config.providers", Unmapped("not needed", "secrets are references to variables or files")),
    ("offset.storage.", Unmapped("not needed", CONNECT)),
    ("config.storage.", Unmapped("not needed", CONNECT)),
    ("status.storage.", Unmapped("not needed", CONNECT)),
    ("inter.worker.", Unmapped("not needed", CONNECT)),
    ("listeners.https.", Unmapped("not needed", CONNECT)),
    ("admin.listeners.https.", Unmapped("not needed", CONNECT)),
    ("worker.", Unmapped("not needed", CONNECT)),
    ("topic.creation.", Unmapped(
        "not needed", "topics are created with the source's partitions and settings, and "
        "sync.topics.replicationFactor"
    )),
    ("replication.policy.internal.", Unmapped(
        "not supported", "MirrorMaker 2's internal topics are written under their default names"
    )),
    ("transforms.", NAMES["transforms"]),
    ("predicates.", NAMES["predicates"]),
    ("errors.deadletterqueue.", NAMES["errors.tolerance"]),
    ("key.converter.", NAMES["key.converter"]),
    ("value.converter.", NAMES["value.converter"]),
    ("header.converter.", NAMES["header.converter"]),
    ("sasl.kerberos.", Unmapped("not supported", _KERBEROS)),
    ("sasl.oauthbearer.", Unmapped("not supported", _OAUTH)),
    ("sasl.login.", Unmapped("not supported", "it is for logins with tokens or tickets")),
)  # fmt: skip
"""Whole families of names; the first that fits counts."""


def unmapped(name: str) -> Unmapped | None:
    """Why a key (without its prefix) maps to nothing; None for one that nobody knows."""
    known = NAMES.get(name)
    if known is not None:
        return known
    return next((why for prefix, why in PREFIXES if name.startswith(prefix)), None)
