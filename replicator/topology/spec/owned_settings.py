"""librdkafka settings that a topology may not set, each with the reason.

A setting is owned when another value would break ordering, delivery or the promise about secrets.
Everything else passes through as it is.
"""

_CONNECTION = "it has its own field under the cluster (bootstrapServers, security)"
_SECRETS = "secrets stand under security, by reference"
_ORDER = "another value can reorder or repeat records"
_LOSS = "another value can lose records"
_POSITION = "positions are kept in checkpoints, not by the client"
_LANES = "every lane sets its own"
_EXACT = "exactly-once rests on it"
_CODE = "it would load code or run commands"

OWNED: dict[str, str] = {
    "bootstrap.servers": _CONNECTION,
    "metadata.broker.list": _CONNECTION,
    "security.protocol": _CONNECTION,
    "client.id": _LANES,
    "group.id": _LANES,
    "group.instance.id": _LANES,
    "group.protocol": _LANES,
    "group.remote.assignor": _LANES,
    "partition.assignment.strategy": _LANES,
    "session.timeout.ms": "failure detection of workers rests on it",
    "heartbeat.interval.ms": "failure detection of workers rests on it",
    "max.poll.interval.ms": "failure detection of workers rests on it",
    "enable.auto.commit": _POSITION,
    "auto.commit.enable": _POSITION,
    "auto.commit.interval.ms": _POSITION,
    "enable.auto.offset.store": _POSITION,
    "offset.store.method": _POSITION,
    "auto.offset.reset": "lost source data is detected, never skipped in silence",
    "enable.partition.eof": "the end of a partition is how a lane knows that it has caught up",
    "isolation.level": "records of aborted transactions would be copied",
    "check.crcs": "damaged records would be copied",
    "enable.idempotence": _ORDER,
    "enable.gapless.guarantee": _ORDER,
    "acks": _LOSS,
    "request.required.acks": _LOSS,
    "transactional.id": _LANES,
    "transaction.timeout.ms": _EXACT,
    "max.in.flight": _ORDER,
    "max.in.flight.requests.per.connection": _ORDER,
    "retries": _LOSS,
    "message.send.max.retries": _LOSS,
    "message.timeout.ms": _LOSS,
    "delivery.timeout.ms": _LOSS,
    "request.timeout.ms": _LOSS,
    "delivery.report.only.error": "offsets on the target are learnt from delivery reports",
    "partitioner": "a record keeps its partition",
    "sticky.partitioning.linger.ms": "a record keeps its partition",
    "queuing.strategy": _ORDER,
    "allow.auto.create.topics": "topics are created with their partitions and settings",
    "plugin.library.paths": _CODE,
    "builtin.features": _CODE,
    "opaque": _LANES,
    "default_topic_conf": _LANES,
    "log_cb": _LANES,
    "error_cb": _LANES,
    "stats_cb": _LANES,
    "oauth_cb": _LANES,
    "dr_cb": _LANES,
    "dr_msg_cb": _LANES,
    "on_delivery": _LANES,
    "throttle_cb": _LANES,
    "logger": _LANES,
    "debug": "it can print credentials; use --debug",
}

_OWNED_PREFIXES: dict[str, str] = {"sasl.": _SECRETS}

ALLOWED_TLS = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.curves.list",
        "ssl.sigalgs.list",
        "ssl.endpoint.identification.algorithm",
    }
)
"""TLS settings that hold no secret and load no code."""


def owner_reason(name: str) -> str | None:
    """Why a setting cannot be given by the user, or None when it can."""
    key = name.strip().lower()
    if key in OWNED:
        return OWNED[key]
    if key.startswith("ssl.") or key == "enable.ssl.certificate.verification":
        return None if key in ALLOWED_TLS else _SECRETS
    return next((why for prefix, why in _OWNED_PREFIXES.items() if key.startswith(prefix)), None)
