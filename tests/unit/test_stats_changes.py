"""Lane statistics travel as differences, and the worker always has the whole."""

import socket
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_lab import SessionLab

from replicator.dataplane.process.process_pool import LanePool
from replicator.dataplane.process.spawn import LaneChild
from replicator.dataplane.transport.messages import LaneStopped, Stats, decode_event, encode
from replicator.dataplane.transport.stats_changes import LaneChange, lane_change, with_change
from replicator.formats.lane_stats import LATENCY_BOUNDS_SECONDS, LaneStats, PartitionStats
from replicator.testing import wait_until

SPEC = SessionLab().spec
PAIR = SPEC.pair
BUCKETS = (0,) * (len(LATENCY_BOUNDS_SECONDS) + 1)


def partition(number: int, position: int = 0) -> PartitionStats:
    return PartitionStats(
        "orders", number, "orders", "replicating", position, position, -1, position, 0
    )


def lane(*partitions: PartitionStats, commits: int = 0) -> LaneStats:
    return LaneStats(
        pair=PAIR, link="link", lane=0, state="running", reason="copying",
        partitions=partitions, commits=commits, latency_buckets=BUCKETS, commit_buckets=BUCKETS,
    )  # fmt: skip


def as_sent(change: LaneChange) -> LaneChange:
    event = decode_event(encode(Stats((change,))))
    assert isinstance(event, Stats)
    return event.lanes[0]


def test_a_second_of_ten_thousand_idle_partitions_is_a_tiny_message():
    before = lane(*map(partition, range(10_000)))
    idle = replace(before, commits=1)
    assert len(encode(Stats((lane_change(None, before),)))) > 1_000_000
    assert len(encode(Stats((lane_change(before, idle),)))) < 1000

    moved = replace(idle, partitions=(*idle.partitions[:-1], partition(9_999, 5)))
    change = lane_change(idle, moved)
    assert change.stats.partitions == (partition(9_999, 5),)
    assert len(encode(Stats((change,)))) < 1500


PICTURES = st.lists(st.dictionaries(st.integers(0, 4), st.integers(0, 2)), min_size=1)


@given(PICTURES)
def test_the_receiver_has_the_whole_after_every_change(pictures):
    sent = kept = None
    for commits, positions in enumerate(pictures):
        now = lane(*(partition(*each) for each in positions.items()), commits=commits)
        kept = with_change(kept, as_sent(lane_change(sent, now)))
        sent = now
        assert kept is not None
        assert replace(kept, partitions=()) == replace(now, partitions=())
        assert set(kept.partitions) == set(now.partitions)


def test_a_difference_is_of_no_use_to_a_receiver_without_the_whole():
    change = lane_change(lane(partition(0)), lane(partition(0, 1)))
    assert with_change(None, change) is None


class StandIn:
    """The process of a lane child, as far as a pool asks; the test speaks for it on the socket."""

    pid = 1

    def wait(self, _timeout=None):
        return 0

    def poll(self):
        return None


@pytest.fixture
def pool_and_socket():
    ours, theirs = socket.socketpair()
    events = []
    pool = LanePool([LaneChild(StandIn(), ours)], processes=1, on_event=events.append)
    with theirs:
        yield pool, theirs, events
        pool.close()


def test_a_pool_keeps_the_whole_and_starts_over_with_each_start_of_a_lane(pool_and_socket):
    pool, lane_process, events = pool_and_socket
    pool.start(SPEC)
    first = lane(partition(0), partition(1))
    second = lane(partition(0), partition(1, 7), commits=1)
    lane_process.sendall(encode(Stats((lane_change(None, first),))))
    lane_process.sendall(encode(Stats((lane_change(first, second),))))
    wait_until(lambda: pool.stats() == [second], timeout_seconds=20, describe=pool.stats)

    stopped = LaneStopped(SPEC.pair, 0, 0, fenced=False, reason="stopped")
    lane_process.sendall(encode(stopped))
    wait_until(lambda: events == [stopped], timeout_seconds=20, describe="the end of the lane")
    pool.start(SPEC)
    late = lane(partition(0), partition(1, 8), commits=2)
    lane_process.sendall(encode(Stats((lane_change(second, late),))))
    fresh = lane(partition(0))
    lane_process.sendall(encode(Stats((lane_change(None, fresh),))))
    wait_until(lambda: pool.stats() == [fresh], timeout_seconds=20, describe=pool.stats)
