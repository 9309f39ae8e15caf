"""How far the old cluster is copied, and whether records are still written past the fence."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from replicator.clock import Clock
from replicator.control.reconcile.topic_selection import selected_topics
from replicator.errors import NotFoundError, ReplicatorError
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters
from replicator.failover.report.backlog import Backlog, SourceLook, backlog_of
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition, is_canary_topic, is_drill_topic
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.offsets.translation.probe import PartitionProbe
from replicator.topology.plan import ClusterPlan

STABLE_SECONDS = 1.0
"""How long log ends must stay unchanged before the fence counts as holding."""

MOST_PROBES = 32
"""How many partitions are searched for the oldest missing record: some 10 ms each."""


@dataclass(frozen=True, slots=True)
class Bypass:
    """The first record found past the fence."""

    topic: str
    partition: int
    offset: int

    def words(self) -> str:
        """For people."""
        return (
            f"a record was written past the fence: {self.topic}/{self.partition} at {self.offset}"
        )


def link_keys(clusters: LinkClusters, cluster: ClusterPlan) -> tuple[TopicPartition, ...]:
    """Every partition of the link's topics on a cluster now, without canaries.

    Raises:
        ReplicatorError: the cluster does not answer.
    """
    sizes = clusters.admin(cluster).topic_partitions()
    aliases = [str(each.alias) for each in clusters.plan.clusters]
    return tuple(
        (one.topic, number)
        for one in selected_topics(clusters.pair(cluster), sizes, aliases)
        if not is_canary_topic(one.topic)
        for number in range(sizes[one.topic])
    )


def stored_checkpoints(
    clusters: LinkClusters, source: ClusterPlan
) -> dict[TopicPartition, Checkpoint]:
    """The newest checkpoint of every partition of the flow out of a cluster, from the other cluster.

    Raises:
        ReplicatorError: the other cluster does not answer.
    """
    return read_checkpoints(clusters.topology, clusters.pair(source), client_id=CLIENT_ID)


def recorded_topics(clusters: LinkClusters, source: ClusterPlan) -> dict[str, int]:
    """Partitions of the topics that the flow out of a cluster copies or refuses, by its own records.

    Without canaries and what the file selects no more.

    Raises:
        ReplicatorError: the other cluster does not answer.
    """
    control = clusters.control(clusters.other(source))
    sizes = {
        record.topic: record.partitions
        for record in control.topics(source.alias, clusters.link.name)
        if record.state != "gone" and not is_canary_topic(record.topic)
    }
    aliases = [str(each.alias) for each in clusters.plan.clusters]
    return {
        one.topic: sizes[one.topic]
        for one in selected_topics(clusters.pair(source), sizes, aliases)
    }


def measure_backlog(
    clusters: LinkClusters,
    source: ClusterPlan,
    ends: Mapping[TopicPartition, int] | None = None,
    *,
    recorded: Mapping[str, int] | None = None,
) -> Backlog:
    """What the flow out of a cluster still has to copy, up to its ends or the given ones.

    ``recorded`` is what ``recorded_topics`` said a moment ago, for those who ask again and again. Ends are those of the log, open transactions included: what may still be committed is not copied.
    Topics are asked for by name before nothing is said to be left.

    Raises:
        ReplicatorError: a cluster does not answer at all.
    """
    recorded = recorded_topics(clusters, source) if recorded is None else recorded
    checkpoints = stored_checkpoints(clusters, source)
    look = look_at(clusters, source, recorded)
    found = backlog_of(look, checkpoints, recorded, ends)
    if found.known == 0:
        look = _by_name(clusters, source, look, recorded)
        found = backlog_of(look, checkpoints, recorded, ends)
    return found


def look_at(
    clusters: LinkClusters,
    cluster: ClusterPlan,
    recorded: Mapping[str, int],
    *,
    by_name: bool = False,
) -> SourceLook:
    """What a cluster says of its logs; topics that it does not list, or all, are asked for by name.

    Raises:
        ReplicatorError: it does not answer at all.
    """
    admin = clusters.admin(cluster)
    keys = link_keys(clusters, cluster)
    latest = admin.offsets(keys, "latest", "read_uncommitted")
    refused = {key: one.message for key, one in latest.items() if isinstance(one, ReplicatorError)}
    there = {key: one for key, one in latest.items() if isinstance(one, int)}
    look = SourceLook(
        ends=there,
        starts=admin.known_offsets(there, "earliest", "read_uncommitted"),
        stable=admin.known_offsets(there, "latest"),
        refused=refused,
    )
    listed = {topic for topic, _ in there}
    names = recorded if by_name else [topic for topic in recorded if topic not in listed]
    return _by_name(clusters, cluster, look, names)


def _by_name(
    clusters: LinkClusters, cluster: ClusterPlan, look: SourceLook, names: Collection[str]
) -> SourceLook:
    """Adds ids of topics, and why some are not described: a listing leaves out what is hidden."""
    if not names:
        return look
    ids: dict[str, str] = {}
    absent: dict[str, str] = {}
    gone: set[str] = set()
    for topic, one in clusters.admin(cluster).describe_each_topic(names).items():
        if isinstance(one, NotFoundError) and is_drill_topic(topic):
            gone.add(topic)
        elif isinstance(one, NotFoundError):
            absent[topic] = f"{cluster.alias} has no such topic any more"
        elif isinstance(one, ReplicatorError):
            absent[topic] = one.message
        else:
            ids[topic] = one.topic_id
    return replace(look, topic_ids=ids, absent=absent, gone=frozenset(gone))


def oldest_missing_seconds(
    clusters: LinkClusters,
    lag: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    *,
    clock: Clock,
) -> dict[str, float]:
    """How old the oldest record is that was not copied, by topic of the old cluster.

    Reads the partitions that lack most; what cannot be read is left out.
    """
    missing = sorted((key for key in lag if lag[key]), key=lambda key: -lag[key])
    found: dict[str, float] = {}
    with PartitionProbe(clusters.old, client_id=CLIENT_ID, clock=clock) as probe:
        for topic, number in missing[:MOST_PROBES]:
            offset = ends[topic, number] - lag[topic, number]
            try:
                message = probe.record(topic, number, offset, or_next=True)
            except ReplicatorError:
                break
            written_ms = message.timestamp()[1] if message is not None else 0
            if written_ms > 0:
                age = max(0.0, clock.now() - written_ms / 1000)
                found[topic] = max(age, found.get(topic, 0.0))
    return found


def log_ends(clusters: LinkClusters, cluster: ClusterPlan) -> dict[TopicPartition, int]:
    """Where the logs of the link's topics end on a cluster, open transactions included.

    Raises:
        ReplicatorError: the cluster does not answer.
    """
    keys = link_keys(clusters, cluster)
    return clusters.offsets(cluster, keys, isolation="read_uncommitted")


def wait_for_stable_ends(
    clusters: LinkClusters, cluster: ClusterPlan, *, clock: Clock, patience_seconds: float
) -> dict[TopicPartition, int] | None:
    """A cluster's log ends once they stay unchanged; None when they kept growing.

    Raises:
        ReplicatorError: the cluster does not answer.
    """
    deadline = clock.monotonic() + patience_seconds
    last: dict[TopicPartition, int] | None = None
    stood_since = clock.monotonic()
    while True:
        now = log_ends(clusters, cluster)
        if now != last:
            last, stood_since = now, clock.monotonic()
        elif clock.monotonic() - stood_since >= STABLE_SECONDS:
            return now
        if clock.monotonic() >= deadline:
            return None
        clock.sleep(0.1)


def find_bypass(
    clusters: LinkClusters, fenced: Mapping[TopicPartition, int], *, clock: Clock
) -> tuple[Bypass | None, dict[TopicPartition, int]]:
    """Whether a record stands past the fence, and the ends as they are now.

    Log ends also grow by transaction markers, which are no writes.

    Raises:
        ReplicatorError: the old cluster does not answer.
    """
    now = log_ends(clusters, clusters.old)
    grown = {key: fenced.get(key, 0) for key, end in now.items() if end > fenced.get(key, 0)}
    if grown:
        with PartitionProbe(clusters.old, client_id=CLIENT_ID, clock=clock) as probe:
            found = first_record(probe, grown.items())
        if found is not None:
            return found, now
    return None, now


def first_record(
    probe: PartitionProbe, places: Iterable[tuple[TopicPartition, int]]
) -> Bypass | None:
    """The first record at or behind one of the places; transaction markers are none."""
    for (topic, number), offset in places:
        message = probe.record(topic, number, offset, or_next=True)
        if message is not None:
            return Bypass(topic, number, message.offset() or offset)
    return None
