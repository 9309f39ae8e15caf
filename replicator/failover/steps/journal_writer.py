"""Writes the records of role changes: one transactional id per link and cluster, the later writer fences the earlier."""

from collections.abc import Callable, Sequence

from replicator.control.records.base import Record
from replicator.control.records.role_records import RoleRecord
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters
from replicator.identifiers import control_topic, transition_transactional_id
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.topology.plan import ClusterPlan


def open_writer(clusters: LinkClusters, cluster: ClusterPlan) -> LogWriter:
    """A writer for one cluster of the link; it fences others at its first use."""
    return LogWriter(
        cluster,
        control_topic(clusters.topology),
        client_id=CLIENT_ID,
        transactional_id=transition_transactional_id(clusters.topology, clusters.link.name),
    )


def write_once(
    clusters: LinkClusters,
    cluster: ClusterPlan,
    records: Sequence[Record],
    *,
    erase: bool,
    check: Callable[[], None],
) -> None:
    """Writes or deletes records there, all or nothing.

    A role older than the stored one is left out: another operator continued this transition while this
    process slept. ``check`` is asked once no other writer can write there, and raises to write nothing.

    Raises:
        ReplicatorError: nothing was written, or it is unknown.
    """
    topic = control_topic(clusters.topology)
    with open_writer(clusters, cluster) as writer:
        ensure_compacted_topic(clusters.admin(cluster), topic, partitions=1)
        writer.open()  # other writers are fenced from here on, so what is read next is final
        check()
        roles = any(isinstance(one, RoleRecord) for one in records)
        end = writer.end() if roles else 0
        fresh = [one for one in records if not _outdated(clusters, cluster, one, end)]
        writer.write([one.tombstone() if erase else one.encode() for one in fresh])


def _outdated(clusters: LinkClusters, cluster: ClusterPlan, record: Record, end: int) -> bool:
    if not isinstance(record, RoleRecord):
        return False
    held = clusters.control(cluster, known_to_exist=True, reaches=end).role(record.link)
    return held is not None and held.role().rank > record.role().rank
