from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from replicator.formats.lane_stats import LaneStats
from replicator.observability.totals import Totals

BUCKETS = 4


@dataclass(frozen=True)
class Step:
    """What happens to a lane between two messages."""

    restart: bool
    new_process: bool
    records: int
    loops: int
    buckets: tuple[int, ...]


STEPS = st.lists(
    st.builds(
        Step,
        restart=st.booleans(),
        new_process=st.booleans(),
        records=st.integers(0, 1000),
        loops=st.integers(0, 5),
        buckets=st.tuples(*[st.integers(0, 50)] * BUCKETS),
    ),
    max_size=30,
)
FRESH = LaneStats(
    pair="a->b",
    link="l",
    lane=0,
    state="running",
    reason="",
    latency_buckets=(0,) * BUCKETS,
    pid=1,
)


def add(lane, step):
    return replace(
        lane,
        records=lane.records + step.records,
        commits=lane.commits + 1,
        dropped={"loop": lane.dropped.get("loop", 0) + step.loops},
        latency_buckets=tuple(
            a + b for a, b in zip(lane.latency_buckets, step.buckets, strict=True)
        ),
    )


@given(STEPS)
def test_totals_equal_what_the_lane_did_over_all_its_lives(steps):
    totals = Totals(buckets=BUCKETS, detail=False)
    lane, pid = FRESH, 1
    done = loops = 0
    buckets = [0] * BUCKETS
    for step in steps:
        if step.restart or step.new_process:
            pid += step.new_process
            # A new life reports itself once before it has done anything.
            lane = replace(FRESH, pid=pid)
            totals.observe(lane)
        lane = add(lane, step)
        totals.observe(lane)
        done += step.records
        loops += step.loops
        buckets = [a + b for a, b in zip(buckets, step.buckets, strict=True)]
        flow = totals.flow("l", "a->b")
        assert flow.records == done
        assert flow.dropped.get("loop", 0) == loops
        assert flow.latency_buckets == buckets


LANES = st.builds(
    lambda pid, lane, records, size, loops, buckets: replace(
        FRESH,
        pid=pid,
        lane=lane,
        records=records,
        bytes=size,
        dropped={"loop": loops} if loops else {},
        latency_buckets=buckets,
    ),
    st.integers(1, 2),
    st.integers(0, 2),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 3),
    st.lists(st.integers(0, 3), max_size=BUCKETS + 2).map(tuple),
)


@given(st.lists(LANES, max_size=40))
def test_totals_never_go_back_with_any_claims_of_lanes(observations):
    totals = Totals(buckets=BUCKETS, detail=False)
    before = (0, 0, 0, [0] * BUCKETS)
    for lane in observations:
        totals.observe(lane)
        flow = totals.flow("l", "a->b")
        now = (flow.records, flow.bytes, flow.dropped.get("loop", 0), list(flow.latency_buckets))
        assert now[:3] >= before[:3]
        assert all(a >= b for a, b in zip(now[:3], before[:3], strict=True))
        assert all(a >= b for a, b in zip(now[3], before[3], strict=True))
        before = now
