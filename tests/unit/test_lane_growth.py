"""Lanes that follow partitions, workers and load."""

from dataclasses import replace

import pytest

from replicator.control.lanes.lane_growth import LANE_BYTES, grown_lanes
from replicator.control.lanes.layout import decide_layout
from replicator.control.records.pair_records import Block, Layout
from replicator.control.records.worker_records import FlowRates, MemoryPart, WorkerRecord
from replicator.control.worker.lanes_behind import BEHIND_SECONDS, LanesBehind
from replicator.formats.lane_stats import LaneStats, PartitionStats
from replicator.policy.capacity.lane_assignment import auto_lanes
from replicator.policy.values import LinkPolicy, Selection
from replicator.topology.plan import ClusterPlan, FlowPlan, PairPlan

NOW = 1_000_000


def pair(**policy):
    flow = FlowPlan(
        "one", "east", "west", LinkPolicy(Selection(), Selection(), **policy), ("west",)
    )
    return PairPlan(ClusterPlan("east", ("e",)), ClusterPlan("west", ("w",)), (flow,))


def layout(count, **fields):
    blocks = (Block(link="one", first=0, count=count),)
    return Layout(
        **{
            "source": "east",
            "epoch": 1,
            "state": "stable",
            "blocks": blocks,
            "total": count,
            **fields,
        }
    )


def workers(count, *, behind=0, processes=2, lanes_fit=256):
    memory = MemoryPart(records_bytes=lanes_fit * LANE_BYTES, lane_bytes=0)
    return [
        WorkerRecord(
            source="east", id=f"w-{number}", at_ms=NOW, processes=processes, memory=memory,
            flows=(FlowRates(link="one", lanes_behind=behind if not number else 0),),
        )
        for number in range(count)
    ]  # fmt: skip


def grown(held, *, partitions, at_work=(), policy=None, **fields):
    found = grown_lanes(
        pair(**(policy or {})), layout(held, **fields),
        partitions={"one": partitions}, workers=at_work, now_ms=NOW,
    )  # fmt: skip
    return found["one"].lanes if found else None


@pytest.mark.parametrize(
    ("partitions", "shared_by", "lanes"),
    [(0, 1, 1), (3, 3, 3), (2_000, 3, 8), (12_500, 3, 50), (12_500, 50, 100), (10**6, 1, 256)],
)
def test_auto_has_lanes_for_partitions_and_workers(partitions, shared_by, lanes):
    assert auto_lanes(partitions, shared_by) == lanes


@pytest.mark.parametrize(
    ("held", "partitions", "count", "lanes"),
    [
        (1, 1, 1, None),
        (1, 8, 0, None),  # for nobody
        (1, 8, 1, 8),  # applied before the source had topics
        (7, 8, 1, None),  # a small difference is not worth a fence
        (8, 2_000, 5, None),
        (8, 2_000, 6, 12),
        (8, 12_500, 2, 50),
        (100, 12_500, 2, None),  # never fewer
    ],
)
def test_lanes_follow_partitions_and_workers_upwards(held, partitions, count, lanes):
    assert grown(held, partitions=partitions, at_work=workers(count)) == lanes


@pytest.mark.parametrize(
    ("held", "partitions", "at_work", "lanes"),
    [
        (8, 100, workers(2, behind=1, processes=4), 16),
        (8, 100, workers(2, processes=4), None),
        (8, 100, workers(2, behind=1, processes=1), None),  # they would share the same cores
        (8, 100, workers(2, behind=1, processes=4, lanes_fit=5), None),  # and no memory
        (8, 8, workers(2, behind=1, processes=4), None),  # nothing to divide
        (64, 5_000, workers(8, behind=3, processes=8), 128),
    ],
)
def test_a_lane_that_is_behind_for_a_minute_is_divided_where_cores_and_memory_allow(
    held, partitions, at_work, lanes
):
    assert grown(held, partitions=partitions, at_work=at_work) == lanes


def test_there_is_one_change_a_minute_and_none_where_the_file_says_how_many():
    for kept in (
        {"at_ms": NOW - 59_000},
        {"state": "changing"},
        {"policy": {"lanes": 1}},
        {"policy": {"runtime": "spark"}},
    ):
        assert grown(1, partitions=100, at_work=workers(1), **kept) is None
    assert grown(1, partitions=100, at_work=workers(1), at_ms=NOW - 60_000) == 8


def test_growth_is_a_fenced_change_that_says_when_and_why():
    current = layout(1)
    more = grown_lanes(
        pair(), current, partitions={"one": 100}, workers=workers(1), now_ms=NOW
    )  # fmt: skip
    decision = decide_layout(pair(), current, partitions={"one": 100}, grown=more, now_ms=NOW)
    assert decision.change == "fenced"
    laid_out = decision.layout
    assert (laid_out.epoch, laid_out.total, laid_out.at_ms) == (2, 8, NOW)
    assert laid_out.reason == "lanes change: one from 1 to 8 for 100 partitions and 1 worker"
    # Interrupted, it is finished as it was meant.
    begun = laid_out.model_copy(update={"state": "changing"})
    again = decide_layout(pair(), begun, partitions={"one": 100}, now_ms=NOW + 1)
    assert (again.change, again.layout.blocks) == ("fenced", laid_out.blocks)


PARTITION = PartitionStats("t", 0, "t", "replicating", 0, 0, -1, 0, 0)


def lane(position, end, *, partitions=2, **fields):
    parts = tuple(
        replace(PARTITION, partition=number, position=position, source_end=end)
        for number in range(partitions)
    )
    return LaneStats("east->west", "one", 0, "running", "", partitions=parts, **fields)


def behind(*steps):
    """How many lanes count as behind, after steps that are 5 s apart."""
    meter, found = LanesBehind(), 0
    for number, stats in enumerate(steps):
        found = meter.count([stats], now=5.0 * number)["one"]
    return found


STEPS = round(BEHIND_SECONDS / 5) + 2


def test_a_lane_is_behind_once_it_was_for_a_minute_without_a_break():
    slow = [lane(1_000 * number, 10**6) for number in range(STEPS)]
    assert behind(*slow[:-2]) == 0
    assert behind(*slow) == 1
    assert behind(*slow[:5], lane(5_000, 5_000), *slow[6:]) == 0


@pytest.mark.parametrize(
    "stats",
    [
        lambda number: lane(1_000 * number, 1_000 * number + 500),  # what waits is soon copied
        lambda _: lane(7, 10**6),  # stands still: more lanes would not help
        lambda number: lane(1_000 * number, 10**6, partitions=1),
        lambda number: lane(1_000 * number, 10**6, throttle_wait_seconds=float(number)),
        lambda number: replace(lane(1_000 * number, 10**6), state="recovering"),
    ],
)
def test_who_is_not_helped_by_more_lanes_is_not_behind(stats):
    assert behind(*map(stats, range(STEPS))) == 0
