"""The cluster that the options of a reader or writer name: of a topology file, or by bootstrap servers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from replicator.identifiers import ClusterAlias
from replicator.topology.file.load import require_plan, topology_path
from replicator.topology.plan import ClusterPlan

NO_TOPOLOGY = "spark"
"""Stands for the topology's name in reserved names where a cluster is given by bootstrap servers."""


@dataclass(frozen=True, slots=True)
class ClusterOption:
    """How to connect, and the name of the topology that says so."""

    cluster: ClusterPlan
    topology: str

    def with_settings(self, settings: Iterable[tuple[str, str]]) -> ClusterPlan:
        """The cluster with more client settings, which win over its own."""
        return replace(self.cluster, kafka=(*self.cluster.kafka, *settings))


def read_cluster(options: Mapping[str, str], wrong: list[str]) -> ClusterOption | None:
    """The cluster, or None and one more sentence in ``wrong``.

    Args:
        options: by name in lower case.
        wrong: one sentence per mistake is appended.

    Raises:
        InputError: the topology file cannot be used.
    """
    servers = options.get("bootstrapservers") or options.get("kafka.bootstrap.servers")
    alias = options.get("cluster")
    if servers and alias:
        wrong.append("give cluster or bootstrapServers, not both")
    elif servers:
        names = tuple(server.strip() for server in servers.split(","))
        return ClusterOption(ClusterPlan(ClusterAlias("bootstrap"), names), NO_TOPOLOGY)
    elif not alias:
        wrong.append("name a cluster of the topology with cluster, or give bootstrapServers")
    else:
        plan = require_plan(topology_path(options.get("topology")))
        try:
            return ClusterOption(plan.cluster(alias), plan.topology)
        except KeyError:
            there = ", ".join(str(each.alias) for each in plan.clusters)
            wrong.append(f"the topology has no cluster '{alias}' (there are {there})")
    return None
