"""What lanes should do, worked out from what changed, is what is worked out from everything."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.control.lanes.lane_specs import LaneSpecs, lane_specs
from replicator.control.records.pair_records import (
    AcceptedGap,
    BackfillRecord,
    Block,
    Layout,
    Pause,
    Share,
    TopicRecord,
)
from replicator.control.records.worker_records import WorkerRecord
from replicator.control.store.state import EMPTY
from replicator.policy.values import LinkPolicy, Selection
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, PairPlan, Plan

LINKS, TOPICS = ("one", "two"), ("t0", "t1", "t2")
POLICY = LinkPolicy(topics=Selection(("*",)), groups=Selection())
FLOWS = tuple(FlowPlan(link, "east", "west", POLICY, ("west",)) for link in LINKS)
PAIR = PairPlan(ClusterPlan("east", ("e:1",)), ClusterPlan("west", ("w:1",)), FLOWS)
PLAN = Plan(
    "shop",
    (PAIR.source, PAIR.target),
    tuple(
        LinkPlan(flow.link, "active-passive", ("east", "west"), "east", None, (flow,))
        for flow in FLOWS
    ),
    "hash",
)
links, topics, partitions = (st.sampled_from(values) for values in (LINKS, TOPICS, (0, 1, 2)))


def some(kind, /, **fields):
    return st.fixed_dictionaries({"source": st.just("east"), **fields}).map(
        lambda values: kind(**values)
    )


RECORDS = st.one_of(
    some(
        Layout, epoch=st.integers(1, 2), state=st.sampled_from(["stable", "stable", "changing"]),
        blocks=st.integers(1, 3).map(
            lambda count: (
                Block(link="one", first=0, count=count), Block(link="two", first=count, count=2),
            )
        ), total=st.just(5),
    ),
    some(
        TopicRecord, link=links, topic=topics, target=topics, topic_id=st.sampled_from("ab"),
        partitions=st.integers(1, 3), target_partitions=st.integers(1, 3),
        state=st.sampled_from(["active", "active", "gone"]),
    ),
    st.builds(
        lambda link, topic, partition: Pause(
            flow="east->west", link=link, topic=topic, partition=partition, at_ms=1, by="test"
        ),
        st.none() | links, st.none() | topics, st.none() | partitions,
    ),
    some(
        AcceptedGap, topic=topics, partition=partitions, token=st.sampled_from("xy"),
        at_ms=st.just(1), by=st.just("test"),
    ),
    some(
        BackfillRecord, link=links, topic=topics, partition=partitions,
        state=st.sampled_from(["seeding", "done"]), run=st.sampled_from("rs"),
    ),
    some(Share, link=links, lanes=st.just({})),
)  # fmt: skip
LOGS = st.lists(
    st.tuples(RECORDS, st.booleans()).map(
        lambda one: one[0].tombstone() if one[1] else one[0].encode()
    ),
    min_size=1,
    max_size=8,
)
START = [
    Layout(
        source="east", epoch=1, state="stable", total=5,
        blocks=(Block(link="one", first=0, count=3), Block(link="two", first=3, count=2)),
    ).encode(),
    *(
        TopicRecord(
            source="east", link=link, topic=topic, target=topic, topic_id="a", partitions=2,
            target_partitions=2, state="active",
        ).encode()
        for link in LINKS
        for topic in TOPICS
    ),
]  # fmt: skip


@given(st.lists(LOGS, max_size=6), st.frozensets(st.integers(0, 4)))
def test_orders_follow_the_control_topic_however_it_came_to_say_so(logs, some_lanes):
    specs, control = LaneSpecs(), EMPTY.fold(START)
    for number, log in enumerate([[], *logs]):
        control = control.fold(log)
        lanes = some_lanes if number % 2 else frozenset(range(5))
        assert specs.of(PLAN, PAIR, control, lanes, at=AT) == lane_specs(
            plan=PLAN, pair=PAIR, control=control, lanes=lanes
        )


@given(st.lists(LOGS, max_size=6))
def test_each_partition_is_looked_at_by_itself_with_the_same_result(logs):
    control = EMPTY.fold([*START, *(entry for log in logs for entry in log)])
    found = {
        (spec.link, work.topic, work.partition): work
        for spec in lane_specs(plan=PLAN, pair=PAIR, control=control, lanes=range(5)).values()
        for work in spec.work
    }
    layout = control.layout("east")
    for flow in FLOWS:
        for record in control.topics("east", flow.link):
            for partition in range(3):
                place = (flow.link, record.topic, partition)
                expected = (
                    layout is not None
                    and layout.state == "stable"
                    and partition < record.working_partitions
                    and not control.paused(flow.id, *place)
                    and not control.copied_by_spark("east", *place)
                )
                assert (place in found) == expected
                if expected:
                    gap = control.gap("east", record.topic, partition)
                    seed = control.seed("east", *place)
                    assert found[place].accept_gap == (gap.token if gap else "")
                    assert found[place].backfill_run == (seed.run if seed else "")


def test_a_pause_of_one_topic_leaves_the_work_on_all_others_untouched():
    specs, control = LaneSpecs(), EMPTY.fold(START)
    before = specs.of(PLAN, PAIR, control, frozenset(range(5)), at=AT)
    paused = control.fold([Pause(flow="east->west", topic="t1", at_ms=1, by="test").encode()])
    after = specs.of(PLAN, PAIR, paused, frozenset(range(5)), at=AT)
    known = {id(work) for spec in before.values() for work in spec.work}
    kept = [work for spec in after.values() for work in spec.work]
    assert {work.topic for work in kept} == {"t0", "t2"}
    assert all(id(work) in known for work in kept)


AT = 1_000.0


def worker(name, *, seconds_ago=1.0, **fields):
    return WorkerRecord(source="east", id=name, at_ms=round((AT - seconds_ago) * 1000), **fields)


@pytest.mark.parametrize(
    ("workers", "reason", "engine"),
    [
        ([], "auto", "batches"),
        ([worker("a", tells_batches=True)], "auto", "batches"),
        ([worker("a", tells_batches=True), worker("b")], "auto", "records"),
        ([worker("a", tells_batches=True), worker("b")], "", "batches"),  # asked for by name
        ([worker("b", seconds_ago=60)], "auto", "batches"),
    ],
)
def test_auto_has_no_whole_batches_beside_workers_that_do_not_know_them(workers, reason, engine):
    policy = replace(POLICY, engine="batches", engine_reason=reason, provenance="path")
    pair = replace(PAIR, flows=tuple(replace(flow, policy=policy) for flow in FLOWS))
    control = EMPTY.fold([*START, *(each.encode() for each in workers)])
    specs = LaneSpecs().of(PLAN, pair, control, frozenset({0, 3}), at=AT)
    assert len(specs) == 2
    provenance = "full" if engine == "records" else "path"
    for spec in specs.values():
        assert (spec.settings.engine, spec.settings.provenance) == (engine, provenance)


def test_lanes_go_over_to_whole_batches_when_the_last_older_worker_has_gone():
    policy = replace(POLICY, engine="batches", engine_reason="auto", provenance="path")
    pair = replace(PAIR, flows=tuple(replace(flow, policy=policy) for flow in FLOWS))
    specs, old = LaneSpecs(), worker("old")
    engines = []
    control = EMPTY.fold(START)
    for log in ([], [old.encode()], [old.tombstone()]):
        control = control.fold(log)
        engines.append(specs.of(PLAN, pair, control, frozenset({0}), at=AT)[0].settings.engine)
    assert engines == ["batches", "records", "batches"]
    control = control.fold([old.encode()])
    later = specs.of(PLAN, pair, control, frozenset({0}), at=AT + 60)
    assert later[0].settings.engine == "batches"  # it was killed, and has been silent since
