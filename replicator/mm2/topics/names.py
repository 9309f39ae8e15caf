"""How MirrorMaker 2 names topics, with the separator it has by default. Pure.

Source: ``DefaultReplicationPolicy`` and ``IdentityReplicationPolicy`` of Apache Kafka's
connect-mirror-client. Internal topics and heartbeats are called the same under both.
"""

from collections.abc import Collection
from typing import Literal

from replicator.policy.copies.selection import MM2_HEARTBEATS, is_heartbeats_topic

ReplicationPolicy = Literal["default", "identity"]

SEPARATOR = "."
HEARTBEATS = MM2_HEARTBEATS


def checkpoints_topic(source: str) -> str:
    """Where the target keeps the positions of the source's groups."""
    return f"{source}{SEPARATOR}checkpoints{SEPARATOR}internal"


def offset_syncs_topic(other: str) -> str:
    """Pairs of offsets; named after the *other* cluster, on the source by default."""
    return f"mm2-offset-syncs{SEPARATOR}{other}{SEPARATOR}internal"


def remote_topic(policy: ReplicationPolicy, source: str, topic: str) -> str:
    """What a topic of the source is called on the target."""
    if policy == "identity" and not topic.endswith(HEARTBEATS):
        return topic
    return f"{source}{SEPARATOR}{topic}"


def onward_heartbeats(
    topic: str,
    *,
    source: str,
    target: str,
    aliases: Collection[str],
    direct: Collection[str] = (),
) -> str | None:
    """What a heartbeats topic of the source is called on the target; None where it does not go.

    Clients count hops in these names, so copies of copies go on too: ``east.heartbeats`` on west is
    ``west.east.heartbeats`` on north. A name that came through the target does not go back there,
    nor does one go the long way whose origin is there in one hop: a mesh would have a topic for
    every path through it.

    Args:
        topic: on the source.
        source: alias of the source.
        target: alias of the target.
        aliases: of the topology; any other prefix makes it somebody's own topic.
        direct: the clusters whose heartbeats come to the target in one hop.
    """
    chain = topic.split(SEPARATOR)[:-1]
    if not is_heartbeats_topic(topic, aliases) or target in chain:
        return None
    if chain and chain[-1] in direct:
        return None
    return remote_topic("default", source, topic)
