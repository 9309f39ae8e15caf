"""From a topology file to flows."""

import pytest

from replicator.policy.values import (
    DropRule,
    HeaderMatch,
    Naming,
    Selection,
    StartFrom,
    Throttle,
)
from replicator.topology.file.load import (
    TopologyError,
    load_plan,
    load_text,
    require_plan,
    topology_path,
)
from replicator.topology.plan import OAuthPlan, SecretRef

HEAD = """apiVersion: replicator/v1
kind: Topology
metadata: {name: shop}
spec:
  clusters:
    a: {bootstrapServers: [a:9092]}
    b: {bootstrapServers: [b:9092]}
    c: {bootstrapServers: [c:9092]}
"""


def plan_of(links, defaults=""):
    """The plan of a file that must be right."""
    result = load_text(f"{HEAD}  defaults: {{{defaults}}}\n  links:\n{links}")
    assert result.plan is not None, [str(problem) for problem in result.problems]
    return result.plan


def one(more="", defaults=""):
    """The policy of a plain active-passive link with some more fields."""
    topics = "" if "include" in more else ", topics: {include: [t]}"
    line = f"  - {{name: l, shape: active-passive, active: a, passive: b{topics}, {more}}}"
    return plan_of(line, defaults).flows[0].policy


def naming_of(flow):
    return flow.policy.naming.kind


def test_active_passive_is_one_flow_under_the_same_names():
    plan = plan_of(
        "  - {name: l, shape: active-passive, active: b, passive: a, topics: {include: [t]}}"
    )
    assert [(flow.id, naming_of(flow), flow.blocked) for flow in plan.flows] == [
        ("b->a", "identity", ("a",))
    ]
    assert (plan.links[0].active, plan.links[0].clusters) == ("b", ("b", "a"))


def test_active_active_is_a_flow_for_every_ordered_pair():
    plan = plan_of(
        "  - {name: l, shape: active-active, clusters: [a, b, c], topics: {include: [t]}}"
    )
    assert [flow.id for flow in plan.flows] == ["a->b", "a->c", "b->a", "b->c", "c->a", "c->b"]
    assert {naming_of(flow) for flow in plan.flows} == {"prefix"}
    assert plan.links[0].active is None


@pytest.mark.parametrize(
    ("direction", "flows"),
    [
        ("to-hub", [("b->a", "prefix", ("a",)), ("c->a", "prefix", ("a",))]),
        ("from-hub", [("a->b", "identity", ("b",)), ("a->c", "identity", ("c",))]),
        (
            "both",
            [
                ("b->a", "prefix", ("a",)),
                ("c->a", "prefix", ("a",)),
                ("a->b", "identity", ("b", "c")),
                ("a->c", "identity", ("c", "b")),
            ],
        ),
        (
            "both, relay: true",
            [
                ("b->a", "prefix", ("a",)),
                ("c->a", "prefix", ("a",)),
                ("a->b", "identity", ("b",)),
                ("a->c", "identity", ("c",)),
            ],
        ),
    ],
)
def test_a_hub_relays_between_spokes_only_when_asked(direction, flows):
    line = f"{{name: l, shape: hub-and-spoke, hub: a, spokes: [b, c], direction: {direction},"
    plan = plan_of(f"  - {line} topics: {{include: [t]}}}}")
    assert [(flow.id, naming_of(flow), flow.blocked) for flow in plan.flows] == flows


def test_flows_of_several_links_share_their_pair():
    plan = plan_of(
        "  - {name: l, shape: active-passive, active: a, passive: b, topics: {include: [t]}}\n"
        "  - {name: m, shape: active-active, clusters: [a, b], topics: {include: [u]}}"
    )
    assert [(pair.id, [flow.link for flow in pair.flows]) for pair in plan.pairs] == [
        ("a->b", ["l", "m"]),
        ("b->a", ["m"]),
    ]


def test_a_link_wins_over_the_defaults_field_by_field_in_topics_groups_and_sync():
    policy = one(
        more="topics: {include: [t]}, lanes: auto, throttle: {recordsPerSecond: 9},"
        " sync: {topics: {configs: false, overrides: {b: 2}}}",
        defaults="topics: {exclude: ['*.tmp'], priorities: {t: bulk}}, lanes: 7,"
        " throttle: {bytesPerSecond: 1MB}, sync: {topics: {partitions: false, overrides: {a: 1}}},"
        " delivery: at-least-once",
    )
    assert policy.topics == Selection(("t",), ("*.tmp",))
    assert policy.topic_priorities == (("t", "bulk"),)
    assert policy.lanes is None
    assert policy.throttle == Throttle(None, 9)
    assert policy.sync_topics.configs is False
    assert policy.sync_topics.partitions is False
    assert policy.sync_topics.overrides == (("a", "1"), ("b", "2"))
    assert policy.delivery == "at-least-once"


def test_what_the_file_leaves_out_has_its_documented_default():
    policy = one()
    assert policy.groups == Selection(("*",), ("console-consumer-*", "__*"))
    assert policy.delivery == "exactly-once"
    assert policy.commit_interval_seconds == 0.2
    assert policy.sync_topics.replication_factor is None
    assert (policy.on_record_error, policy.on_truncation) == ("quarantine", "stop")


@pytest.mark.parametrize(
    ("more", "lanes", "single"),
    [
        ("", "path", "full"),
        ("engine: records", "full", "full"),
        ("provenance: full", "full", "full"),
        ("provenance: path", "path", "path"),
        ("engine: batches", "path", "full"),
        ("engine: batches, provenance: path", "path", "path"),
    ],
)
def test_records_that_are_written_one_by_one_say_their_place_unless_the_file_forbids_it(
    more, lanes, single
):
    policy = one(more)
    assert (policy.provenance, policy.single_provenance) == (lanes, single)


def test_every_policy_field_arrives():
    policy = one(
        "naming: {template: '{topic}_{source}'}, startFrom: {timestamp: 2026-01-01T00:00:00+01:00},"
        " commitInterval: 1.5s, lanes: 3, provenance: path, priority: critical,"
        " discoveryInterval: 2m, onRecordError: stop, onTruncation: report, transforms: ['a.b:c'],"
        " filters: [{dropIf: {header: {x: '1', y: }, keyPrefix: k, tombstone: true}}],"
        " throttle: {bytesPerSecond: 64KiB}, sync: {topics: {replicationFactor: 2}}"
    )
    assert policy.naming == Naming("template", "{topic}_{source}")
    assert policy.start_from == StartFrom("timestamp", 1767222000000)
    assert policy.commit_interval_seconds == 1.5
    assert (policy.lanes, policy.provenance, policy.priority) == (3, "path", "critical")
    assert policy.discovery_interval_seconds == 120
    assert (policy.on_record_error, policy.on_truncation) == ("stop", "report")
    assert policy.transforms == ("a.b:c",)
    assert policy.filters == (DropRule((HeaderMatch("x", "1"), HeaderMatch("y")), "k", True),)
    assert policy.throttle.bytes_per_second == 65536
    assert policy.sync_topics.replication_factor == 2


def test_a_plan_holds_references_and_never_secrets():
    text = HEAD.replace(
        "[a:9092]}",
        "[a:9092], security: {protocol: SASL_SSL, mechanism: PLAIN, username: alice,"
        " password: {env: P}, ca: {file: /ca}}, kafka: {socket.keepalive.enable: true}}",
    )
    text += "  links:\n  - {name: l, shape: active-passive, active: a, passive: b, topics: {include: [t]}}"
    cluster = load_text(text).plan.cluster("a")
    assert cluster.security.username == SecretRef(literal="alice")
    assert cluster.security.password == SecretRef(env="P")
    assert cluster.security.ca == SecretRef(file="/ca")
    assert cluster.kafka == (("socket.keepalive.enable", "true"),)


def test_where_tokens_come_from_is_compiled_and_a_region_is_read_from_the_brokers_name():
    servers = "b-1.shop.a1b2c3.c4.kafka.eu-central-1.amazonaws.com:9098"
    text = HEAD.replace(
        "[a:9092]}",
        f"['{servers}'], security: {{protocol: SASL_SSL, mechanism: AWS_MSK_IAM}}}}",
    ).replace(
        "[b:9092]}",
        "[b:9092], security: {protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {tokenUrl:"
        " 'https://idp/token', clientId: me, clientSecret: {env: S}, extensions: {pool: x}}}}",
    )
    text += "  links:\n  - {name: l, shape: active-passive, active: a, passive: b, topics: {include: [t]}}"
    result = load_text(text)
    assert result.plan.cluster("a").security.aws_region == "eu-central-1"
    assert result.plan.cluster("b").security.oauth == OAuthPlan(
        token_url="https://idp/token",
        client_id=SecretRef(literal="me"),
        client_secret=SecretRef(env="S"),
        extensions=(("pool", "x"),),
    )


def test_the_hash_is_of_the_meaning_and_not_of_the_form():
    line = "  - {name: l, shape: active-passive, active: a, passive: b, topics: {include: [t]}%s}"
    plain = plan_of(line % "")
    assert plan_of("# a comment\n" + line % ", commitInterval: 0.2s").hash == plain.hash
    assert plan_of(line % ", commitInterval: 0.3s").hash != plain.hash
    assert len(plain.hash) == 64


def configs_by_flow(links):
    return {flow.id: flow.policy.sync_topics.configs for flow in plan_of(links).flows}


def test_in_a_cycle_of_one_name_topic_settings_go_one_way_only():
    assert configs_by_flow(
        "  - {name: l, shape: active-active, clusters: [b, a], topics: {include: [t]}, naming: identity}"
    ) == {"b->a": False, "a->b": True}
    assert configs_by_flow(
        "  - {name: l, shape: hub-and-spoke, hub: c, spokes: [a, b], direction: both,"
        " topics: {include: [t]}, naming: identity}"
    ) == {"a->c": False, "b->c": False, "c->a": True, "c->b": True}
    ring = "  - {name: l%s, shape: active-passive, active: %s, passive: %s, topics: {include: ['t*']}}\n"
    assert configs_by_flow(ring % (1, "a", "b") + ring % (2, "b", "c") + ring % (3, "c", "a")) == {
        "a->b": True,
        "b->c": True,
        "c->a": False,
    }


def test_without_a_cycle_topic_settings_follow_the_source_everywhere():
    assert configs_by_flow(
        "  - {name: l, shape: active-active, clusters: [a, b], topics: {include: [t]}}"
    ) == {"a->b": True, "b->a": True}
    back = (
        "  - {name: l%s, shape: active-passive, active: %s, passive: %s, topics: {include: [%s]}}\n"
    )
    assert configs_by_flow(back % (1, "a", "b", "t") + back % (2, "b", "a", "u")) == {
        "a->b": True,
        "b->a": True,
    }


def test_require_plan_raises_every_error_at_once(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text(HEAD.replace("kind: Topology", "kind: X") + "  links: []\n")
    with pytest.raises(TopologyError) as caught:
        require_plan(file)
    assert caught.value.exit_code == 2
    assert [problem.path for problem in caught.value.problems] == ["kind", "spec.links"]
    assert len(caught.value.paragraph().splitlines()) == 2


def test_a_file_that_cannot_be_read_is_reported(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    for name, words in (
        ("none.yaml", "no such file"),
        ("latin.yaml", "UTF-8"),
        ("", "not a regular"),
    ):
        with pytest.raises(Exception, match=words):
            load_plan(tmp_path / name)


def test_the_file_is_the_one_given_or_the_variable_or_the_default(monkeypatch):
    monkeypatch.delenv("REPLICATOR_TOPOLOGY", raising=False)
    assert str(topology_path()) == "topology.yaml"
    monkeypatch.setenv("REPLICATOR_TOPOLOGY", "/x.yaml")
    assert str(topology_path()) == "/x.yaml"
    assert str(topology_path("y.yaml")) == "y.yaml"


def test_an_anchor_may_be_used_again():
    text = HEAD + (
        "  links:\n  - {name: l, shape: active-passive, active: a, passive: b, topics: &t {include: [x]}}\n"
        "  - {name: m, shape: active-passive, active: a, passive: c, topics: *t}\n"
    )
    assert load_text(text).problems == ()
