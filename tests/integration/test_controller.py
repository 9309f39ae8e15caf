"""The controller against real brokers: topics appear, grow, follow settings, end, and lanes move."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from producing import produce

from replicator.clock import SystemClock
from replicator.control.controller.bootstrap import bootstrap_pair
from replicator.control.controller.controller import PairController
from replicator.control.controller.opposite_watch import SETTLED_SECONDS
from replicator.control.lanes.layout import lane_in
from replicator.control.records.pair_records import Binding
from replicator.control.records.worker_records import WorkerRecord
from replicator.control.store.controller_writer import ControllerWriter, Placed
from replicator.control.store.read import read_control
from replicator.errors import AliasConflictError, FencedError, ReplicatorError
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import checkpoints_topic, control_topic, quarantine_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.checkpoint_log import read_checkpoint_records
from replicator.kafka.logs.log_writer import LogWriter
from replicator.policy.values import LinkPolicy, Selection, Throttle, TopicSync
from replicator.testing import ManualClock, SecuritySetup, wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule
from replicator.topology.plan import (
    ClusterPlan,
    FlowPlan,
    LinkPlan,
    Plan,
    SecretRef,
    SecurityPlan,
)

UNKNOWN_TOPIC_OR_PARTITION = 3


def policy(*topics, **fields):
    return LinkPolicy(topics=Selection(topics), groups=Selection(), **fields)


def make_plan(topology, east, west, **policies):
    """One link per keyword, all from east to west."""
    links = tuple(
        LinkPlan(
            name, "active-passive", ("east", "west"), "east", None,
            (FlowPlan(name, "east", "west", one, ("west",)),),
        )
        for name, one in policies.items()
    )  # fmt: skip
    clusters = (
        ClusterPlan("east", tuple(east.bootstrap_servers)),
        ClusterPlan("west", tuple(west.bootstrap_servers)),
    )
    return Plan(topology, clusters, links, "hash")


class Desk:
    """A controller with its admins, as the worker puts them together."""

    def __init__(self, plan, clock=None, step=lambda _: None):
        self.plan = plan
        self.pair = plan.pairs[0]
        self.clock = clock or SystemClock()
        self.source = ClusterAdmin(self.pair.source, client_id="test")
        self.target = ClusterAdmin(self.pair.target, client_id="test")
        self.controller = PairController(
            self.pair, plan,
            source_admin=self.source, target_admin=self.target,
            clock=self.clock, client_id="test", step=step,
        )  # fmt: skip

    def bootstrap(self):
        return bootstrap_pair(
            plan=self.plan, pair=self.pair,
            source_admin=self.source, target_admin=self.target,
            clock=self.clock, client_id="test",
        )  # fmt: skip

    def once(self):
        return asyncio.run(self.controller.run_once(all_settings=True))

    def control(self):
        return read_control(
            self.plan.topology, self.pair.target, client_id="test", past_open_transactions=True
        )

    def checkpoints(self):
        name = checkpoints_topic(self.plan.topology, "east")
        size = self.target.describe_topics([name])[name].partitions
        return read_checkpoint_records(
            self.plan.topology, "east", self.pair.target, range(size), client_id="test"
        )

    def retention(self, admin, topic):
        return admin.topic_configs([topic])[topic]["retention.ms"].value

    def until_retention(self, topic, value):
        wait_until(
            lambda: self.retention(self.target, topic) == value,
            timeout_seconds=30, describe=f"{value} ms of retention on the target",
        )  # fmt: skip

    def close(self):
        self.controller.close()
        self.source.close()
        self.target.close()


@pytest.fixture
def desks():
    opened = []

    def open_desk(*arguments, **options):
        opened.append(Desk(*arguments, **options))
        return opened[-1]

    yield open_desk
    for context in opened:
        context.close()


def test_another_topology_that_copies_the_other_way_is_recorded_by_whoever_comes_first(
    east, west, unique, desks
):
    there = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*")))
    there.bootstrap()
    there.once()
    assert f"{unique}-back" not in there.control().opposite_topologies("east")
    flow = FlowPlan("back", "west", "east", policy(f"{unique}.*"), ("east",))
    link = LinkPlan("back", "hub-and-spoke", ("west", "east"), None, "west", (flow,))
    back = desks(replace(there.plan, topology=f"{unique}-back", links=(link,)))
    assert unique in back.bootstrap().opposite_topologies("west"), "before its lanes begin"
    there.once()
    assert f"{unique}-back" in there.control().opposite_topologies("east")


def test_another_topology_is_aware_once_it_has_recorded_this_one_or_nobody_works_for_it(
    east, west, unique, desks
):
    there = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*")))
    there.bootstrap()
    flow = FlowPlan("back", "west", "east", policy(f"{unique}.*"), ("east",))
    link = LinkPlan("back", "hub-and-spoke", ("west", "east"), None, "west", (flow,))
    clock = ManualClock(now=time.time())
    name = f"{unique}-back"
    back = desks(replace(there.plan, topology=name, links=(link,)), clock=clock)

    def unaware(rounds=1):
        """Whether we are to them, after so many rounds of theirs."""
        for _ in range(rounds):
            back.once()
            clock.advance(SETTLED_SECONDS)
        return unique in back.control().unaware_topologies("west")

    assert unique in back.bootstrap().unaware_topologies("west")
    worker = WorkerRecord(source="east", id="one", at_ms=round((time.time() + 3_600) * 1000))
    with LogWriter(there.pair.target, control_topic(unique), client_id="test") as writer:
        writer.write([worker.encode()])
    assert unaware(rounds=3), "somebody is at work who does not look for their copies"
    there.once()
    assert name in there.control().opposite_topologies("east")
    assert unaware(), "lanes have to hear of it"
    assert not unaware()
    back.bootstrap()
    assert not unaware(), "once is enough"


def test_bootstrap_reads_what_it_has_just_made_where_a_broker_has_not_heard_of_it(
    east, west, unique, desks
):
    rule = Rule(
        Match(Api.METADATA, topic=control_topic(unique), times=8),
        Answer(UNKNOWN_TOPIC_OR_PARTITION, forwarded=True),
    )
    with ProtocolProxy(west.bootstrap_servers, (rule,)) as lagging:
        context = desks(make_plan(unique, east, lagging, orders=policy(f"{unique}.*")))
        # The broker that it asks to make the topic is another one.
        direct = ClusterPlan("west", tuple(west.bootstrap_servers))
        context.target.close()
        context.target = ClusterAdmin(direct, client_id="test")
        assert len(context.bootstrap().bindings()) == 2
        assert lagging.applied(rule) == 8


def test_bootstrap_makes_what_is_missing_and_binds_aliases_on_both_sides(east, west, unique, desks):
    context = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*", lanes=3)))
    for _ in range(2):
        context.bootstrap()
    names = [
        control_topic(unique), checkpoints_topic(unique, "east"), quarantine_topic(unique, "east"),
    ]  # fmt: skip
    found = context.target.describe_topics(names)
    assert [found[name].partitions for name in names] == [1, 3, 1]
    for cluster in context.plan.clusters:
        bound = read_control(unique, cluster, client_id="test").bindings()
        assert {one.alias: one.cluster_id for one in bound} == {
            "east": east.cluster_id,
            "west": west.cluster_id,
        }


def test_an_alias_bound_to_another_cluster_refuses_to_start(east, west, unique, desks):
    plan = make_plan(unique, east, west, orders=policy("none"))
    desks(plan).bootstrap()
    with LogWriter(plan.cluster("west"), control_topic(unique), client_id="test") as writer:
        writer.write([Binding(alias="east", cluster_id="elsewhere", at_ms=1).encode()])
    with pytest.raises(AliasConflictError, match="bound to cluster elsewhere"):
        desks(plan).bootstrap()


def test_two_aliases_of_one_cluster_refuse_to_start(east, unique, desks):
    with pytest.raises(AliasConflictError, match="are one cluster"):
        desks(make_plan(unique, east, east, orders=policy("none"))).bootstrap()


def test_topics_are_created_and_recorded_and_a_second_round_does_nothing(east, west, unique, desks):
    east.create_topic(f"{unique}.a", partitions=3, config={"retention.ms": "3600000"})
    east.create_topic(f"{unique}.b", partitions=2, config={"cleanup.policy": "compact"})
    context = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*")))
    context.bootstrap()
    first = context.once()
    assert first.decision.problems == {"orders": ()}
    found = context.target.describe_topics([f"{unique}.a", f"{unique}.b"])
    assert [found[f"{unique}.{name}"].partitions for name in "ab"] == [3, 2]
    settings = context.target.topic_configs([f"{unique}.a", f"{unique}.b"])
    assert settings[f"{unique}.a"]["retention.ms"].value == "3600000"
    assert settings[f"{unique}.b"]["cleanup.policy"].value == "compact"
    control = context.control()
    assert [(one.topic, one.state) for one in control.topics("east")] == [
        (f"{unique}.a", "active"),
        (f"{unique}.b", "active"),
    ]
    assert control.layout("east").total == 5
    assert context.once().settled
    assert desks(context.plan).once().settled  # nor does another controller find anything


def _works_on(done, topic, partitions):
    return (
        done
        if done.control.topic("east", "orders", topic).working_partitions == partitions
        else None
    )


def test_growth_and_settings_follow_the_source(east, west, unique, desks):
    east.create_topic(f"{unique}.a", partitions=2)
    context = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*")))
    context.bootstrap()
    context.once()
    assert context.source.create_partitions({f"{unique}.a": 5}) == {f"{unique}.a": None}
    context.source.alter_topic_configs({f"{unique}.a": {"retention.ms": "7200000"}})
    wait_until(
        lambda: context.source.topic_partitions().get(f"{unique}.a") == 5
        and context.retention(context.source, f"{unique}.a") == "7200000",
        timeout_seconds=30, describe="growth and the setting at the source",
    )  # fmt: skip
    done = wait_until(  # a round may look before brokers know what it has just made
        lambda: _works_on(context.once(), f"{unique}.a", 5),
        timeout_seconds=30, describe="growth that is recorded",
    )  # fmt: skip
    assert context.target.topic_partitions()[f"{unique}.a"] == 5
    context.until_retention(f"{unique}.a", "7200000")
    context.target.alter_topic_configs({f"{unique}.a": {"retention.ms": "1"}})
    context.until_retention(f"{unique}.a", "1")
    context.once()
    context.until_retention(f"{unique}.a", "7200000")
    assert done.control.layout("east").total == 2  # `auto` stays what it was at first


def test_a_changed_setting_arrives_with_the_next_round(east, west, unique, desks):
    east.create_topic(f"{unique}.a")
    context = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*")))
    context.bootstrap()
    context.once()
    # The first rounds read everything; what an ordinary one reads is what counts.
    asyncio.run(context.controller.run_once())
    asyncio.run(context.controller.run_once())
    for value in ("7200000", "3600000"):
        context.source.alter_topic_configs({f"{unique}.a": {"retention.ms": value}})
        wait_until(
            lambda value=value: context.retention(context.source, f"{unique}.a") == value,
            timeout_seconds=30, describe="the setting at the source",
        )  # fmt: skip
        asyncio.run(context.controller.run_once())
        context.until_retention(f"{unique}.a", value)


def test_fewer_partitions_on_the_target_are_refused_and_other_topics_go_on(
    east, west, unique, desks
):
    for name in "ab":
        east.create_topic(f"{unique}.{name}", partitions=4)
    west.create_topic(f"{unique}.a", partitions=2)
    context = desks(
        make_plan(
            unique, east, west,
            orders=policy(f"{unique}.*", sync_topics=TopicSync(partitions=False)),
        )
    )  # fmt: skip
    context.bootstrap()
    done = context.once()
    assert [problem.code for problem in done.decision.problems["orders"]] == [
        "TARGET_FEWER_PARTITIONS"
    ]
    states = {one.topic: one.state for one in done.control.topics("east")}
    assert states == {f"{unique}.a": "refused", f"{unique}.b": "active"}
    assert done.control.problems("east", "orders").problems[0].subject == f"{unique}.a"
    context.target.create_partitions({f"{unique}.a": 4})
    wait_until(
        lambda: context.target.topic_partitions().get(f"{unique}.a") == 4,
        timeout_seconds=30, describe="growth at the target",
    )  # fmt: skip
    again = context.once()
    assert again.decision.problems["orders"] == ()
    assert again.control.topic("east", "orders", f"{unique}.a").state == "active"


def test_a_creation_the_broker_refuses_leaves_other_topics_alone(east, west, unique, desks):
    for name in "ab":
        east.create_topic(f"{unique}.{name}")
    plan = make_plan(
        unique, east, west,
        bad=policy(f"{unique}.a", sync_topics=TopicSync(overrides=(("retention.ms", "soon"),))),
        good=policy(f"{unique}.b"),
    )  # fmt: skip
    context = desks(plan)
    context.bootstrap()
    done = context.once()
    assert [problem.code for problem in done.decision.problems["bad"]] == ["TARGET_REFUSES"]
    assert done.decision.problems["good"] == ()
    assert done.control.topic("east", "good", f"{unique}.b").state == "active"
    assert done.control.topic("east", "bad", f"{unique}.a").state == "refused"


def test_a_recreated_topic_is_recorded_under_its_new_id(east, west, unique, desks):
    east.create_topic(f"{unique}.a")
    context = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*")))
    context.bootstrap()
    first = context.once().control.topic("east", "orders", f"{unique}.a").topic_id
    east.delete_topic(f"{unique}.a")
    until_listed(context.source, f"{unique}.a", listed=False)
    assert context.once().control.topic("east", "orders", f"{unique}.a").state == "gone"
    assert f"{unique}.a" in context.target.topic_partitions()  # deletions are kept by default
    east.create_topic(f"{unique}.a")
    until_listed(context.source, f"{unique}.a")
    record = context.once().control.topic("east", "orders", f"{unique}.a")
    assert record.state == "active"
    assert record.topic_id != first


def until_listed(admin, topic, *, listed=True):
    """Waits until a cluster lists a topic that was created, or no longer one that was deleted."""
    wait_until(
        lambda: (topic in admin.topic_partitions()) == listed,
        timeout_seconds=30, describe=f"{topic} {'to be listed' if listed else 'to be gone'}",
    )  # fmt: skip


def until_activated(context, topic):
    """Waits until lanes are told of a topic."""

    def activated():
        held = context.once().control.topic("east", "orders", topic)
        return held is not None and held.activated

    wait_until(activated, timeout_seconds=30, describe="lanes to be told of the topic")


def test_a_deletion_is_carried_over_only_after_its_grace(east, west, unique, desks):
    east.create_topic(f"{unique}.a")
    clock = ManualClock()
    plan = make_plan(
        unique, east, west,
        orders=policy(f"{unique}.*", sync_topics=TopicSync(deletions="propagate")),
    )  # fmt: skip
    context = desks(plan, clock=clock)
    context.bootstrap()

    until_activated(context, f"{unique}.a")
    east.delete_topic(f"{unique}.a")
    until_listed(context.source, f"{unique}.a", listed=False)
    assert context.once().control.topic("east", "orders", f"{unique}.a").state == "gone"
    assert f"{unique}.a" in context.target.topic_partitions()
    clock.advance(61)
    assert [type(action).__name__ for action in context.once().actions][:1] == ["DeleteTopic"]
    until_listed(context.target, f"{unique}.a", listed=False)
    context.once()
    assert context.control().topics("east") == ()


def test_topics_that_rights_hide_are_kept_and_reported_as_hidden(clusters, west, unique, desks):
    users = {"admin": "admin-secret", "replicator": "replicator-secret"}
    (east,) = clusters("east", security=SecuritySetup.sasl("PLAIN", users=users, authorizer=True))

    def allow(*resources):
        east.revoke_all("replicator")
        east.allow("replicator", ["ALL"], resource="cluster", name="kafka-cluster")
        for resource in ("group", "transactional-id", *resources):
            east.allow("replicator", ["ALL"], resource=resource)

    allow("topic")
    names = [f"{unique}.{letter}" for letter in "ab"]
    for name in names:
        east.create_topic(name)
    one = policy(f"{unique}.*", sync_topics=TopicSync(deletions="propagate"))
    plan = make_plan(unique, east, west, orders=one)
    login = SecurityPlan(
        protocol="SASL_PLAINTEXT", mechanism="PLAIN", username=SecretRef(literal="replicator"),
        password=SecretRef(literal=users["replicator"]),
    )  # fmt: skip
    plan = replace(plan, clusters=(replace(plan.clusters[0], security=login), plan.clusters[1]))
    clock = ManualClock()
    context = desks(plan, clock=clock)
    context.bootstrap()

    def activated():
        held = [context.once().control.topic("east", "orders", name) for name in names]
        return all(record is not None and record.activated for record in held)

    wait_until(activated, timeout_seconds=30, describe="lanes to be told of the topics")
    allow()
    wait_until(
        lambda: not any(name in context.source.topic_partitions() for name in names),
        timeout_seconds=30, describe="the topics to be hidden",
    )  # fmt: skip
    for _ in range(3):
        done = context.once()
        assert not [type(action).__name__ for action in done.actions if action.subject in names]
        problems = {(p.code, p.subject) for p in done.decision.problems["orders"]}
        assert problems >= {("NOT_AUTHORIZED", name) for name in names}
        clock.advance(61)
    assert set(names) <= context.target.topic_partitions().keys()


def test_another_cluster_at_the_sources_addresses_deletes_nothing(
    east, west, central, unique, desks
):
    east.create_topic(f"{unique}.a")
    one = policy(f"{unique}.*", sync_topics=TopicSync(deletions="propagate"))
    plan = make_plan(unique, east, west, orders=one)
    clock = ManualClock()
    context = desks(plan, clock=clock)
    context.bootstrap()

    until_activated(context, f"{unique}.a")
    moved = replace(plan.clusters[0], bootstrap_servers=tuple(central.bootstrap_servers))
    elsewhere = desks(replace(plan, clusters=(moved, plan.clusters[1])), clock=clock)
    for _ in range(3):
        with pytest.raises(AliasConflictError, match="lead to cluster"):
            elsewhere.once()
        clock.advance(61)
    assert f"{unique}.a" in context.target.topic_partitions()


def test_a_copy_that_was_deleted_on_the_target_is_not_made_again_in_silence(
    east, west, unique, desks
):
    east.create_topic(f"{unique}.a")
    context = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*")))
    context.bootstrap()
    context.once()
    west.delete_topic(f"{unique}.a")
    until_listed(context.target, f"{unique}.a", listed=False)
    done = context.once()
    assert "was deleted on west" in done.decision.problems["orders"][0].detail
    assert f"{unique}.a" not in context.target.topic_partitions()
    west.create_topic(f"{unique}.a")
    until_listed(context.target, f"{unique}.a")
    assert context.once().control.topic("east", "orders", f"{unique}.a").state == "active"


def store_checkpoints(context, topic, count, link="orders"):
    layout = context.control().layout("east")
    name = checkpoints_topic(context.plan.topology, "east")
    writer = ControllerWriter(context.pair, context.plan.topology, client_id="test")
    stored = [Checkpoint(topic, number, offset=100 + number) for number in range(count)]
    writer.write(
        [
            Placed(
                name, lane_in(layout.block(link), one.topic, one.partition), one.key(), one.value()
            )
            for one in stored
        ]
    )
    writer.close()
    return {one.key(): one.value() for one in stored}


def assert_in_place(context, stored, topic, count, link="orders"):
    layout = context.control().layout("east")
    assert layout.state == "stable"
    found = context.checkpoints()
    merged = [item for records in found.values() for item in records.items()]
    assert dict(merged) == stored
    assert len(merged) == len(stored)
    for number in range(count):
        lane = lane_in(layout.block(link), topic, number)
        assert Checkpoint(topic, number, 0).key() in found[lane]


@pytest.mark.parametrize("stop_at", [None, "declare", "grow", "fence", "read", "move", "done"])
def test_a_change_of_lanes_moves_checkpoints_wherever_it_was_interrupted(
    east, west, unique, desks, stop_at
):
    topic = f"{unique}.a"
    east.create_topic(topic, partitions=8)
    before = desks(make_plan(unique, east, west, orders=policy(topic, lanes=2)))
    before.bootstrap()
    before.once()
    stored = store_checkpoints(before, topic, 8)

    class Interrupted(Exception):  # noqa: N818 - it is no error of the code
        pass

    def step(name):
        if name == stop_at:
            raise Interrupted

    edited = make_plan(unique, east, west, orders=policy(topic, lanes=5))
    after = desks(edited, step=step)
    if stop_at is None:
        after.once()
    else:
        with pytest.raises(Interrupted):
            after.once()
        if stop_at not in {"declare", "done"}:
            assert after.control().layout("east").state == "changing"
        after = desks(edited)
        after.once()
    assert after.control().layout("east").total == 5
    assert after.control().layout("east").epoch == 2
    assert_in_place(after, stored, topic, 8)
    assert desks(edited).once().settled


def test_a_change_of_lanes_waits_for_a_bulk_copy_that_hides_later_checkpoints(
    east, west, unique, desks
):
    topic = f"{unique}.a"
    east.create_topic(topic, partitions=4)
    before = desks(make_plan(unique, east, west, orders=policy(topic, lanes=2)))
    before.bootstrap()
    before.once()
    bulk = Producer(
        {
            "bootstrap.servers": ",".join(west.bootstrap_servers),
            "transactional.id": f"{unique}.bulk",
        }
    )
    bulk.init_transactions(10)
    bulk.begin_transaction()
    for lane in range(2):
        bulk.produce(checkpoints_topic(unique, "east"), b"{}", Checkpoint("x", lane, 0).key(), lane)
    assert bulk.flush(10) == 0
    stored = store_checkpoints(before, topic, 4)  # behind the open transaction

    def step(name):
        if name == "read":
            threading.Timer(1.0, bulk.abort_transaction, [10]).start()

    after = desks(make_plan(unique, east, west, orders=policy(topic, lanes=3)), step=step)
    after.once()
    assert_in_place(after, stored, topic, 4)


def test_a_renamed_link_keeps_its_progress(east, west, unique, desks):
    topic = f"{unique}.a"
    east.create_topic(topic, partitions=4)
    before = desks(make_plan(unique, east, west, orders=policy(topic, lanes=2)))
    before.bootstrap()
    before.once()
    stored = store_checkpoints(before, topic, 4)
    after = desks(make_plan(unique, east, west, sales=policy(topic, lanes=3)))
    done = after.once()
    assert done.control.topic("east", "orders", topic) is None
    assert done.control.topic("east", "sales", topic).state == "active"
    assert_in_place(after, stored, topic, 4, link="sales")


def test_a_link_that_was_removed_and_comes_back_keeps_its_progress(east, west, unique, desks):
    topics = [f"{unique}.a", f"{unique}.b"]
    for topic in topics:
        east.create_topic(topic, partitions=3)
    both = make_plan(
        unique, east, west, orders=policy(topics[0], lanes=2), sales=policy(topics[1], lanes=2)
    )
    context = desks(both)
    context.bootstrap()
    context.once()
    stored = store_checkpoints(context, topics[1], 3, link="sales")
    alone = desks(make_plan(unique, east, west, orders=policy(topics[0], lanes=4)))
    alone.once()
    back = desks(both)
    back.once()
    back = desks(both)
    assert back.once().settled
    assert_in_place(back, stored, topics[1], 3, link="sales")


def test_a_lane_that_ran_before_the_change_cannot_commit_after_it(east, west, unique, desks):
    topic = f"{unique}.a"
    east.create_topic(topic, partitions=4)
    before = desks(make_plan(unique, east, west, orders=policy(topic, lanes=2)))
    before.bootstrap()
    before.once()
    lane = LogWriter(
        before.pair.target, checkpoints_topic(unique, "east"),
        client_id="lane", transactional_id=f"__replicator.{unique}.east.west.lane-1",
    )  # fmt: skip
    with lane:
        lane.open()
        desks(make_plan(unique, east, west, orders=policy(topic, lanes=3))).once()
        with pytest.raises(FencedError):
            lane.write([(Checkpoint(topic, 0, 7).key(), Checkpoint(topic, 0, 7).value())])


def test_a_replaced_controller_cannot_write_any_more(east, west, unique, desks):
    east.create_topic(f"{unique}.a")
    plan = make_plan(unique, east, west, orders=policy(f"{unique}.*"))
    first, second = desks(plan), desks(plan)
    first.bootstrap()
    first.once()
    second.once()
    east.create_topic(f"{unique}.b")
    until_listed(first.source, f"{unique}.b")
    with pytest.raises(FencedError):
        first.once()
    assert second.once().control.topic("east", "orders", f"{unique}.b").state == "active"


def test_an_unreachable_source_is_a_problem_that_goes_away_again(proxied, unique, west):
    proxied.create_topic(f"{unique}.a")
    flow = FlowPlan(
        "orders", "east", "west",
        policy(f"{unique}.*", discovery_interval_seconds=0.3), ("west",),
    )  # fmt: skip
    plan = make_plan(unique, proxied, west, orders=flow.policy)
    context = Desk(plan)
    context.bootstrap()

    async def scenario():
        running = asyncio.create_task(context.controller.run())
        try:
            await until(lambda: context.control().topics("east"))
            proxied.proxy.cut()
            await until(
                lambda: (
                    (found := context.control().problems("east", "orders")) is not None
                    and [one.code for one in found.problems] == ["UNREACHABLE"]
                )
            )
            assert context.controller.problems[0].code == "UNREACHABLE"
            proxied.proxy.heal()
            context.controller.wake()
            await until(lambda: not context.control().problems("east", "orders").problems)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            context.controller.close()

    async def until(condition):
        async with asyncio.timeout(90):
            while not await asyncio.to_thread(condition):
                context.controller.wake()
                await asyncio.sleep(0.1)

    try:
        asyncio.run(scenario())
    finally:
        context.close()


def test_a_changed_plan_is_compared_with_what_is_recorded(east, west, unique, desks):
    east.create_topic(f"{unique}.a")
    east.create_topic(f"{unique}.b")
    context = desks(make_plan(unique, east, west, orders=policy(f"{unique}.*")))
    context.bootstrap()
    context.once()
    plan = make_plan(unique, east, west, orders=policy(f"{unique}.a"))
    done = desks(replace(plan, hash="other")).once()
    assert [one.topic for one in done.control.topics("east")] == [f"{unique}.a"]
    assert f"{unique}.b" in context.target.topic_partitions()  # a copy is never taken away for that


def test_errors_of_a_round_are_of_the_one_tree(east, unique):
    nowhere = ClusterPlan("west", ("127.0.0.1:1",))
    plan = make_plan(unique, east, east, orders=policy("none"))
    plan = replace(plan, clusters=(plan.clusters[0], nowhere))
    context = Desk(plan)
    context.target.close()
    try:
        with pytest.raises(ReplicatorError):
            asyncio.run(asyncio.wait_for(context.controller.run_once(), 60))
    finally:
        context.close()


def test_a_throttle_is_split_over_lanes_by_what_they_still_have_to_copy(east, west, unique, desks):
    topic = f"{unique}.a"
    east.create_topic(topic, partitions=2)
    produce(east, topic, [b"v" * 1000] * 500, partition=0)
    throttle = Throttle(bytes_per_second=100_000)
    context = desks(make_plan(unique, east, west, orders=policy(topic, lanes=2, throttle=throttle)))
    context.bootstrap()
    context.once()
    (share,) = asyncio.run(context.controller.share_once())
    block = context.control().layout("east").block("orders")
    busy, idle = (
        share.lanes[str(lane_in(block, topic, number))].bytes_per_second for number in (0, 1)
    )
    assert busy + idle <= 100_000
    assert busy > 5 * idle
    assert asyncio.run(context.controller.share_once()) == ()
    assert context.control().share("east", "orders") == share
