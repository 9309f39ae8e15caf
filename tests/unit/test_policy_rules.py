"""The rules of naming, selection, overlap, settings and filters, by example."""

import pytest

from replicator.policy.capacity.lane_assignment import auto_lanes, lane_of
from replicator.policy.copies.filters import drop_reason
from replicator.policy.copies.naming import (
    alias_chain,
    name_problem,
    source_name,
    target_name,
    template_problem,
)
from replicator.policy.copies.overlap import find_overlap, on_target
from replicator.policy.copies.selection import select_groups, select_topics, topic_priority
from replicator.policy.copies.topic_config import (
    HEADER_HEADROOM_BYTES,
    ConfigValue,
    config_changes,
    creation_configs,
    desired_replication_factor,
)
from replicator.policy.values import (
    DropRule,
    HeaderMatch,
    LinkPolicy,
    Naming,
    Selection,
    TopicSync,
)

PREFIX = Naming("prefix")
IDENTITY = Naming("identity")


def policy(include, exclude=(), naming=IDENTITY, **more):
    return LinkPolicy(Selection(tuple(include), tuple(exclude)), Selection(), naming, **more)


def selected(rules, topics, blocked=("west",)):
    return select_topics(rules, topics, blocked=blocked, aliases=("east", "west", "north"))


# Naming


def test_names_go_there_and_back():
    for naming, name in (
        (IDENTITY, "orders"),
        (PREFIX, "east.orders"),
        (Naming("template", "{topic}_{source}-dr"), "orders_east-dr"),
    ):
        assert target_name(naming, "east", "orders") == name
        assert source_name(naming, "east", name) == "orders"


def test_a_name_that_is_no_copy_reads_back_as_none():
    assert source_name(PREFIX, "east", "west.orders") is None
    assert source_name(PREFIX, "east", "east.") is None


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("x", "exactly once"),
        ("{topic}{topic}", "exactly once"),
        ("{source}{topic}", "separated"),
        ("{topic}-{source}", "separated"),
        ("{source}.{source}.{topic}", "only once"),
        ("{region}.{topic}", "'{region}' is not a field"),
        ("{source}/{topic}", "characters"),
        ("{source}.{topic", "exactly once"),
    ],
)
def test_a_template_that_cannot_be_read_back_is_refused(template, words):
    assert words in template_problem(template)


@pytest.mark.parametrize("template", ["{topic}", "{source}.{topic}", "dr_{topic}.{source}"])
def test_a_template_that_can_be_read_back_passes(template):
    assert template_problem(template) is None


def test_the_chain_of_a_name_shows_its_path():
    aliases = ("east", "west")
    assert alias_chain(PREFIX, "west.east.orders", aliases) == ("west", "east")
    assert alias_chain(PREFIX, "eastern.orders", aliases) == ()
    assert alias_chain(IDENTITY, "west.orders", aliases) == ()


def test_a_name_kafka_refuses_is_explained():
    assert name_problem("a" * 249) is None
    assert "Kafka allows 249" in name_problem("a" * 250)
    assert "cannot be" in name_problem("..")
    assert "characters" in name_problem("a b")
    assert "empty" in name_problem("")


# Selection


def test_exclude_wins_and_internal_topics_never_match():
    topics = ["orders", "orders.tmp", "__consumer_offsets", "x.internal", "x-internal", "other"]
    assert selected(policy(["*"], ["*.tmp", "other"]), topics) == ("orders",)
    assert selected(policy(["__consumer_offsets"]), topics) == ()


def test_globs_match_whole_names_and_dots_mean_dots():
    topics = ["payments.eu", "paymentsXeu", "prepayments.eu", "payments."]
    assert selected(policy(["payments.*"]), topics) == ("payments.", "payments.eu")
    assert selected(policy(["payments.??"]), topics) == ("payments.eu",)


def test_expressions_match_whole_names():
    assert selected(policy(["regex:a|ab"]), ["a", "ab", "abc"]) == ("a", "ab")


def test_under_prefix_naming_copies_never_go_back_where_they_came_from():
    topics = ["orders", "west.orders", "north.orders", "north.west.orders"]
    assert selected(policy(["*"], naming=PREFIX), topics) == ("north.orders", "orders")
    assert selected(policy(["*"], naming=PREFIX), topics, blocked=("west", "north")) == ("orders",)
    assert len(selected(policy(["*"]), topics)) == 4


def test_groups_of_replicators_are_never_carried_over():
    groups = ["app", "__replicator.shop.east", "replicator.shop.west", "console-consumer-1"]
    assert select_groups(Selection(("*",), ("console-consumer-*",)), groups) == ("app",)
    assert select_groups(Selection(()), groups) == ()


def test_the_first_priority_that_matches_counts():
    rules = policy(["*"], topic_priorities=(("orders", "critical"), ("o*", "bulk")))
    priorities = [topic_priority(rules, name) for name in ("orders", "other", "x")]
    assert priorities == ["critical", "bulk", "normal"]


# Overlap


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((["a"], []), (["a"], []), ("certain", "a")),
        ((["a"], []), (["b"], []), None),
        ((["a*"], []), (["*b"], []), ("certain", "ab")),
        ((["a*"], []), (["b*"], []), None),
        ((["*"], []), (["*"], []), ("certain", "x")),
        ((["*"], ["payments.*"]), (["payments.*"], []), None),
        ((["*"], ["payments.*"]), (["payments*"], []), ("certain", "payments")),
        ((["*"], ["regex:a.*"]), (["a*"], []), ("possible", "a")),
        ((["regex:a+"], []), (["aa"], []), ("certain", "aa")),
        ((["regex:a+"], []), (["b"], []), None),
        ((["regex:a+"], []), (["b*"], []), ("possible", "regex:a+ and b*")),
        ((["regex:a+"], []), (["regex:a+"], []), ("certain", "regex:a+")),
        ((["a?c"], []), (["abc"], ["abc"]), None),
    ],
)
def test_overlap_is_found_before_any_name_is_known(first, second, expected):
    one, other = (Selection(tuple(i), tuple(e)) for i, e in (first, second))
    found = find_overlap(one, other)
    assert (None if found is None else (found.kind, found.example)) == expected


def test_a_selection_can_use_names_of_the_target():
    selection = Selection(("orders", "pay*", "regex:a|b"), ("*.tmp",))
    assert on_target(selection, PREFIX, "east") == Selection(
        ("east.orders", "east.pay*", "regex:east\\.(?:a|b)"), ("east.*.tmp",)
    )
    assert on_target(selection, IDENTITY, "east") == selection


# Topic settings


def own(value):
    return ConfigValue(value, is_default=False)


def default(value):
    return ConfigValue(value, is_default=True)


def changed(source, target, **sync):
    return [
        (change.name, change.from_value, change.to_value)
        for change in config_changes(source, target, TopicSync(**sync))
    ]


def test_settings_follow_the_source():
    source = {"retention.ms": own("1"), "cleanup.policy": default("delete"), "segment.ms": own("5")}
    target = {"retention.ms": own("2"), "cleanup.policy": own("compact"), "segment.ms": own("5")}
    assert changed(source, target) == [
        ("cleanup.policy", "compact", None),
        ("retention.ms", "2", "1"),
    ]
    assert changed(source, target, configs=False) == []


def test_settings_that_belong_to_a_cluster_stay_apart():
    names = ["min.insync.replicas", "unclean.leader.election.enable", "message.timestamp.type"]
    assert changed({n: own("1") for n in names}, {n: own("2") for n in names}) == []
    assert changed({}, {}, overrides=(("min.insync.replicas", "2"),)) == [
        ("min.insync.replicas", None, "2")
    ]


def test_an_override_wins_over_the_source():
    source, target = {"retention.ms": own("1")}, {"retention.ms": own("9")}
    assert changed(source, target, overrides=(("retention.ms", "9"),)) == []


def test_what_the_target_does_not_know_or_does_not_show_is_left_alone():
    assert changed({"new.setting": own("1")}, {}) == []
    hidden = ConfigValue("1", is_default=False, sensitive=True)
    assert changed({"a": hidden}, {"a": own("2")}) == []
    fixed = ConfigValue("2", is_default=False, read_only=True)
    assert changed({"a": own("1")}, {"a": fixed}) == []


def test_limits_are_raised_and_never_lowered():
    names = ["max.message.bytes", "message.timestamp.before.max.ms"]
    small, large = {n: own("1000") for n in names}, {n: own("9000") for n in names}
    assert changed(small, large) == []
    assert changed(large, small) == [
        ("max.message.bytes", "1000", str(9000 + HEADER_HEADROOM_BYTES)),
        ("message.timestamp.before.max.ms", "1000", "9000"),
    ]


def test_two_topics_that_follow_each_other_come_to_rest():
    one = {"max.message.bytes": own("1000")}
    other = {"max.message.bytes": own(creation_configs(one, TopicSync())["max.message.bytes"])}
    for _ in range(4):
        for source, target in ((one, other), (other, one)):
            for name, _, value in changed(source, target):
                target[name] = own(value)
    assert changed(one, other) == []
    assert changed(other, one) == []


def test_a_topic_is_created_with_room_for_the_header():
    source = {
        "max.message.bytes": default("1048588"),
        "retention.ms": own("1"),
        "cleanup.policy": default("delete"),
        "message.timestamp.after.max.ms": default("9223372036854775807"),
        "message.timestamp.before.max.ms": own("1000"),
        "min.insync.replicas": own("2"),
    }
    assert creation_configs(source, TopicSync(overrides=(("retention.ms", "7"),))) == {
        "max.message.bytes": str(1048588 + HEADER_HEADROOM_BYTES),
        "message.timestamp.after.max.ms": "9223372036854775807",
        "retention.ms": "7",
    }
    assert set(creation_configs(source, TopicSync(configs=False))) == {"max.message.bytes"}


@pytest.mark.parametrize(
    ("wanted", "source", "brokers", "replicas"),
    [(None, 1, 5, 3), (None, 4, 5, 4), (None, 3, 1, 1), (None, 5, 3, 3), (2, 3, 5, 2)],
)
def test_auto_replicas_are_the_sources_at_least_three_at_most_the_brokers(
    wanted, source, brokers, replicas
):
    assert (
        desired_replication_factor(wanted, source_replicas=source, target_brokers=brokers)
        == replicas
    )


# Filters


def test_a_record_is_dropped_when_it_meets_all_conditions_of_a_rule():
    rules = (
        DropRule(headers=(HeaderMatch("a", "1"), HeaderMatch("b"))),
        DropRule(key_prefix="k", tombstone=True),
    )
    assert drop_reason(rules, b"x", b"v", [("a", b"1"), ("b", None)]) == "filter-0"
    assert drop_reason(rules, b"x", b"v", [("a", b"2"), ("b", None)]) is None
    assert drop_reason(rules, b"x", b"v", [("a", b"1")]) is None
    assert drop_reason(rules, b"key", None, None) == "filter-1"
    assert drop_reason(rules, b"key", b"", None) is None
    assert drop_reason(rules, None, None, None) is None


def test_a_rule_without_conditions_drops_nothing():
    assert drop_reason((DropRule(),), b"k", None, []) is None


# Lanes


def test_lanes_are_a_contract_on_the_wire():
    assert [lane_of("orders", partition, 8) for partition in range(4)] == [5, 6, 7, 0]
    assert [lane_of("payments.eu", 0, count) for count in (1, 2, 7, 256)] == [0, 1, 2, 73]


def test_auto_lanes_are_the_partitions_eight_at_most():
    assert [auto_lanes(partitions) for partitions in (0, 1, 5, 8, 99)] == [1, 1, 5, 8, 8]


def test_a_flow_without_lanes_is_a_mistake():
    with pytest.raises(ValueError, match="at least one"):
        lane_of("orders", 0, 0)
