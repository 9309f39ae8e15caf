"""Lanes that reach their target through a proxy, as nobody else does."""

from dataclasses import replace
from typing import Self

from lane_lab import LaneLab

from replicator.testing import LocalCluster, ProtocolProxy
from replicator.topology.plan import ClusterPlan


class ProxiedLab(LaneLab):
    """A lab with a proxy in front of its target, for its lanes."""

    target_settings: tuple[tuple[str, str], ...] = ()
    """librdkafka's, as a topology file gives them."""

    def through(self, proxy: ProtocolProxy) -> Self:
        """From now on, this one."""
        self._proxy = proxy
        return self

    def plan(self, cluster: LocalCluster, alias: str) -> ClusterPlan:
        plan = super().plan(cluster, alias)
        if alias != "west":
            return plan
        servers = tuple(self._proxy.bootstrap_servers)
        return replace(plan, bootstrap_servers=servers, kafka=self.target_settings)
