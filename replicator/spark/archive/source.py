"""What an archive command reads: a cluster and topics of it, by name or pattern."""

from collections.abc import Iterable
from dataclasses import dataclass

from replicator.errors import InputError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.policy.copies.selection import pattern_matches
from replicator.topology.plan import ClusterPlan

CLIENT_ID = "replicator-archive"
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Source:
    """What is archived: a cluster of a topology file, and topics by name or glob."""

    cluster: ClusterPlan
    topology_file: str
    topics: tuple[str, ...]

    def admin(self) -> ClusterAdmin:
        """A connection to the cluster."""
        return ClusterAdmin(self.cluster, client_id=CLIENT_ID, timeout_seconds=TIMEOUT_SECONDS)

    def selects(self, name: str) -> bool:
        """Whether a topic is archived; internal ones only by their whole name."""
        return any(pattern_matches(each, name) for each in self.topics) and (
            name in self.topics or not name.startswith("__")
        )

    def missing(self, existing: Iterable[str]) -> list[str]:
        """The names that are no patterns and no topics of the cluster."""
        there = set(existing)
        return [name for name in self.topics if not _is_glob(name) and name not in there]


def require_topics(source: Source) -> None:
    """Checks the names of topics before Spark starts.

    Raises:
        InputError: the cluster has no topic of a name.
        ReplicatorError: the cluster does not answer.
    """
    with source.admin() as admin:
        missing = source.missing(admin.topic_partitions())
    if missing:
        raise InputError(
            f"no such topic: {', '.join(missing)}",
            subject=f"cluster:{source.cluster.alias}",
            remedy="Check the names given with --topic.",
        )


def _is_glob(name: str) -> bool:
    return any(sign in name for sign in "*?") or name.startswith("regex:")
