import json

from replicator.api.routes.topology_view import topology_view
from replicator.identifiers import ClusterAlias, LinkName
from replicator.policy.values import LinkPolicy, Selection
from replicator.topology.plan import (
    ClusterPlan,
    FlowPlan,
    LinkPlan,
    Plan,
    SecretRef,
    SecurityPlan,
)

EAST, WEST = ClusterAlias("east"), ClusterAlias("west")
FLOW = FlowPlan(
    link=LinkName("orders-dr"),
    source=EAST,
    target=WEST,
    policy=LinkPolicy(topics=Selection(include=("orders",)), groups=Selection()),
    blocked=(WEST,),
)
PLAN = Plan(
    topology="retail",
    clusters=(
        ClusterPlan(
            EAST,
            ("kafka-east:9092",),
            SecurityPlan(
                protocol="SASL_SSL",
                mechanism="PLAIN",
                username=SecretRef(env="EAST_USER"),
                password=SecretRef(file="/etc/east/password"),
            ),
            (("some.setting", "perhaps-secret"),),
        ),
        ClusterPlan(WEST, ("kafka-west:9092",)),
    ),
    links=(LinkPlan(LinkName("orders-dr"), "active-passive", (EAST, WEST), EAST, None, (FLOW,)),),
    hash="abc",
)


def test_clusters_links_flows_and_policies_are_shown():
    view = topology_view(PLAN)
    assert (view["topology"], view["planHash"]) == ("retail", "abc")
    assert view["clusters"][0]["bootstrapServers"] == ["kafka-east:9092"]
    assert view["clusters"][0]["protocol"] == "SASL_SSL"
    flow = view["links"][0]["flows"][0]
    assert (flow["flow"], flow["source"], flow["target"]) == ("east->west", "east", "west")
    assert flow["policy"]["delivery"] == "exactly-once"


def test_neither_secrets_nor_where_they_lie_nor_unknown_settings_are_shown():
    text = json.dumps(topology_view(PLAN))
    assert "/etc/east" not in text
    assert "EAST_USER" not in text
    assert "perhaps-secret" not in text
    assert "some.setting" in text
