"""What a running worker does when the file changes."""

from dataclasses import fields

import pytest

from replicator.policy.values import LinkPolicy
from replicator.topology.changes import KINDS, PlanChanges, changes
from replicator.topology.load import load_text

FILE = """apiVersion: replicator/v1
kind: Topology
metadata: {name: shop}
spec:
  clusters:
    a: {bootstrapServers: [a:9092]}
    b: {bootstrapServers: [b:9092]}
    c: {bootstrapServers: [c:9092]}
  links:
  - {name: l, shape: active-passive, active: a, passive: b, topics: {include: [t]}}
  - {name: m, shape: hub-and-spoke, hub: c, spokes: [a, b], direction: both, topics: {include: [u]}}
"""


def plan_of(text):
    plan = load_text(text).plan
    assert plan is not None
    return plan


def edited(old, new):
    assert old in FILE
    return changes(plan_of(FILE), plan_of(FILE.replace(old, new)))


def test_the_same_plan_asks_for_nothing():
    assert not changes(plan_of(FILE), plan_of(FILE))
    assert changes(plan_of(FILE), plan_of(FILE)) == PlanChanges()


def test_every_policy_field_says_what_its_change_asks_for():
    assert set(KINDS) == {field.name for field in fields(LinkPolicy)}


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("delivery: at-least-once", "restart"),
        ("naming: prefix", "restart"),
        ("filters: [{dropIf: {tombstone: true}}]", "restart"),
        ("commitInterval: 1s", "restart"),
        ("throttle: {bytesPerSecond: 1MB}", "live"),
        ("priority: critical", "live"),
        ("onTruncation: report", "live"),
        ("lanes: 3", "lanes"),
    ],
)
def test_a_changed_field_asks_for_no_more_than_it_needs(field, kind):
    result = edited("topics: {include: [t]}", f"topics: {{include: [t]}}, {field}")
    assert [(c.link, c.flow, c.kinds) for c in result.flows_changed] == [("l", "a->b", {kind})]
    assert not result.pairs_added
    assert not result.restarted_pairs


def test_other_topics_are_a_selection_and_no_restart():
    (change,) = edited("include: [t]", "include: [t, v]").flows_changed
    assert change.kinds == {"selection"}
    assert not change.restarts
    assert change.reason == "topics changed"


def test_relay_restarts_only_the_flows_out_of_the_hub():
    result = edited("direction: both", "direction: both, relay: true")
    assert [c.flow for c in result.flows_changed if c.restarts] == ["c->a", "c->b"]


def test_a_new_address_restarts_the_pairs_of_that_cluster():
    result = edited("[b:9092]", "[b2:9092]")
    assert result.reconnected_clusters == ("b",)
    assert set(result.restarted_pairs) == {"a->b", "b->c", "c->b"}


def test_links_come_and_go_with_their_pairs():
    result = edited("active: a, passive: b", "active: b, passive: a")
    assert (result.pairs_added, result.pairs_removed) == (("b->a",), ("a->b",))
    assert result.flows_added == (("l", "b->a"),)
    assert result.flows_removed == (("l", "a->b"),)


def test_another_topology_name_starts_everything_over():
    assert edited("name: shop", "name: store").renamed
