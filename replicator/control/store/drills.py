"""Drills on record: a digest is written into the link's control topics, and read from all of them."""

from collections.abc import Iterable

from replicator.control.records.drill_records import DrillRecord
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.identifiers import control_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.topology.plan import ClusterPlan, Plan

CLIENT_ID = "replicator-drills"
CLUSTER_SECONDS = 5.0


def write_drill(plan: Plan, record: DrillRecord) -> dict[str, str]:
    """Writes the digest into the control topic of every cluster of its link that takes it.

    Returns why not, by cluster; empty when all have it.
    """
    failed: dict[str, str] = {}
    for cluster in _clusters(plan, record.link):
        try:
            with LogWriter(
                cluster, control_topic(plan.topology), client_id=CLIENT_ID,
                timeout_seconds=CLUSTER_SECONDS,
            ) as writer:  # fmt: skip
                writer.write([record.encode()])
        except ReplicatorError as error:
            failed[str(cluster.alias)] = error.message
    return failed


def drills_in(states: Iterable[ControlState], link: str | None = None) -> list[DrillRecord]:
    """Every drill in control topics that were read, of one link if asked, oldest first."""
    found = {
        record.id: record
        for state in states
        for record in state.drills()
        if link in {None, record.link}
    }
    return sorted(found.values(), key=lambda record: (record.at_ms, record.id))


def _clusters(plan: Plan, link: str) -> Iterable[ClusterPlan]:
    aliases = {alias for each in plan.links if each.name == link for alias in each.clusters}
    return (cluster for cluster in plan.clusters if cluster.alias in aliases)
