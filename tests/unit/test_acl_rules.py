"""Rights are carried over to read copies, and to do nothing else."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.control.reconcile.acl_decision import decide_acls
from replicator.control.reconcile.topic_selection import selected_topics
from replicator.policy.copies.acl_rules import READING, AclBinding
from replicator.policy.copies.selection import matcher
from replicator.policy.values import LinkPolicy, Naming, Selection
from replicator.topology.plan import ClusterPlan, FlowPlan, PairPlan

IDENTITY = Naming()
PREFIX = Naming("prefix")
BEHIND = Naming("template", "{topic}.{source}")
TOPICS = ("orders", "payments.eu", "payments.us", "payments.x.tmp", "payroll")
ALIASES = ("east", "west")


def acl(
    name, operation="READ", *, pattern="LITERAL", permission="ALLOW", resource="TOPIC",
    principal="User:ann", host="*",
):  # fmt: skip
    return AclBinding(resource, pattern, name, principal, host, operation, permission)


def prefixed(name, operation="READ", **fields):
    return acl(name, operation, pattern="PREFIXED", **fields)


def link(*include, exclude=(), naming=IDENTITY, name="one", sync_acls=True):
    policy = LinkPolicy(
        topics=Selection(include, tuple(exclude)), groups=Selection(), naming=naming,
        sync_acls=sync_acls,
    )  # fmt: skip
    return FlowPlan(name, "east", "west", policy, ("west",))


def added(flows, source, target=(), topics=TOPICS):
    flows = flows if isinstance(flows, tuple) else (flows,)
    pair = PairPlan(ClusterPlan("east", ("e:1",)), ClusterPlan("west", ("w:1",)), flows)
    wanted = selected_topics(pair, topics, ALIASES)
    return decide_acls(pair, wanted, source=source, target=frozenset(target))


def bindings(*arguments, **named):
    return {action.binding for action in added(*arguments, **named)}


CASES = {
    "a literal right keeps its principal and host": (
        link("orders"),
        acl("orders", host="10.0.0.1", principal="User:bob"),
        {acl("orders", host="10.0.0.1", principal="User:bob")},
    ),
    "a literal right follows the name of the copy": (
        link("*", naming=PREFIX),
        acl("orders"),
        {acl("east.orders")},
    ),
    "a topic that the link does not take gives no right": (link("pay*"), acl("orders"), set()),
    "an excluded topic gives no right": (
        link("pay*", exclude=["*.tmp"]),
        acl("payments.x.tmp"),
        set(),
    ),
    "a topic that does not exist gives no right yet": (link("*"), acl("later"), set()),
    "WRITE is never carried over": (link("*"), acl("orders", "WRITE"), set()),
    "CREATE is never carried over": (link("*"), acl("orders", "CREATE"), set()),
    "DELETE is never carried over": (link("*"), acl("orders", "DELETE"), set()),
    "ALTER is never carried over": (link("*"), acl("orders", "ALTER"), set()),
    "ALTER_CONFIGS is never carried over": (link("*"), acl("orders", "ALTER_CONFIGS"), set()),
    "an operation of a later Kafka is not carried over": (
        link("*"),
        acl("orders", "UNKNOWN"),
        set(),
    ),
    "a denied WRITE is not carried over, it would stop the copying": (
        link("*"),
        acl("orders", "WRITE", permission="DENY"),
        set(),
    ),
    "DESCRIBE is kept": (link("*"), acl("orders", "DESCRIBE"), {acl("orders", "DESCRIBE")}),
    "DESCRIBE_CONFIGS is kept": (
        link("*"),
        acl("orders", "DESCRIBE_CONFIGS"),
        {acl("orders", "DESCRIBE_CONFIGS")},
    ),
    "ALL becomes READ": (link("*"), acl("orders", "ALL"), {acl("orders", "READ")}),
    "a denied READ stays denied": (
        link("*"),
        acl("orders", permission="DENY"),
        {acl("orders", permission="DENY")},
    ),
    "a denied ALL denies everything that reading takes": (
        link("*"),
        acl("orders", "ALL", permission="DENY"),
        {acl("orders", one, permission="DENY") for one in READING},
    ),
    "rights on groups are ignored": (link("*"), acl("orders", resource="GROUP"), set()),
    "rights on the cluster are ignored": (
        link("*"),
        acl("kafka-cluster", "ALL", resource="BROKER"),
        set(),
    ),
    "a prefix that the link takes as a whole stays a prefix": (
        link("orders", "payments.*"),
        prefixed("payments.e"),
        {prefixed("payments.e")},
    ),
    "a wider prefix is cut to what the link takes": (
        link("orders", "payments.*"),
        prefixed("pay"),
        {prefixed("payments.")},
    ),
    "a prefix over literal topics becomes literal": (
        link("payments.eu", "payroll"),
        prefixed("pay"),
        {acl("payments.eu"), acl("payroll")},
    ),
    "a prefix with an exclude inside becomes literal": (
        link("payments.*", exclude=["*.tmp"]),
        prefixed("payments."),
        {acl("payments.eu"), acl("payments.us")},
    ),
    "a prefix with an exclude elsewhere stays a prefix": (
        link("*", exclude=["orders*"]),
        prefixed("payments."),
        {prefixed("payments.")},
    ),
    "a prefix over an expression becomes literal": (
        link("regex:payments\\.(eu|us)"),
        prefixed("payments."),
        {acl("payments.eu"), acl("payments.us")},
    ),
    "a prefix without a single copy gives no right": (link("*"), prefixed("later."), set()),
    "a prefix is renamed where only copies are called so": (
        link("payments.eu", naming=PREFIX),
        prefixed("pay", "ALL"),
        {prefixed("east.pay", "READ")},
    ),
    "a prefix means nothing where the source stands behind the topic": (
        link("payments.*", exclude=["*.tmp"], naming=BEHIND),
        prefixed("pay"),
        {acl("payments.eu.east"), acl("payments.us.east")},
    ),
    "a prefix of internal topics gives no right": (link("*"), prefixed("__"), set()),
    "the wildcard becomes a literal right per copy": (
        link("*"),
        acl("*"),
        {acl(topic) for topic in TOPICS},
    ),
    "the wildcard becomes the source's prefix": (
        link("*", naming=PREFIX),
        acl("*"),
        {prefixed("east.")},
    ),
    "the wildcard becomes the prefix that the link takes": (
        link("payments.*"),
        acl("*"),
        {prefixed("payments.")},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_right_becomes(case):
    flow, held, expected = CASES[case]
    assert bindings(flow, [held]) == expected


def test_a_link_that_does_not_ask_carries_nothing():
    assert bindings(link("*", sync_acls=False), [acl("orders", "ALL")]) == set()


def test_a_prefix_grants_no_copies_of_a_link_that_does_not_ask():
    asks = link("payments.*", naming=PREFIX)
    other = link("payroll", naming=PREFIX, name="other", sync_acls=False)
    assert bindings((asks, other), [prefixed("pay")]) == {prefixed("east.payments.")}


def test_what_is_there_is_not_added_again_even_as_part_of_all():
    flow = link("*")
    assert bindings(flow, [acl("orders")], [acl("orders")]) == set()
    assert bindings(flow, [acl("orders")], [acl("orders", "ALL")]) == set()
    assert bindings(flow, [acl("orders")], [acl("orders", "ALL", permission="DENY")]) == {
        acl("orders")
    }
    assert bindings(flow, [acl("orders")], [acl("orders", host="h")]) == {acl("orders")}


def test_two_clusters_do_not_hand_prefixes_back_and_forth():
    back = FlowPlan("back", "west", "east", link("*", naming=PREFIX).policy, ("east",))
    pair = PairPlan(ClusterPlan("west", ("w:1",)), ClusterPlan("east", ("e:1",)), (back,))
    wanted = selected_topics(pair, ["east.orders"], ALIASES)
    assert decide_acls(pair, wanted, source=[prefixed("east.")], target=[]) == ()


def test_each_addition_says_what_where_and_why_and_denials_come_first():
    found = added(link("*", name="dr"), [acl("orders", "ALL"), acl("payroll", permission="DENY")])
    assert [change.as_json() for action in found for change in action.changes()] == [
        {
            "cluster": "west", "kind": "acl", "subject": "payroll", "from": None,
            "to": "DENY READ to User:ann from *",
            "reason": "'dr' carries rights over; east has DENY READ on 'payroll'",
        },
        {
            "cluster": "west", "kind": "acl", "subject": "orders", "from": None,
            "to": "ALLOW READ to User:ann from *",
            "reason": "'dr' carries rights over; east has ALLOW ALL on 'orders'",
        },
    ]  # fmt: skip


NAMES = st.sampled_from(["a", "ab", "abc", "b", "b.c", "east.a", "*"])
ACLS = st.builds(
    AclBinding,
    st.sampled_from(["TOPIC", "TOPIC", "TOPIC", "GROUP"]),
    st.sampled_from(["LITERAL", "PREFIXED"]),
    NAMES,
    st.sampled_from(["User:ann", "User:bob", "User:*"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from(
        ["ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS",
         "ALTER_CONFIGS"]
    ),
    st.sampled_from(["ALLOW", "DENY"]),
)  # fmt: skip
LINKS = st.builds(
    lambda include, exclude, naming: link(*include, exclude=exclude, naming=naming),
    st.lists(st.sampled_from(["*", "a*", "ab", "b.*", "?b*", "regex:a.*"]), min_size=1, max_size=3),
    st.lists(st.sampled_from(["abc", "*c", "b*", "regex:.*b"]), max_size=1),
    st.sampled_from([IDENTITY, PREFIX, BEHIND]),
)
SOURCE_TOPICS = ("a", "ab", "abc", "b", "b.c", "__own")
IMPLYING = {
    "DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"},
    "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"},
}


def granted(held, topic, operation, principal, host):
    """Kafka's authorizer in a few lines: a denial wins, ALL is everything, some imply others."""

    def meant(one):
        named = one.name in {topic, "*"} if one.pattern == "LITERAL" else topic.startswith(one.name)
        return (
            one.resource == "TOPIC"
            and named
            and one.principal in {principal, "User:*"}
            and one.host in {host, "*"}
        )

    about = [one for one in held if meant(one)]
    if any(one.permission == "DENY" and one.operation in {operation, "ALL"} for one in about):
        return False
    enough = {operation, "ALL"} | IMPLYING.get(operation, set())
    return any(one.permission == "ALLOW" and one.operation in enough for one in about)


@settings(max_examples=300)
@given(LINKS, st.frozensets(ACLS, max_size=6))
def test_copies_can_be_read_by_whom_the_source_lets_read_and_nothing_else_is_granted(flow, held):
    there = bindings(flow, held, topics=SOURCE_TOPICS)
    assert {one.operation for one in there} <= set(READING)
    assert all(one.resource == "TOPIC" and one.name != "*" for one in there)
    assert bindings(flow, held, there, topics=SOURCE_TOPICS) == set()

    pair = PairPlan(ClusterPlan("east", ("e:1",)), ClusterPlan("west", ("w:1",)), (flow,))
    copies = {one.target: one.topic for one in selected_topics(pair, SOURCE_TOPICS, ALIASES)}
    takes = matcher(flow.policy.topics) if flow.policy.naming == IDENTITY else copies.__contains__
    no_copies = [name for name in (*SOURCE_TOPICS, "a.west", "c") if not takes(name)]
    who = itertools.product(("User:ann", "User:bob", "User:eve"), ("10.0.0.1", "10.0.0.2"))
    for principal, host in who:
        for target, topic in copies.items():
            may = granted(held, topic, "READ", principal, host)
            assert granted(there, target, "READ", principal, host) == may
            for operation in READING:
                if granted(there, target, operation, principal, host):
                    assert granted(held, topic, operation, principal, host)
        for other in no_copies:
            assert not granted(there, other, "READ", principal, host)
