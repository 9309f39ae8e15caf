"""Which ranges are copied, what lanes may do meanwhile, and how a bounded copy counts; no broker."""

from array import array
from dataclasses import replace

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from replicator.control.backfill.ranges import BackfillFacts, backfill_record, plan_ranges
from replicator.control.backfill.spark_process import asked_by_controller
from replicator.control.backfill.stream_partitions import partitions_left_behind, partitions_to_take
from replicator.control.lanes.lane_specs import lane_specs
from replicator.control.reconcile.actions import WriteRecord
from replicator.control.reconcile.cluster_view import ClusterView, TopicFacts
from replicator.control.reconcile.decide import reconcile
from replicator.control.reconcile.initial_backfill import CONTROLLER
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.records.pair_records import (
    BackfillRecord,
    Block,
    Layout,
    Pause,
    TopicRecord,
)
from replicator.control.records.worker_records import FlowRates, WorkerRecord
from replicator.control.store.state import EMPTY
from replicator.dataplane.progress.partition_state import PartitionState, partition_table
from replicator.dataplane.session.bounded_copy import TOTALS, LatestPerKeyFilter, RangeTotalsEngine
from replicator.dataplane.transport.spec import PartitionWork, handed_over
from replicator.formats.checkpoint import Checkpoint
from replicator.policy.values import BulkSync, LinkPolicy, Selection, StartFrom
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, Plan

FLOW = FlowPlan("link", "east", "west", LinkPolicy(Selection(("*",)), Selection()), ("west",))
PLAN = Plan(
    "shop",
    (ClusterPlan("east", ("e:1",)), ClusterPlan("west", ("w:1",))),
    (LinkPlan("link", "active-passive", ("east", "west"), "east", None, (FLOW,)),),
    "hash",
)
PAIR = PLAN.pairs[0]
LAYOUT = Layout(
    source="east", epoch=1, state="stable", blocks=(Block(link="link", first=0, count=2),), total=2
)
TOPIC = TopicRecord(
    source="east", link="link", topic="orders", target="orders", topic_id="a", partitions=3,
    target_partitions=3, state="active", activated=True,
)  # fmt: skip
SEED = BackfillRecord(
    source="east", link="link", topic="orders", partition=0, state="seeding", run="job.1",
    start=5, end=50,
)  # fmt: skip


def control(*records):
    return EMPTY.fold([record.encode() for record in (LAYOUT, TOPIC, *records)])


def facts(checkpoints=(), **fields):
    keys = [("orders", number) for number in range(3)]
    return BackfillFacts(
        **{
            "starts": dict.fromkeys(keys, 0),
            "log_starts": dict.fromkeys(keys, 0),
            "ends": dict.fromkeys(keys, 100),
            "sizes": dict.fromkeys(keys, 10_000),
            "checkpoints": {(one.topic, one.partition): one for one in checkpoints},
            **fields,
        }
    )


def ranges(*records, flow=FLOW, checkpoints=(), **fields):
    found = plan_ranges([flow], control(*records), facts(checkpoints, **fields))
    return {one.partition: (one.position, one.end, one.size) for one in found}


def test_a_range_begins_at_the_checkpoint_and_ends_where_the_log_ended():
    copied = Checkpoint("orders", 1, 40)
    caught_up = Checkpoint("orders", 2, 100)
    assert ranges(checkpoints=[copied, caught_up]) == {0: (0, 100, 10_000), 1: (40, 100, 6_000)}


def test_a_flow_that_starts_at_the_end_has_no_history_to_copy():
    latest = replace(FLOW, policy=replace(FLOW.policy, start_from=StartFrom("latest")))
    assert ranges(flow=latest) == {}


def test_a_partition_that_is_paused_or_stopped_is_left_out():
    stopped = Checkpoint("orders", 1, 40, problem="TRUNCATED")
    paused = Pause(flow="east->west", topic="orders", partition=0, at_ms=0, by="me")
    assert ranges(paused, checkpoints=[stopped]) == {2: (0, 100, 10_000)}


def test_an_unfinished_range_keeps_its_end_and_goes_on_at_its_checkpoint():
    found = ranges(SEED, checkpoints=[Checkpoint("orders", 0, 20)])
    assert found[0] == (20, 50, 3_000)


def test_a_range_that_a_stream_holds_is_not_a_bulk_runs():
    assert 0 not in ranges(SEED.model_copy(update={"purpose": "stream"}))


def test_the_largest_range_comes_first():
    found = plan_ranges(
        [FLOW], control(), facts(sizes={("orders", 0): 1, ("orders", 1): 9, ("orders", 2): 5})
    )
    assert [one.partition for one in found] == [1, 2, 0]


def test_a_declaration_names_the_run_and_the_range():
    (one, *_) = plan_ranges([FLOW], control(), facts())
    seed = backfill_record(one, run="job.2", at_ms=7, by="me")
    assert (seed.state, seed.run, seed.start, seed.end) == ("seeding", "job.2", 0, 100)


def worked_on(state, plan=PLAN):
    specs = lane_specs(plan=plan, pair=plan.pairs[0], control=state, lanes=[0, 1])
    return {(item.partition, item.backfill_run) for spec in specs.values() for item in spec.work}


@pytest.mark.parametrize("state", ["seeding", "releasing"])
def test_lanes_leave_a_partition_alone_until_its_seed_is_done(state):
    held = SEED.model_copy(update={"state": state})
    assert worked_on(control(held)) == {(1, ""), (2, "")}
    done = SEED.model_copy(update={"state": "done"})
    assert worked_on(control(done)) == {(0, "job.1"), (1, ""), (2, "")}


def test_lanes_have_nothing_to_do_for_a_flow_that_spark_runs():
    streamed = replace(FLOW, policy=replace(FLOW.policy, runtime="spark"))
    link = replace(PLAN.links[0], flows=(streamed,))
    assert worked_on(control(), replace(PLAN, links=(link,))) == set()


def spec(*work):
    (one,) = lane_specs(plan=PLAN, pair=PAIR, control=control(), lanes=[0]).values()
    return replace(
        one, work=tuple(PartitionWork("orders", n, "orders", "", backfill_run=s) for n, s in work)
    )


@pytest.mark.parametrize(
    ("old", "new", "outdated"),
    [
        ([(0, "")], [(0, ""), (1, "")], False),
        ([(0, "")], [(0, ""), (1, "job.1")], True),
        ([(0, "job.1")], [(0, "job.1")], False),
        ([(0, "job.1")], [(0, "job.2")], True),
        ([(0, "job.1")], [(0, "")], False),
    ],
)
def test_a_lane_reads_checkpoints_again_when_another_writer_wrote_one(old, new, outdated):
    assert handed_over(spec(*old), spec(*new)) is outdated


def snapshot(state, **fields):
    source = {"orders": TopicFacts("a", 3, 1)}
    sizes = {name: facts.partitions for name, facts in source.items()}
    return PairSnapshot(
        at_ms=1, aliases=("east", "west"), source=ClusterView().listed(sizes).described(source),
        target=ClusterView().listed(sizes).described({"orders": TopicFacts("b", 3, 1)}),
        target_brokers=1, control=state, **fields,
    )  # fmt: skip


def test_lanes_do_not_change_while_spark_is_at_work():
    four = replace(FLOW, policy=replace(FLOW.policy, lanes=4))
    pair = replace(PAIR, flows=(four,))
    assert reconcile(pair, snapshot(control())).layout.change == "fenced"
    waits = reconcile(pair, snapshot(control(SEED)))
    assert (waits.layout.change, waits.layout.layout) == ("none", LAYOUT)
    assert "waits for Spark" in waits.layout.reason
    done = SEED.model_copy(update={"state": "done"})
    assert reconcile(pair, snapshot(control(done))).layout.change == "fenced"


def test_a_change_of_lanes_that_has_begun_is_finished_first():
    changing = LAYOUT.model_copy(update={"state": "changing"})
    assert reconcile(PAIR, snapshot(control(changing, SEED))).layout.change == "fenced"


def test_a_topic_does_not_move_to_another_link_while_spark_is_at_work():
    other = replace(FLOW, link="other")
    pair = replace(PAIR, flows=(other,))
    decision = reconcile(pair, snapshot(control(SEED)))
    assert not [a for a in decision.actions if getattr(a, "kind", "") == "replicate"]


# -- by itself ---------------------------------------------------------------------------------


def bulk(mode, **fields):
    wanted = replace(FLOW, policy=replace(FLOW.policy, bulk_sync=BulkSync(mode, 1_000), **fields))
    return replace(PAIR, flows=(wanted,))


def seeds_of(pair, histories, *records):
    state = EMPTY.fold([record.encode() for record in (LAYOUT, *records)])
    decision = reconcile(pair, snapshot(state, histories=histories))
    written = [a.record for a in decision.actions if isinstance(a, WriteRecord)]
    assert any(isinstance(record, TopicRecord) for record in written) or records
    return [(r.partition, r.state, r.by) for r in written if isinstance(r, BackfillRecord)]


LARGE = {("orders", 0): 900, ("orders", 2): 200}


def test_history_above_the_threshold_is_declared_with_the_topic_itself():
    assert seeds_of(bulk("auto"), LARGE) == [
        (0, "seeding", CONTROLLER), (2, "seeding", CONTROLLER),
    ]  # fmt: skip


def test_history_below_the_threshold_is_the_lanes_own():
    small = {("orders", 0): 999}
    assert seeds_of(bulk("auto"), small) == []
    assert seeds_of(bulk("always"), small) == [(0, "seeding", CONTROLLER)]
    assert seeds_of(bulk("never"), small) == []


def test_a_topic_that_was_copied_before_is_not_seeded_by_itself():
    assert seeds_of(bulk("always"), LARGE, TOPIC) == []


def test_a_flow_that_begins_at_the_end_or_on_spark_is_not_seeded():
    assert seeds_of(bulk("always", start_from=StartFrom("latest")), LARGE) == []
    assert seeds_of(bulk("always", runtime="spark"), LARGE) == []


def test_workers_see_to_what_the_controller_asked_for_and_to_nothing_else():
    by_controller = SEED.model_copy(update={"by": CONTROLLER})
    assert asked_by_controller(control(by_controller), "east")
    assert not asked_by_controller(control(SEED), "east")
    assert not asked_by_controller(
        control(by_controller.model_copy(update={"state": "done"})), "east"
    )


# -- streams -----------------------------------------------------------------------------------

STREAMED = replace(FLOW, policy=replace(FLOW.policy, runtime="spark"))
HELD = SEED.model_copy(update={"purpose": "stream", "run": "stream.1"})


def test_a_stream_takes_what_it_does_not_hold_yet():
    taken = partitions_to_take([STREAMED], control(HELD), run="stream.1", by="me", at_ms=1)
    assert [(s.partition, s.purpose, s.run) for s in taken] == [
        (1, "stream", "stream.1"), (2, "stream", "stream.1"),
    ]  # fmt: skip
    assert len(partitions_to_take([STREAMED], control(HELD), run="stream.2", by="me", at_ms=1)) == 3
    assert partitions_to_take([FLOW], control(), run="stream.1", by="me", at_ms=1) == ()


def test_workers_take_back_what_a_stream_left_behind_once_the_flow_is_theirs():
    alive = WorkerRecord(
        source="east", id="spark-host-1", at_ms=100_000, flows=(FlowRates(link="link"),)
    )
    streamed = replace(PAIR, flows=(STREAMED,))
    assert partitions_left_behind(PAIR, control(HELD), now_ms=0) == (HELD,)
    assert partitions_left_behind(PAIR, control(HELD, alive), now_ms=110_000) == ()
    assert partitions_left_behind(PAIR, control(HELD, alive), now_ms=120_000) == (HELD,)
    assert partitions_left_behind(streamed, control(HELD), now_ms=0) == ()
    assert partitions_left_behind(PAIR, control(SEED), now_ms=0) == ()


# -- counting ----------------------------------------------------------------------------------


class Message:
    """A consumed record as an engine sees it."""

    def __init__(self, offset, key=None, value=b"", event=False):
        self._offset, self._key, self._value, self._event = offset, key, value, event

    def error(self):
        return "end" if self._event else None

    def offset(self):
        return self._offset

    def key(self):
        return self._key

    def value(self):
        return self._value


class Taker:
    """An engine that takes records up to a place, like one that a policy stops."""

    def __init__(self, state, stop_at=10**9):
        self.state, self.stop_at, self.taken = state, stop_at, []

    def copy(self, messages):
        for message in messages:
            if message.error() is not None:
                self.state.position = max(self.state.position, message.offset())
            elif self.state.position <= message.offset() < self.stop_at:
                self.taken.append(message.offset())
                self.state.position = message.offset() + 1
        yield from ()


def state_at(position):
    state = PartitionState(
        PartitionWork("orders", 0, "orders", ""), source_alias="east", provenance="full"
    )
    state.position = position
    return state


@given(st.lists(st.tuples(st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=5))),
       st.integers(1, 7))  # fmt: skip
def test_the_totals_are_the_same_however_records_come_in_batches(records, batch):
    messages = [Message(5 + n, key, value) for n, (key, value) in enumerate(records)]
    state = state_at(5)
    engine = RangeTotalsEngine(Taker(state), partition_table([state]), end=99, now_ms=3)
    for start in range(0, len(messages), batch):
        list(engine.copy(messages[start : start + batch]))
    whole = b"".join(part or b"" for pair in records for part in pair)
    if records:
        totals = state.extra[TOTALS]
        assert (totals["records"], totals["bytes"], totals["crc"]) == (
            len(records), len(whole), crc32c(whole),
        )  # fmt: skip
        assert (totals["start"], totals["began"]) == (5, 3)


def test_the_totals_count_what_was_read_and_nothing_before_or_behind_it():
    state = state_at(5)
    engine = RangeTotalsEngine(Taker(state, stop_at=8), partition_table([state]), end=99, now_ms=0)
    list(engine.copy([Message(n, b"k", b"v") for n in range(3, 12)]))
    assert state.extra[TOTALS]["records"] == 3


def test_totals_go_on_where_a_checkpoint_kept_them():
    state = state_at(5)
    table = partition_table([state])
    list(RangeTotalsEngine(Taker(state), table, end=99, now_ms=1).copy([Message(5, None, b"a")]))
    again = state_at(6)
    again.extra = dict(state.extra)
    engine = RangeTotalsEngine(Taker(again), partition_table([again]), end=99, now_ms=2)
    list(engine.copy([Message(6, None, b"b")]))
    totals = again.extra[TOTALS]
    assert (totals["records"], totals["crc"], totals["began"]) == (2, crc32c(b"ab"), 1)


def test_a_range_with_the_latest_record_per_key_counts_what_it_left_out_once_it_is_past_it():
    state = state_at(0)
    table = partition_table([state])
    taker = Taker(state)
    engine = LatestPerKeyFilter(
        RangeTotalsEngine(taker, table, end=10, now_ms=0), table, keep=array("q", [3, 9]), end=10
    )
    list(engine.copy([Message(n, b"k") for n in range(6)]))
    assert (taker.taken, state.dropped) == ([3], 3)
    list(engine.copy([Message(n, b"k") for n in range(6, 12)]))
    assert (taker.taken, state.dropped) == ([3, 9, 10, 11], 8)
    assert state.extra[TOTALS]["superseded"] == 8
