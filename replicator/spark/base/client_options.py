"""``kafka.*`` options of a reader or writer, in the names of the Java client, as settings of the client used here. Pure.

What has a counterpart is translated; what has none, or would break a promise, is refused by its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.topology.spec.owned_settings import owner_reason

PREFIX = "kafka."
_CONNECTION = {
    "client.dns.lookup": "client.dns.lookup",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "metadata.max.age.ms": "metadata.max.age.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "retry.backoff.max.ms": "retry.backoff.max.ms",
    "retry.backoff.ms": "retry.backoff.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
}


@dataclass(frozen=True, slots=True)
class Side:
    """What a reader or a writer takes: names of the Java client to ours, and names read elsewhere."""

    name: str
    settings: Mapping[str, str]
    elsewhere: frozenset[str]


READER = Side(
    "reader",
    {
        **_CONNECTION,
        "fetch.max.bytes": "fetch.max.bytes",
        "fetch.max.wait.ms": "fetch.wait.max.ms",
        "fetch.min.bytes": "fetch.min.bytes",
        "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    },
    frozenset({"bootstrap.servers", "isolation.level"}),
)
WRITER = Side(
    "writer",
    {
        **_CONNECTION,
        "batch.size": "batch.size",
        "compression.type": "compression.type",
        "linger.ms": "linger.ms",
    },
    frozenset({"bootstrap.servers", "max.request.size"}),
)
_SECRETS = ("sasl.", "ssl.", "security.")
_UNUSED = ("key.", "value.", "interceptor.", "metric", "auto.", "enable.auto", "partition.assign")


def client_settings(
    options: Mapping[str, str], side: Side, wrong: list[str]
) -> tuple[tuple[str, str], ...]:
    """The client settings that ``kafka.*`` options ask for.

    Args:
        side: whose options they are.
        options: by name in lower case; those without the prefix are left alone.
        wrong: one sentence per option that is refused is appended.
    """
    found: dict[str, str] = {}
    for name, value in options.items():
        if not name.startswith(PREFIX):
            continue
        plain = name.removeprefix(PREFIX)
        if plain in side.elsewhere or (plain == "security.protocol" and value == "PLAINTEXT"):
            continue
        ours = side.settings.get(plain)
        if ours is not None:
            found[ours] = value
        else:
            wrong.append(f"'{name}' cannot be set: {_why_not(plain, side)}")
    return tuple(found.items())


def _why_not(plain: str, side: Side) -> str:
    if plain.startswith(_SECRETS):
        return (
            "name the cluster of a topology file with 'cluster'; its secrets stay references there"
        )
    if plain == "group.id":
        return "nothing is committed to a group; Spark keeps the offsets"
    if plain.startswith(_UNUSED):
        return f"a {side.name} does not use it"
    if reason := owner_reason(plain):
        return reason
    return f"the client of this {side.name} has no such setting"
