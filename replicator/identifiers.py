"""The names the product puts on things, and the one place that spells them on the wire.

Everything here is pure. The wire names are a contract (operators' tools and other versions rely on
them), so nothing else in the code may build such a name by hand.
"""

import base64
from collections.abc import Iterable
from typing import NewType

ClusterAlias = NewType("ClusterAlias", str)
LinkName = NewType("LinkName", str)
FlowId = NewType("FlowId", str)
LaneNumber = NewType("LaneNumber", int)

TopicPartition = tuple[str, int]
"""A topic and a partition number, where the cluster follows from the context."""

JsonObject = dict[str, object]
"""A JSON object that a command or the API gives away."""

HOPS_HEADER = "replicator-hops"
RESERVED_PREFIX = "__replicator."
DRILL_TOPICS = "replicator-drill"
"""What the names of topics begin with that drills make on real links."""

LOG_END_KEY = b'{"kind":"end","v":1}'
"""Key of a record without a value that is written to a log of the replicator's own to learn where that ends."""

_CANARY = ".canary"
_STREAM = "spark-"


def topic_id_text(topic_id: bytes) -> str:
    """A topic's id of 16 bytes as Kafka's tools write it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def flow_id(source: ClusterAlias, target: ClusterAlias) -> FlowId:
    """Returns the flow as people write it: ``east->west``."""
    return FlowId(f"{source}->{target}")


def parse_flow_id(text: str) -> tuple[ClusterAlias, ClusterAlias]:
    """Reads ``east->west``.

    Raises:
        ValueError: when the text is not two aliases joined by ``->``.
    """
    source, arrow, target = text.strip().partition("->")
    if not arrow or not source.strip() or not target.strip() or "->" in target:
        raise ValueError(f"'{text}' is not a flow: write it as 'source->target'")
    return ClusterAlias(source.strip()), ClusterAlias(target.strip())


def checkpoints_topic(topology: str, source: ClusterAlias) -> str:
    """Control topic on the target, one partition per lane."""
    return f"{RESERVED_PREFIX}{topology}.{source}.checkpoints"


def topologies_from(sources: Iterable[ClusterAlias | str], topics: Iterable[str]) -> set[str]:
    """The topologies that copy from one of these aliases to the cluster that has these topics."""
    endings = tuple(f".{source}.checkpoints" for source in sources)
    return {
        name[len(RESERVED_PREFIX) : -len(ending)]
        for name in topics
        if name.startswith(RESERVED_PREFIX)
        for ending in endings
        if name.endswith(ending)
    } - {""}


def control_topic(topology: str) -> str:
    """Control topic on every cluster, one partition."""
    return f"{RESERVED_PREFIX}{topology}.control"


def quarantine_topic(topology: str, source: ClusterAlias) -> str:
    """Topic on the target that keeps records which could not be copied."""
    return f"{RESERVED_PREFIX}{topology}.{source}.quarantine"


def canary_topic(topology: str, source: ClusterAlias, target: ClusterAlias, link: LinkName) -> str:
    """Topic on both sides whose records show that a flow of a link moves; one partition."""
    return f"{RESERVED_PREFIX}{topology}.{source}.{target}.{link}{_CANARY}"


def is_canary_topic(name: str) -> bool:
    """Whether a replicated topic is a canary's: copied like any other, shown and counted nowhere."""
    return name.startswith(RESERVED_PREFIX) and name.endswith(_CANARY)


def is_drill_topic(name: str) -> bool:
    """Whether a drill on a real link made a topic, and deletes it at its end: nobody misses what it held."""
    return name.startswith(f"{DRILL_TOPICS}.")


def membership_group(topology: str, source: ClusterAlias) -> str:
    """Consumer group on the target whose members are the workers of a flow."""
    return f"{RESERVED_PREFIX}{topology}.{source}"


def progress_group(topology: str, target: ClusterAlias) -> str:
    """Consumer group on the source that shows a flow's progress to ordinary lag tools."""
    return f"replicator.{topology}.{target}"


def lane_transactional_id(
    topology: str, source: ClusterAlias, target: ClusterAlias, lane: LaneNumber | int
) -> str:
    """Transactional id of one lane; the last producer to initialise it owns the lane."""
    return f"{RESERVED_PREFIX}{topology}.{source}.{target}.lane-{lane}"


def seed_transactional_id(
    topology: str, source: ClusterAlias, target: ClusterAlias, topic: str, partition: int
) -> str:
    """Transactional id of the Spark copy of one source partition, which has one writer at a time."""
    return f"{RESERVED_PREFIX}{topology}.{source}.{target}.seed.{topic}.{partition}"


def stream_id(host: str, pid: int) -> str:
    """How the driver of a Spark stream is known among workers."""
    return f"{_STREAM}{host}-{pid}"


def is_stream(worker: str) -> bool:
    """Whether a worker is the driver of a Spark stream, which has no lanes."""
    return worker.startswith(_STREAM)


def worker_client_id(topology: str, worker: str) -> str:
    """Client id of a worker; what follows the prefix is how the worker is known."""
    return f"replicator-{topology}-{worker}"


def mm2_transactional_id(topology: str, source: ClusterAlias, target: ClusterAlias) -> str:
    """Transactional id of the writer of MirrorMaker 2 checkpoints; fences one that was replaced."""
    return f"{RESERVED_PREFIX}{topology}.{source}.{target}.mm2"


def controller_transactional_id(topology: str, source: ClusterAlias, target: ClusterAlias) -> str:
    """Transactional id of a flow's controller; fences a controller that was replaced."""
    return f"{RESERVED_PREFIX}{topology}.{source}.{target}.controller"


def transition_transactional_id(topology: str, link: str) -> str:
    """Transactional id of a change of a link's role; the later of two operators fences the other."""
    return f"{RESERVED_PREFIX}{topology}.{link}.transition"


def salvage_transactional_id(topology: str, link: str) -> str:
    """Transactional id of the writer that puts an unreplicated tail on the new active cluster."""
    return f"{RESERVED_PREFIX}{topology}.{link}.salvage"


def restores_topic(topology: str) -> str:
    """Compacted topic with how far restores came; on each cluster that was restored into."""
    return f"{RESERVED_PREFIX}{topology}.restores"


def restore_transactional_id(topology: str, restore: str, topic: str, partition: int) -> str:
    """Transactional id of one partition of a restore; the last producer to initialise it writes it."""
    return f"{RESERVED_PREFIX}{topology}.restore.{restore}.{topic}.{partition}"


def sinks_topic(topology: str) -> str:
    """Compacted topic with what Spark's sinks have written; on each cluster they write to."""
    return f"{RESERVED_PREFIX}{topology}.sinks"


def sink_transactional_id(topology: str, query: str, task: int) -> str:
    """Transactional id of one task of a Spark query that writes; fences an earlier attempt of it."""
    return f"{RESERVED_PREFIX}{topology}.sink.{query}.{task}"


def audit_topic(topology: str, source: ClusterAlias) -> str:
    """Compacted topic on the target with the books of audits."""
    return f"{RESERVED_PREFIX}{topology}.{source}.audit"


def audit_transactional_id(
    topology: str, source: ClusterAlias, target: ClusterAlias, bucket_seconds: int
) -> str:
    """Transactional id of the audits of a flow with one width of buckets."""
    return f"{RESERVED_PREFIX}{topology}.{source}.{target}.audit-{bucket_seconds}"
