"""The pure decisions of the control room, case by case."""

from dataclasses import replace

import pytest

from replicator.control.backfill.estimate import backfill_estimate
from replicator.control.lanes.lane_specs import lane_may_start, lane_specs
from replicator.control.lanes.layout import decide_layout
from replicator.control.lanes.opposite_topologies import opposite_to_record
from replicator.control.lanes.throttle_shares import decide_shares
from replicator.control.reconcile.actions import AlterConfigs, CreateTopic, DeleteTopic, GrowTopic
from replicator.control.reconcile.cluster_view import ClusterView, TopicFacts
from replicator.control.reconcile.decide import reconcile
from replicator.control.reconcile.permissions import rights_problems
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import selected_topics
from replicator.control.records.decode import decode_record
from replicator.control.records.pair_records import (
    AcceptedGap,
    Binding,
    Block,
    LaneShare,
    Layout,
    Lost,
    Pause,
    ProblemRecord,
    Share,
    TopicRecord,
)
from replicator.control.store.bindings import binding_conflicts, missing_bindings
from replicator.control.store.state import EMPTY
from replicator.control.store.worker_record import batches_wait
from replicator.errors import StoredFormatError
from replicator.formats.checkpoint import Checkpoint
from replicator.kafka.clients.wire_json import encode_key, encode_value
from replicator.policy.copies.topic_config import ConfigValue
from replicator.policy.values import LinkPolicy, Naming, Selection, StartFrom, Throttle, TopicSync
from replicator.problem import Problem
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, PairPlan, Plan

CONFIGS = {
    "cleanup.policy": ConfigValue("delete", is_default=True),
    "max.message.bytes": ConfigValue("1048588", is_default=True),
    "retention.ms": ConfigValue("604800000", is_default=True),
}


def policy(*topics, **fields):
    return LinkPolicy(topics=Selection(topics), groups=Selection(), **fields)


def flow(link, one, source="east", target="west"):
    return FlowPlan(link, source, target, one, (target,))


def pair(**policies):
    return PairPlan(
        ClusterPlan("east", ("east:9092",)),
        ClusterPlan("west", ("west:9092",)),
        tuple(flow(link, one) for link, one in policies.items()),
    )


def plan_of(*flows):
    names = dict.fromkeys(alias for one in flows for alias in (one.source, one.target))
    links = tuple(
        LinkPlan(one.link, "active-passive", (one.source, one.target), one.source, None, (one,))
        for one in flows
    )
    return Plan("retail", tuple(ClusterPlan(name, (name,)) for name in names), links, "hash")


def facts(partitions=2, topic_id="a", configs=CONFIGS):
    return TopicFacts(topic_id, partitions, 1, configs)


def view_of(topics):
    """The view of a cluster with these topics."""
    sizes = {name: facts.partitions for name, facts in topics.items()}
    return ClusterView().listed(sizes).described(topics)


def snapshot(source, target=None, records=(), **fields):
    target = target or {}
    absent = {each.topic: None for each in records if isinstance(each, TopicRecord)}
    fields.setdefault("absences", {t: None for t in absent if t not in source})
    return PairSnapshot(
        at_ms=fields.pop("at_ms", 1_000_000),
        aliases=("east", "west"),
        source=view_of(source),
        target=view_of(target),
        target_brokers=3,
        control=EMPTY.fold([record.encode() for record in records]),
        **fields,
    )


def record(topic="orders", **fields):
    return TopicRecord(
        **{
            "source": "east", "link": "one", "topic": topic, "target": topic, "topic_id": "a",
            "partitions": 2, "target_partitions": 2, "max_message_bytes": 1048588,
            "state": "active", "activated": True, "at_ms": 1_000_000, **fields,
        }
    )  # fmt: skip


LAYOUT = Layout(
    source="east", epoch=1, state="stable", blocks=(Block(link="one", first=0, count=2),), total=2
)


def of(kind, decision):
    return [action for action in decision.actions if isinstance(action, kind)]


def test_a_missing_target_is_created_with_replicas_and_room_for_the_header():
    decision = reconcile(pair(one=policy("orders")), snapshot({"orders": facts(6)}))
    (create,) = of(CreateTopic, decision)
    assert (create.partitions, create.replication_factor) == (6, 3)
    assert int(dict(create.configs)["max.message.bytes"]) > 1_048_588
    assert "link one copies east's 'orders'" in create.reason


def test_nothing_is_told_to_lanes_before_the_target_topic_is_seen():
    source = {"orders": facts()}
    decision = reconcile(
        pair(one=policy("orders")),
        snapshot(source, records=[LAYOUT], just_created=frozenset({"orders"})),
    )
    assert decision.actions == ()


def test_growth_of_the_target_comes_before_lanes_get_the_partitions():
    held = [LAYOUT, record()]
    source = {"orders": facts(5)}
    first = reconcile(pair(one=policy("orders")), snapshot(source, {"orders": facts(2)}, held))
    assert of(GrowTopic, first)[0].to_partitions == 5
    told = next(a.record for a in first.actions if getattr(a, "record", None) is not None)
    assert told.working_partitions == 2
    second = reconcile(pair(one=policy("orders")), snapshot(source, {"orders": facts(5)}, held))
    told = next(a.record for a in second.actions if getattr(a, "record", None) is not None)
    assert told.working_partitions == 5


def test_a_target_with_more_partitions_is_fine():
    decision = reconcile(
        pair(one=policy("orders")),
        snapshot({"orders": facts(2)}, {"orders": facts(9)}, [LAYOUT]),
    )
    assert decision.problems == {"one": ()}
    assert of(GrowTopic, decision) == []


def test_a_topic_that_was_copied_keeps_its_partitions_when_growth_is_not_wanted():
    one = policy("orders", sync_topics=TopicSync(partitions=False))
    decision = reconcile(
        pair(one=one),
        snapshot({"orders": facts(5)}, {"orders": facts(2)}, [LAYOUT, record()]),
    )
    assert decision.problems["one"][0].code == "TARGET_FEWER_PARTITIONS"
    told = next(
        a.record for a in decision.actions if isinstance(getattr(a, "record", None), TopicRecord)
    )
    assert (told.state, told.working_partitions) == ("active", 2)


def test_two_links_that_would_write_one_topic_refuse_the_second():
    both = pair(
        one=policy("copy.orders"),
        two=policy("orders", naming=Naming("template", "copy.{topic}")),
    )
    first, second = selected_topics(both, ["orders", "copy.orders"], ("east", "west"))
    assert first.problem is None
    assert "already written from 'copy.orders' by link 'one'" in second.problem.detail


def test_a_topic_another_source_already_writes_is_refused():
    other = record(source="north", link="far")
    decision = reconcile(
        pair(one=policy("orders")),
        snapshot({"orders": facts()}, {"orders": facts()}, [LAYOUT, other]),
    )
    assert "already written from north by link 'far'" in decision.problems["one"][0].detail


def test_links_with_two_sources_may_share_a_topic():
    other = record(source="north", link="one")
    decision = reconcile(
        pair(one=policy("orders")),
        snapshot({"orders": facts()}, {"orders": facts()}, [LAYOUT, other]),
    )
    assert decision.problems == {"one": ()}


def test_a_changed_naming_does_not_begin_a_copy_in_the_middle():
    decision = reconcile(
        pair(one=policy("orders", naming=Naming("prefix"))),
        snapshot({"orders": facts()}, {"orders": facts()}, [LAYOUT, record()]),
    )
    assert "would begin in the middle" in decision.problems["one"][0].detail
    assert of(CreateTopic, decision) == []


def test_a_refused_change_of_settings_is_drift_and_the_topic_goes_on():
    source = facts(configs={**CONFIGS, "retention.ms": ConfigValue("1", is_default=False)})
    held = [LAYOUT, record()]
    first = reconcile(
        pair(one=policy("orders")), snapshot({"orders": source}, {"orders": facts()}, held)
    )
    (alter,) = of(AlterConfigs, first)
    refusal = Problem("TARGET_REFUSES", "orders", "not allowed", "Ask.")
    second = reconcile(
        pair(one=policy("orders")),
        snapshot({"orders": source}, {"orders": facts()}, held, refusals={alter.identity: refusal}),
    )
    assert of(AlterConfigs, second) == []
    assert second.problems["one"][0].code == "CONFIG_DRIFT"
    told = next(
        a.record for a in second.actions if isinstance(getattr(a, "record", None), TopicRecord)
    )
    assert told.state == "active"


def test_another_cleanup_policy_is_a_problem_only_where_it_is_not_repaired():
    target = facts(configs={**CONFIGS, "cleanup.policy": ConfigValue("compact", is_default=False)})
    repaired = reconcile(
        pair(one=policy("orders")), snapshot({"orders": facts()}, {"orders": target}, [LAYOUT])
    )
    assert of(AlterConfigs, repaired)
    left = reconcile(
        pair(one=policy("orders", sync_topics=TopicSync(configs=False))),
        snapshot({"orders": facts()}, {"orders": target}, [LAYOUT]),
    )
    assert "cleanup.policy is compact" in left.problems["one"][0].detail


def test_a_bound_on_timestamps_that_refuses_history_is_a_problem():
    bound = ConfigValue("3600000", is_default=False)
    target = facts(configs={**CONFIGS, "message.timestamp.before.max.ms": bound})
    decision = reconcile(
        pair(one=policy("orders", sync_topics=TopicSync(configs=False))),
        snapshot({"orders": facts()}, {"orders": target}, [LAYOUT]),
    )
    assert "older records will be refused" in decision.problems["one"][0].detail


def test_deletion_waits_and_spares_what_others_write():
    one = policy("orders", sync_topics=TopicSync(deletions="propagate"))
    gone = record(state="gone", at_ms=1_000_000)
    target = {"orders": facts()}
    early = reconcile(pair(one=one), snapshot({}, target, [LAYOUT, gone], at_ms=1_059_000))
    assert of(DeleteTopic, early) == []
    late = reconcile(pair(one=one), snapshot({}, target, [LAYOUT, gone], at_ms=1_061_000))
    assert [action.topic for action in of(DeleteTopic, late)] == ["orders"]
    shared = record(source="north", link="one")
    spared = reconcile(pair(one=one), snapshot({}, target, [LAYOUT, gone, shared], at_ms=1_061_000))
    assert of(DeleteTopic, spared) == []


@pytest.mark.parametrize(
    ("held", "layout", "partitions", "late"),
    [
        (None, None, 3, []),
        (None, LAYOUT, 3, [0, 1, 2]),
        (record(partitions=2), LAYOUT, 4, [2, 3]),
        (record(partitions=4, first_partitions=2), LAYOUT, 4, [2, 3]),
        (record(partitions=2, topic_id="old"), LAYOUT, 2, [0, 1]),
    ],
    ids=["first applied", "later topic", "grown", "grown before", "recreated"],
)
def test_what_appears_after_a_flow_was_first_applied_is_late(held, layout, partitions, late):
    one = policy("orders", start_from=StartFrom("latest"))
    known = [each for each in (layout, held) if each is not None]
    topics = {"orders": facts(partitions)}
    seen = snapshot(topics, topics, known)
    decision = reconcile(pair(one=one), seen)
    found = next(
        (a.record for a in decision.actions if isinstance(getattr(a, "record", None), TopicRecord)),
        held,
    )
    assert [n for n in range(partitions) if found.is_late(n)] == late


def test_a_topic_whose_copy_is_still_being_made_is_on_record_as_there_from_the_first():
    one = policy("orders", start_from=StartFrom("latest"))
    first = reconcile(pair(one=one), snapshot({"orders": facts(3)}))
    (early,) = [
        a.record for a in first.actions if isinstance(getattr(a, "record", None), TopicRecord)
    ]
    assert (early.state, early.first_partitions, early.activated) == ("refused", 3, False)
    later = reconcile(
        pair(one=one), snapshot({"orders": facts(3)}, {"orders": facts(3)}, [LAYOUT, early])
    )
    (active,) = [
        a.record for a in later.actions if isinstance(getattr(a, "record", None), TopicRecord)
    ]
    assert (active.state, active.first_partitions) == ("active", 3)


PROPAGATING = policy("*", sync_topics=TopicSync(deletions="propagate"))


@pytest.mark.parametrize("deletions", ["propagate", "keep"])
def test_a_topic_that_is_only_not_listed_is_not_gone(deletions):
    one = policy("*", sync_topics=TopicSync(deletions=deletions))
    hidden = Problem("NOT_AUTHORIZED", "orders", "'orders' is hidden on east", "Allow DESCRIBE.")
    for absences, told in (({}, ()), ({"orders": hidden}, (hidden,))):
        seen = snapshot({}, {"orders": facts()}, [LAYOUT, record()], absences=absences)
        decision = reconcile(pair(one=one), seen)
        assert [a for a in decision.actions if a.subject == "orders"] == []
        assert decision.problems["one"] == told


def test_a_deletion_takes_a_second_answer_by_name():
    gone = record(state="gone", at_ms=1_000_000)
    hidden = Problem("NOT_AUTHORIZED", "orders", "'orders' is hidden on east", "Allow DESCRIBE.")
    for absences in ({}, {"orders": hidden}):
        seen = snapshot({}, {"orders": facts()}, [LAYOUT, gone], at_ms=1_061_000, absences=absences)
        assert of(DeleteTopic, reconcile(pair(one=PROPAGATING), seen)) == []


@pytest.mark.parametrize(
    ("gone", "left", "refused"), [(2, 0, False), (3, 3, False), (3, 2, True), (10, 0, True)]
)
def test_topics_that_vanish_together_are_taken_for_an_accident(gone, left, refused):
    lost = [record(f"lost-{n}", state="gone", at_ms=1_000_000) for n in range(gone)]
    kept = [record(f"kept-{n}") for n in range(left)]
    source = {each.topic: facts() for each in kept}
    target = {each.topic: facts() for each in (*lost, *kept)}
    seen = snapshot(source, target, [LAYOUT, *lost, *kept], at_ms=1_061_000)
    decision = reconcile(pair(one=PROPAGATING), seen)
    assert len(of(DeleteTopic, decision)) == (0 if refused else gone)
    assert ("DELETIONS_REFUSED" in [p.code for p in decision.problems["one"]]) is refused


@pytest.mark.parametrize(
    ("lanes", "partitions", "total"), [(None, 3, 3), (None, 0, 1), (None, 40, 8), (16, 2, 16)]
)
def test_the_first_layout_follows_the_partitions_or_the_file(lanes, partitions, total):
    decision = decide_layout(
        pair(one=policy("orders", lanes=lanes)), None, partitions={"one": partitions}
    )
    assert (decision.change, decision.layout.total) == ("write", total)


def test_auto_lanes_stay_what_they_were_and_a_new_link_is_appended():
    both = pair(one=policy("orders"), two=policy("bills"))
    decision = decide_layout(both, LAYOUT, partitions={"one": 8, "two": 4})
    assert decision.change == "write"
    assert decision.layout.epoch == LAYOUT.epoch  # nobody restarts for it
    assert [(b.link, b.first, b.count) for b in decision.layout.blocks] == [
        ("one", 0, 2),
        ("two", 2, 4),
    ]


def test_another_number_of_lanes_is_a_fenced_change():
    decision = decide_layout(pair(one=policy("orders", lanes=5)), LAYOUT, partitions={})
    assert (decision.change, decision.layout.epoch, decision.layout.total) == ("fenced", 2, 5)
    assert decision.reason == "lanes change: one from 2 to 5"


def test_checkpoints_without_a_layout_are_never_ignored():
    decision = decide_layout(
        pair(one=policy("orders")), None, partitions={"one": 2}, checkpoints_exist=True
    )
    assert decision.change == "fenced"


def test_lanes_get_exactly_the_active_partitions_that_are_not_paused():
    one = policy("*", throttle=Throttle(bytes_per_second=1000))
    east_west = pair(one=one)
    control = EMPTY.fold(
        [
            LAYOUT.encode(),
            record("orders").encode(),
            record("bills", state="refused").encode(),
            AcceptedGap(
                source="east", topic="orders", partition=0, token="t", at_ms=1, by="me"
            ).encode(),
        ]
    )
    plan = plan_of(*east_west.flows)

    def work(state, lanes=range(2)):
        specs = lane_specs(plan=plan, pair=east_west, control=state, lanes=lanes)
        return {(item.topic, item.partition): item for s in specs.values() for item in s.work}

    assert sorted(work(control)) == [("orders", 0), ("orders", 1)]
    assert [item.accept_gap for _, item in sorted(work(control).items())] == ["t", ""]
    damaged = AcceptedGap(
        source="east", topic="orders", partition=0, token="u", at_ms=1, by="me",
        problem="SOURCE_DAMAGED", lost=Lost(from_offset=3, to_offset=9),
    )  # fmt: skip
    found = sorted(work(control.fold([damaged.encode()])).items())
    assert [(item.accept_gap, item.unreadable) for _, item in found] == [("u", (3, 9)), ("", None)]
    paused = Pause(flow="east->west", topic="orders", partition=1, at_ms=1, by="me")
    assert sorted(work(control.fold([paused.encode()]))) == [("orders", 0)]
    everything = Pause(flow="east->west", at_ms=1, by="me")
    assert work(control.fold([everything.encode()])) == {}
    assert work(control.fold([everything.encode(), everything.tombstone()])) == work(control)
    changing = LAYOUT.model_copy(update={"state": "changing"})
    assert work(control.fold([changing.encode()])) == {}
    specs = lane_specs(plan=plan, pair=east_west, control=control, lanes=[0, 1])
    assert {spec.throttle.bytes_per_second for spec in specs.values()} == {500}
    assert all(lane_may_start(control, spec) for spec in specs.values())
    later = LAYOUT.model_copy(update={"epoch": 2})
    assert not any(lane_may_start(control.fold([later.encode()]), s) for s in specs.values())


def test_a_flow_is_in_a_cycle_when_records_could_come_back():
    there, back = flow("a", policy("*")), flow("b", policy("*"), "west", "east")
    onward = flow("c", policy("*"), "west", "north")
    assert plan_of(there, back).in_cycle(there)
    assert not plan_of(there, onward).in_cycle(there)
    home = flow("d", policy("*"), "north", "east")
    assert plan_of(there, onward, home).in_cycle(there)


def test_topologies_that_copy_the_other_way_are_recorded_and_lanes_look_for_their_copies():
    one = pair(one=policy("*"))
    east_west, plan = replace(one, topology="retail"), plan_of(*one.flows)
    strangers = [
        "orders", "__replicator.retail.west.checkpoints", "__replicator.far.north.checkpoints",
    ]  # fmt: skip
    control = EMPTY.fold([LAYOUT.encode(), record("orders").encode()])
    assert opposite_to_record(east_west, strangers, control, at_ms=5) is None

    def lane(state):
        return lane_specs(plan=plan, pair=east_west, control=state, lanes=[0])[0].settings

    assert (lane(control).returns, lane(control).met_by_others) == (False, False)
    theirs = [*strangers, "__replicator.back.west.checkpoints"]
    found = opposite_to_record(east_west, theirs, control, at_ms=5)
    assert (found.topologies, found.unaware) == (("back",), ("back",))
    noted = control.fold([found.encode()])
    assert not noted.same_orders(control), "lanes have to hear of it"
    assert (lane(noted).returns, lane(noted).met_by_others) == (True, True)
    for listed in (theirs, strangers):
        assert opposite_to_record(east_west, listed, noted, at_ms=6) is None
    more = [*strangers, "__replicator.more.west.checkpoints"]
    both = opposite_to_record(east_west, more, noted, at_ms=7)
    assert both.topologies == both.unaware == ("back", "more")


def test_whole_batches_wait_until_a_topology_that_copies_the_other_way_knows_of_this_one():
    automatic = replace(policy("*"), engine="batches", engine_reason="auto", provenance="path")
    one = replace(pair(one=automatic), topology="retail")
    plan = plan_of(*one.flows)
    control = EMPTY.fold([LAYOUT.encode(), record("orders").encode()])

    def engine(state):
        waits_for = batches_wait(state, "east", now_ms=5)
        specs = lane_specs(plan=plan, pair=one, control=state, lanes=[0], waits_for=waits_for)
        return waits_for, specs[0].settings.engine

    assert engine(control) == ("", "batches")
    theirs = ["orders", "__replicator.back.west.checkpoints"]
    noted = control.fold([opposite_to_record(one, theirs, control, at_ms=5).encode()])
    assert engine(noted) == ("other-topology", "records")
    known = opposite_to_record(one, theirs, noted, at_ms=6, aware={"back"})
    assert (known.topologies, known.unaware) == (("back",), ())
    settled = noted.fold([known.encode()])
    assert engine(settled) == ("", "batches")
    assert opposite_to_record(one, theirs, settled, at_ms=7) is None, "it is not asked again"


def test_a_topology_that_copies_to_the_source_from_further_on_is_not_waited_for():
    """It looks for copies of topologies where it copies from, and ours are not there."""
    one = replace(pair(one=policy("*")), topology="retail")
    flows = tuple(replace(each, blocked=("west", "north")) for each in one.flows)
    theirs = ["__replicator.back.north.checkpoints"]
    found = opposite_to_record(replace(one, flows=flows), theirs, EMPTY, at_ms=5)
    assert (found.topologies, found.unaware) == (("back",), ())


def test_shares_follow_need_and_are_written_only_when_they_moved():
    throttled = pair(one=policy("*", throttle=Throttle(bytes_per_second=100_000)))
    control = EMPTY.fold([LAYOUT.encode(), record("orders").encode()])
    behind = {("orders", 0): Checkpoint("orders", 0, 0), ("orders", 1): Checkpoint("orders", 1, 50)}
    ends = {("orders", 0): 10_000, ("orders", 1): 50}
    (share,) = decide_shares(throttled, control, checkpoints=behind, ends=ends)
    parts = sorted(part.bytes_per_second for part in share.lanes.values())
    assert sum(parts) <= 100_000
    assert parts[1] > 10 * parts[0]
    settled = control.fold([share.encode()])
    assert decide_shares(throttled, settled, checkpoints=behind, ends=ends) == ()
    nudged = {"0": LaneShare(bytes_per_second=1), "1": LaneShare(bytes_per_second=1)}
    moved = control.fold([Share(source="east", link="one", lanes=nudged).encode()])
    assert decide_shares(throttled, moved, checkpoints=behind, ends=ends)
    assert decide_shares(pair(one=policy("*")), control, checkpoints=behind, ends=ends) == ()


def test_aliases_mean_one_cluster_each():
    held = [Binding(alias="east", cluster_id="E", at_ms=1)]
    assert binding_conflicts(held, {"east": "E", "west": "W"}) == ()
    (moved,) = binding_conflicts(held, {"east": "X"})
    assert "bound to cluster E" in moved.message
    (renamed,) = binding_conflicts(held, {"orient": "E"})
    assert "is known as 'east'" in renamed.message
    (same,) = binding_conflicts((), {"east": "E", "west": "E"})
    assert "are one cluster" in same.message
    assert [one.alias for one in missing_bindings(held, {"east": "E", "west": "W"}, at_ms=1)] == [
        "west"
    ]


def test_missing_rights_are_named_with_their_resource():
    wanted = selected_topics(pair(one=policy("orders")), ["orders"], ("east", "west"))
    found = rights_problems(
        pair(one=policy("orders")), wanted,
        readable={"orders": frozenset({"DESCRIBE"})},
        writable={"orders": frozenset({"DESCRIBE", "ALTER", "ALTER_CONFIGS"})},
        cluster=frozenset({"DESCRIBE"}), refused=["orders"],
    )  # fmt: skip
    assert [problem.detail.split(" on ")[0] for problem in found[:2]] == [
        "our user lacks READ",
        "our user lacks WRITE",
    ]
    assert found[2].subject == "cluster:west"
    unknown = rights_problems(
        pair(one=policy("orders")), wanted,
        readable={}, writable={}, cluster=frozenset(), refused=[],
    )  # fmt: skip
    assert unknown == ()


def test_the_time_to_seed_follows_the_slower_of_records_and_bytes():
    def seconds(records, record_bytes, **throttle):
        return backfill_estimate(
            flow="east->west", topic="orders", records=records, size=records * record_bytes,
            throttle=Throttle(**throttle),
        ).seconds  # fmt: skip

    assert seconds(1_000_000, 1) == 10
    assert seconds(1_000_000, 1000) == 20
    assert seconds(1_000, 1000, bytes_per_second=10_000) == 100


def test_records_survive_the_wire_and_keep_what_newer_releases_added():
    known = record().model_copy(update={})
    key, value = known.encode()
    assert decode_record(key, value) == (("topic", ("east", "one", "orders")), known)
    assert decode_record(key, None) == (("topic", ("east", "one", "orders")), None)
    newer = encode_value(
        {"problems": [], "state": "stable", "epoch": 1, "blocks": [], "total": 0, "later": 7}
    )
    _, layout = decode_record(LAYOUT.key(), newer)
    assert b'"later":7' in layout.encode()[1]
    for version in (1, 9):
        future = encode_key({"kind": "unheard-of", "v": version, "link": "one"})
        assert decode_record(future, b"{}") is None
        assert EMPTY.fold([known.encode(), (future, b"{}")]).topics("east") == (known,)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (encode_key({"kind": "layout", "source": "east"}), b'{"v":2}'),
        (encode_key({"kind": "layout", "v": 2, "source": "east"}), b'{"v":1}'),
        (encode_key({"kind": "layout", "source": "east"}), b'{"v":1,"epoch":"no"}'),
        (b"not json", b"{}"),
    ],
)
def test_what_cannot_be_read_is_refused_and_never_guessed(key, value):
    with pytest.raises(StoredFormatError):
        EMPTY.fold([(key, value)])


def test_problems_are_reported_once_and_withdrawn():
    source, target = {"orders": facts(5)}, {"orders": facts(2)}
    one = pair(one=policy("orders", sync_topics=TopicSync(partitions=False)))
    first = reconcile(one, snapshot(source, target, [LAYOUT]))
    (report,) = [
        a.record for a in first.actions if isinstance(getattr(a, "record", None), ProblemRecord)
    ]
    held = [LAYOUT, *(a.record for a in first.actions if hasattr(a, "record"))]
    assert reconcile(one, snapshot(source, target, held)).actions == ()
    mended = reconcile(one, snapshot(source, {"orders": facts(5)}, held))
    (gone,) = [
        a.record for a in mended.actions if isinstance(getattr(a, "record", None), ProblemRecord)
    ]
    assert (len(report.problems), gone.problems) == (1, ())


def test_a_link_removed_from_the_file_ends_its_records_and_keeps_the_copies():
    both = [LAYOUT, record(), ProblemRecord(source="east", link="one", problems=(), at_ms=1)]
    nothing = replace(pair(two=policy("bills")))
    decision = reconcile(nothing, snapshot({"orders": facts()}, {"orders": facts()}, both))
    assert {type(action).__name__ for action in decision.actions} == {"EraseRecord", "ArrangeLanes"}
    assert of(DeleteTopic, decision) == []
