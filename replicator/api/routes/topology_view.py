"""The plan as the API shows it: what runs where and by which rules, never a secret. Pure."""

import dataclasses

from replicator.api.routes.provider import JsonObject
from replicator.topology.plan import ClusterPlan, LinkPlan, Plan


def topology_view(plan: Plan) -> JsonObject:
    """The object of ``/api/v1/topology``.

    Of a cluster's security only protocol and mechanism are shown; extra client settings by name
    alone, because values of settings we do not know may be secret.
    """
    return {
        "topology": plan.topology,
        "planHash": plan.hash,
        "clusters": [_cluster(cluster) for cluster in plan.clusters],
        "links": [_link(link) for link in plan.links],
    }


def _cluster(cluster: ClusterPlan) -> JsonObject:
    return {
        "alias": cluster.alias,
        "bootstrapServers": list(cluster.bootstrap_servers),
        "protocol": cluster.security.protocol,
        "mechanism": cluster.security.mechanism,
        "kafkaSettings": [name for name, _ in cluster.kafka],
    }


def _link(link: LinkPlan) -> JsonObject:
    return {
        "link": link.name,
        "shape": link.shape,
        "clusters": list(link.clusters),
        "active": link.active,
        "hub": link.hub,
        "flows": [
            {
                "flow": flow.id,
                "source": flow.source,
                "target": flow.target,
                "policy": dataclasses.asdict(flow.policy),
            }
            for flow in link.flows
        ],
    }
