"""``kafka.*`` options of a reader, in the names of the Java client, as settings of the client used here. Pure.

What has a counterpart is translated; what has none, or would break a promise, is refused by its name.
"""

from collections.abc import Mapping

from replicator.topology.owned_settings import owner_reason

PREFIX = "kafka."
_READ_ELSEWHERE = {"bootstrap.servers", "isolation.level"}
_RENAMED = {
    "connections.max.idle.ms": "connections.max.idle.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}
_SAME = {
    "client.dns.lookup", "fetch.max.bytes", "fetch.min.bytes", "max.partition.fetch.bytes",
    "metadata.max.age.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "retry.backoff.max.ms", "retry.backoff.ms", "socket.connection.setup.timeout.ms",
}  # fmt: skip
_SECRETS = ("sasl.", "ssl.", "security.")
_UNUSED = ("key.", "value.", "interceptor.", "metric", "auto.", "enable.auto", "partition.assign")


def client_settings(options: Mapping[str, str], wrong: list[str]) -> tuple[tuple[str, str], ...]:
    """The client settings that ``kafka.*`` options ask for.

    Args:
        options: by name in lower case; those without the prefix are left alone.
        wrong: one sentence per option that is refused is appended.
    """
    found: dict[str, str] = {}
    for name, value in options.items():
        if not name.startswith(PREFIX):
            continue
        plain = name.removeprefix(PREFIX)
        if plain in _READ_ELSEWHERE or (plain == "security.protocol" and value == "PLAINTEXT"):
            continue
        ours = _RENAMED.get(plain) or (plain if plain in _SAME else None)
        if ours is not None:
            found[ours] = value
        else:
            wrong.append(f"'{name}' cannot be set: {_why_not(plain)}")
    return tuple(found.items())


def _why_not(plain: str) -> str:
    if plain.startswith(_SECRETS):
        return (
            "name the cluster of a topology file with 'cluster'; its secrets stay references there"
        )
    if plain == "group.id":
        return "nothing is committed to a group; Spark keeps the offsets"
    if plain.startswith(_UNUSED):
        return "the reader does not use it"
    if reason := owner_reason(plain):
        return reason
    return "the client of this reader has no such setting"
