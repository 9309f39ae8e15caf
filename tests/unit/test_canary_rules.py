"""A canary goes the way of records, and shows up nowhere among them."""

import dataclasses
import json

import pytest

from replicator.control.reconcile.topic_selection import selected_topics
from replicator.dataplane.copy.rewrite import Rewriter
from replicator.dataplane.transport.delivery import CopyOutcome
from replicator.identifiers import canary_topic, is_canary_topic
from replicator.policy.copies.provenance import Arrivals
from replicator.policy.values import DropRule, LinkPolicy, Naming, Selection
from replicator.topology.plan import ClusterPlan, FlowPlan, PairPlan

CANARY = canary_topic("shop", "east", "west", "dr")


def pair(topology="shop"):
    policy = LinkPolicy(topics=Selection(("*",)), groups=Selection(), naming=Naming("prefix"))
    flows = tuple(FlowPlan(name, "east", "west", policy, ("west",)) for name in ("dr", "other"))
    return PairPlan(ClusterPlan("east", ("e:1",)), ClusterPlan("west", ("w:1",)), flows, topology)


def test_a_canary_is_named_by_its_flow_and_link():
    assert CANARY == "__replicator.shop.east.west.dr.canary"
    assert is_canary_topic(CANARY)
    assert not is_canary_topic("__replicator.shop.east.checkpoints")
    assert not is_canary_topic("orders.canary")


def test_each_link_wants_its_own_canary_once_it_is_there_under_the_same_name():
    other_way = canary_topic("shop", "west", "east", "dr")
    elsewhere = canary_topic("shop2", "east", "west", "dr")
    found = selected_topics(pair(), ["orders", CANARY, other_way, elsewhere], ("east", "west"))
    assert [(one.flow.link, one.topic, one.target) for one in found] == [
        ("dr", "orders", "east.orders"),
        ("dr", CANARY, CANARY),
    ]
    assert [one.topic for one in selected_topics(pair(), ["orders"], ("east", "west"))] == [
        "orders"
    ]


def test_a_pair_without_a_topology_has_no_canaries():
    found = selected_topics(pair(topology=""), ["orders", CANARY], ("east", "west"))
    assert [one.topic for one in found] == ["orders"]


@dataclasses.dataclass
class Message:
    name: str

    def topic(self):
        return self.name

    def partition(self):
        return 0

    def offset(self):
        return 7

    def timestamp(self):
        return 1, 5

    def key(self):
        return None

    def value(self):
        return json.dumps({"n": 1}).encode()


@pytest.mark.parametrize(("topic", "passes"), [("orders", False), (CANARY, True)])
def test_users_filters_and_transforms_do_not_see_canaries(topic, passes):
    seen = []
    rewriter = Rewriter(
        blocked=("west",),
        arrivals=Arrivals(),
        filters=(DropRule(key_prefix="x"),),
        transforms=(seen.append,),
    )
    hop = f"east/{topic}/0/7"
    record = rewriter.rewrite(Message(topic), [], hop, CopyOutcome())
    assert (record is not None) == passes
    assert bool(seen) != passes
    if record is not None:
        assert list(record.headers) == [("replicator-hops", hop.encode())]
