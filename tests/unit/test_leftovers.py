"""What a link left: what goes, what stays and why, and who must not be at work."""

import pytest
from topology_files import active_passive, topology_text

from replicator.control.records.pair_records import Binding, Block, Layout, TopicRecord
from replicator.control.records.role_records import FenceRecord, RoleRecord, TransitionRecord
from replicator.control.records.worker_records import FlowRates, WorkerRecord
from replicator.control.store.state import EMPTY
from replicator.failover.rules.leftovers import (
    ClusterFacts,
    active_on_record,
    at_work,
    fences_of,
    leftovers,
    obsolete_records,
    open_change,
    topics_of,
)
from replicator.topology.file.load import load_text

NOW = 1_000_000
CLUSTERS = {alias: {"bootstrapServers": [f"{alias}:9092"]} for alias in ("east", "west", "north")}


def plan_of(*links):
    loaded = load_text(topology_text("shop", CLUSTERS, links), file="topology.yaml")
    assert loaded.plan is not None, loaded.problems
    return loaded.plan


ALONE = plan_of(active_passive(["orders"], name="dr"))
SHARED = plan_of(active_passive(["orders"], name="dr"), active_passive(["bills"], name="bills"))
ELSEWHERE = plan_of(
    active_passive(["orders"], name="dr"),
    active_passive(["bills"], name="bills", active="west", passive="north"),
)


def state(*records):
    return EMPTY.fold([record.encode() for record in records])


def topic(link, name):
    return TopicRecord(
        source="east", link=link, topic=name, target=name, topic_id="t", partitions=1,
        target_partitions=1, state="active",
    )  # fmt: skip


def worker(at_ms, *links, **more):
    flows = tuple(FlowRates(link=link) for link in links)
    return WorkerRecord(source="east", id="w-0", at_ms=at_ms, flows=flows, **more)


RECORDS = (
    Binding(alias="east", cluster_id="E", at_ms=0),
    Layout(source="east", epoch=1, state="stable", total=2,
           blocks=(Block(link="dr", first=0, count=1), Block(link="bills", first=1, count=1))),
    topic("dr", "orders"),
    topic("bills", "bills"),
    RoleRecord(link="dr", epoch=1, active="east", state="mirroring", since=0, by="me"),
)  # fmt: skip
NAMES = {
    "__replicator.shop.control": 5, "__replicator.shop.east.checkpoints": 7,
    "__replicator.shop.east.quarantine": 0, "__replicator.shop.east.west.dr.canary": 3,
}  # fmt: skip


def facts(*, records=RECORDS, topics=NAMES, groups=None, north=None):
    found = {
        "east": ClusterFacts(state(*records), {"__replicator.shop.control": 5}, {"replicator.shop.west": False}),
        "west": ClusterFacts(state(*records), topics, groups or {"__replicator.shop.east": False}),
    }  # fmt: skip
    return found | ({"north": north} if north else {})


def told(plan, found):
    entries = leftovers(plan, plan.link("dr"), found)
    return (
        {(e.cluster, e.kind, e.subject) for e in entries if not e.stays},
        {(e.cluster, e.kind, e.subject): e.stays for e in entries if e.stays},
    )


def test_the_only_link_of_its_clusters_leaves_nothing_but_records_of_users():
    goes, stays = told(ALONE, facts())
    assert stays == {}
    assert goes == {
        ("east", "topic", "__replicator.shop.control"),
        ("east", "group", "replicator.shop.west"),
        ("west", "group", "__replicator.shop.east"),
        *(("west", "topic", name) for name in NAMES),
    }


def test_quarantined_records_stay():
    _, stays = told(ALONE, facts(topics={**NAMES, "__replicator.shop.east.quarantine": 4}))
    ((what, why),) = stays.items()
    assert what == ("west", "topic", "__replicator.shop.east.quarantine")
    assert "4 records" in why


def test_what_another_link_over_the_same_pair_uses_stays():
    goes, stays = told(SHARED, facts())
    assert goes == {
        ("east", "records", "__replicator.shop.control"),
        ("west", "records", "__replicator.shop.control"),
        ("west", "checkpoints", "__replicator.shop.east.checkpoints"),
        ("west", "topic", "__replicator.shop.east.west.dr.canary"),
    }
    assert stays[("west", "topic", "__replicator.shop.east.checkpoints")]
    assert stays[("west", "topic", "__replicator.shop.control")]
    assert stays[("west", "group", "__replicator.shop.east")]
    gone = obsolete_records(SHARED, SHARED.link("dr"), "west", state(*RECORDS))
    assert {type(record) for record in gone} == {TopicRecord, RoleRecord}
    assert all(record.link == "dr" for record in gone)


def test_positions_of_a_topic_that_another_link_copies_too_stay():
    both = state(topic("dr", "orders"), topic("dr", "bills"), topic("bills", "bills"))
    assert topics_of(SHARED, SHARED.link("dr"), "east", both) == {"orders"}


def test_over_a_pair_of_its_own_the_layout_goes_and_the_shared_clusters_control_topic_stays():
    goes, stays = told(ELSEWHERE, facts())
    assert ("west", "topic", "__replicator.shop.east.checkpoints") in goes
    assert ("east", "topic", "__replicator.shop.control") in goes
    assert ("west", "topic", "__replicator.shop.control") in stays
    gone = obsolete_records(ELSEWHERE, ELSEWHERE.link("dr"), "west", state(*RECORDS))
    assert Layout in {type(record) for record in gone}
    assert Binding not in {type(record) for record in gone}


@pytest.mark.parametrize(
    ("plan", "record", "groups", "busy"),
    [
        (ALONE, worker(NOW - 5_000, "dr"), {}, True),
        (ALONE, worker(NOW - 5_000), {}, True),
        (ALONE, worker(NOW - 60_000, "dr"), {}, False),
        (ALONE, worker(NOW - 60_000, "dr"), {"__replicator.shop.east": True}, True),
        (SHARED, worker(NOW - 5_000, "dr", "bills"), {"__replicator.shop.east": True}, True),
        (SHARED, worker(NOW - 5_000, "bills"), {"__replicator.shop.east": True}, False),
        (SHARED, worker(NOW - 5_000, plan_hash=SHARED.hash), {}, True),
        (SHARED, worker(NOW - 5_000, lanes=(0,)), {}, True),
        (SHARED, worker(NOW - 5_000, lanes=(1,)), {}, False),
        (SHARED, worker(NOW - 60_000, "bills"), {"__replicator.shop.east": True}, True),
    ],
)
def test_the_worker_that_serves_the_link_keeps_it(plan, record, groups, busy):
    found = facts(records=(*RECORDS, record), groups=groups)
    assert bool(at_work(plan, plan.link("dr"), found, now_ms=NOW)) == busy


def test_a_role_change_that_has_not_ended_is_seen_on_either_side():
    change = TransitionRecord(
        link="dr", id="42", kind="switchover", state="open", source="east", target="west",
        home="west", token="t", at_ms=0, by="me",
    )  # fmt: skip
    assert open_change(ALONE.link("dr"), facts(records=(change,))) == "42"
    ended = change.model_copy(update={"state": "done"})
    assert open_change(ALONE.link("dr"), facts(records=(ended,))) == ""


def test_a_fence_is_lifted_first_on_the_cluster_it_is_about():
    fence = FenceRecord(link="dr", cluster="east", method="acl", state="held", at_ms=0, by="me")
    found = {
        "east": ClusterFacts(None),
        "west": ClusterFacts(state(fence), {"__replicator.shop.control": 1}),
    }
    first = leftovers(ALONE, ALONE.link("dr"), found)[0]
    assert (first.cluster, first.kind) == ("east", "fence")
    assert [holder for holder, _ in fences_of(ALONE.link("dr"), found)] == ["west"]


LOST_FENCE = FenceRecord(link="dr", cluster="east", method="acl", state="held", at_ms=0, by="me")
WITHOUT_EAST = {"west": ClusterFacts(state(*RECORDS, LOST_FENCE), NAMES)}


class TestALostCluster:
    def test_what_it_cannot_be_asked_about_does_not_hold_up_the_others(self):
        link = ALONE.link("dr")
        assert at_work(ALONE, link, WITHOUT_EAST, now_ms=NOW) == []
        found = leftovers(ALONE, link, WITHOUT_EAST)
        assert {each.cluster for each in found if not each.stays} == {"west"}

    def test_its_fence_is_reported_and_left(self):
        (fence,) = [
            each
            for each in leftovers(ALONE, ALONE.link("dr"), WITHOUT_EAST)
            if each.kind == "fence"
        ]
        assert (fence.cluster, bool(fence.stays)) == ("east", True)

    def test_the_newest_role_says_who_is_active_else_the_file(self):
        link = ALONE.link("dr")
        newer = RoleRecord(link="dr", epoch=2, active="west", state="promoted", since=0, by="me")
        assert active_on_record(ALONE, link, WITHOUT_EAST) == "east"
        assert active_on_record(ALONE, link, {"west": ClusterFacts(state(newer))}) == "west"
        copied = {"west": ClusterFacts(state(topic("dr", "orders")))}
        assert active_on_record(ALONE, link, copied) == link.active == "east"

    def test_where_nothing_is_on_record_any_more_no_cluster_is_active(self):
        for control in (None, state(RECORDS[0])):
            facts = {"west": ClusterFacts(control)}
            assert active_on_record(ALONE, ALONE.link("dr"), facts) == ""
