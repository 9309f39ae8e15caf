"""What the group on the source is told of a lane's positions, when, and what is said where it takes none."""

import struct
import threading
import time
from collections import deque

import pytest
from tiny_broker import API_VERSIONS, FIND_COORDINATOR, OFFSET_COMMIT, LoopbackBroker

from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.progress.shown_positions import (
    ALL_AGAIN_SECONDS,
    PROGRESS_SECONDS,
    ShownPositions,
)
from replicator.dataplane.session import progress_beside
from replicator.dataplane.session.progress_beside import TOLD_SECONDS, ProgressBeside
from replicator.dataplane.transport.spec import PartitionWork
from replicator.errors import GroupInUseError, NotAuthorizedError, UnreachableError
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.protocol import OffsetCommitRequest
from replicator.wire.groups.group_positions import GroupPositions

GROUP = "replicator.lab.west"
ORDERS = {("orders", 0): 5, ("orders", 1): 7}
UNKNOWN_TOPIC, LOADING, NOT_COORDINATOR, UNKNOWN_MEMBER = 3, 14, 16, 25
TOPIC_REFUSED, GROUP_REFUSED = 29, 30


class Coordinator(LoopbackBroker):
    """Finds itself, and takes positions unless told otherwise.

    Attributes:
        stored: what it took, by topic and partition.
        asked: keys of the requests, in order.
        says: codes for the next commits, a number for all positions or one for each of some.
        free: while it is not set, commits wait for their answer.
    """

    versions = ((API_VERSIONS, 0, 0), (FIND_COORDINATOR, 1, 1), (OFFSET_COMMIT, 2, 2))

    def __init__(self):
        self.stored = {}
        self.asked = []
        self.says = deque()
        self.connections = 0
        self.hangs_up_at = None
        self.free = threading.Event()
        self.free.set()
        self._request = None
        super().__init__()

    def connected(self):
        self.connections += 1
        return lambda key, _version: key != OFFSET_COMMIT or self.connections != self.hangs_up_at

    def heard(self, request):
        key = int.from_bytes(request[:2], "big")
        self.asked.append(key)
        if key == OFFSET_COMMIT:
            self._request = OffsetCommitRequest.decode(request, version=2, header=True)

    def answer(self, key):
        if key == API_VERSIONS:
            return super().answer(key)
        if key == FIND_COORDINATOR:
            return struct.pack(">ihhih9si", 0, 0, -1, 1, 9, b"127.0.0.1", self.address[1])
        request, codes = self._request, self.says.popleft() if self.says else 0
        self.free.wait(20)
        group = (request.group_id, request.generation_id_or_member_epoch, request.member_id)
        assert group == (GROUP, -1, "")
        topics = []
        for topic in request.topics:
            parts = []
            for each in topic.partitions:
                place = (topic.name, each.partition_index)
                code = codes.get(place, 0) if isinstance(codes, dict) else codes
                if not code:
                    self.stored[place] = each.committed_offset
                parts.append(struct.pack(">ih", each.partition_index, code))
            name = topic.name.encode()
            head = struct.pack(f">h{len(name)}si", len(name), name, len(parts))
            topics.append(head + b"".join(parts))
        return struct.pack(">i", len(topics)) + b"".join(topics)

    @property
    def commits(self):
        return self.asked.count(OFFSET_COMMIT)


@pytest.fixture
def coordinator():
    coordinator = Coordinator()
    yield coordinator
    coordinator.free.set()
    coordinator.stop()


@pytest.fixture
def group(coordinator):
    east = ClusterPlan("east", (f"127.0.0.1:{coordinator.address[1]}",))
    group = GroupPositions(east, GROUP, client_id="c", doing=f"show progress in group {GROUP}")
    yield group
    group.close()


def partition(number, committed):
    work = PartitionWork("orders", number, "orders", "")
    state = PartitionState(work, source_alias="east", provenance="path")
    state.position = state.committed = committed
    return state


# -- what is shown, and when ----------------------------------------------------------------------


def test_positions_are_due_once_per_interval():
    positions = ShownPositions(100.0)
    times = [100.0, 104.9, 105.0, 105.1, 109.9, 110.0, 130.0, 134.9]
    assert [positions.due(now) for now in times] == [
        False, False, True, False, False, True, True, False,
    ]  # fmt: skip


def test_what_is_stored_is_shown_and_nothing_beyond_it():
    positions, state = ShownPositions(0.0), partition(0, 5)
    state.position = 9
    assert positions.moved([state, partition(1, -1)]) == {("orders", 0): 5}


def test_only_what_moved_is_shown_again_also_where_the_target_lost_records():
    positions, first, second = ShownPositions(0.0), partition(0, 5), partition(1, 7)
    positions.shown(positions.moved([first, second]))
    assert positions.moved([first, second]) == {}
    second.committed = 6
    assert positions.moved([first, second]) == {("orders", 1): 6}


def test_a_stopped_partition_shows_what_it_showed():
    positions, state = ShownPositions(0.0), partition(0, 5)
    state.problem = "TRUNCATED"
    assert positions.moved([state]) == {}


def test_everything_is_shown_again_now_and_then():
    """Brokers remove positions of partitions that rest, and somebody may delete the group."""
    positions, states = ShownPositions(0.0), [partition(0, 5), partition(1, 7)]
    positions.shown(positions.moved(states))
    assert positions.due(ALL_AGAIN_SECONDS - PROGRESS_SECONDS)
    assert positions.moved(states) == {}
    assert positions.due(ALL_AGAIN_SECONDS)
    assert positions.moved(states) == ORDERS


# -- the group's coordinator ----------------------------------------------------------------------


def test_positions_are_stored_over_one_connection(coordinator, group):
    assert group.store(ORDERS, timeout_seconds=5) == {}
    assert group.store({("orders", 0): 8}, timeout_seconds=5) == {}
    assert coordinator.stored == {("orders", 0): 8, ("orders", 1): 7}
    assert coordinator.asked.count(FIND_COORDINATOR) == 1
    assert coordinator.connections == 2


@pytest.mark.parametrize("code", [LOADING, NOT_COORDINATOR])
def test_a_coordinator_that_moves_or_loads_is_looked_up_again(coordinator, group, code):
    coordinator.says.extend([code, code])
    assert group.store(ORDERS, timeout_seconds=5) == {}
    assert coordinator.stored == ORDERS
    assert coordinator.asked.count(FIND_COORDINATOR) == coordinator.commits == 3


def test_a_connection_that_brokers_ended_meanwhile_is_made_again(coordinator, group):
    coordinator.hangs_up_at = 2  # the first one to the coordinator
    assert group.store(ORDERS, timeout_seconds=5) == {}
    assert coordinator.stored == ORDERS


def test_a_coordinator_without_an_answer_is_given_up_in_time(coordinator, group):
    coordinator.free.clear()
    began = time.monotonic()
    with pytest.raises(UnreachableError):
        group.store(ORDERS, timeout_seconds=0.3)
    assert time.monotonic() - began < 3


def test_a_group_that_has_members_is_named_with_what_to_do(coordinator, group):
    coordinator.says.append(UNKNOWN_MEMBER)
    with pytest.raises(GroupInUseError) as refused:
        group.store(ORDERS, timeout_seconds=5)
    error = refused.value
    assert (error.code, error.subject) == ("GROUP_REFUSED", "cluster:east")
    assert GROUP in error.message
    assert error.remedy.startswith("Stop the consumers")
    assert coordinator.commits == 1, "it does not pass by asking again"


def test_a_missing_right_on_the_group_is_named(coordinator, group):
    coordinator.says.append(GROUP_REFUSED)
    with pytest.raises(NotAuthorizedError) as refused:
        group.store(ORDERS, timeout_seconds=5)
    assert GROUP in refused.value.message
    assert "READ" in refused.value.remedy


def test_a_partition_that_is_refused_keeps_no_other_from_being_stored(coordinator, group):
    coordinator.says.append({("orders", 1): TOPIC_REFUSED})
    refused = group.store(ORDERS, timeout_seconds=5)
    assert coordinator.stored == {("orders", 0): 5}
    assert [*refused] == [("orders", 1)]
    assert "orders/1" in refused["orders", 1].message


# -- beside a lane --------------------------------------------------------------------------------


class Beside:
    """A lane's part: steps at times of the test's choosing."""

    def __init__(self, group, *states):
        self.states = list(states)
        self.problems = ConnectionProblems(source="east", target="west")
        self.now = 0.0
        self.progress = ProgressBeside(group, now=self.now, on_answer=self.problems.refuse_progress)

    def step(self):
        self.progress.show(lambda: self.states, self.now)

    def interval(self):
        """The next positions are due, and have their answer."""
        self.now += PROGRESS_SECONDS
        self.step()
        self.answered()

    def answered(self):
        def over():
            self.step()
            return self.progress._showing is None

        wait_until(over, timeout_seconds=20, describe="an answer", interval_seconds=0.005)


@pytest.fixture
def beside(group):
    beside = Beside(group, partition(0, 5), partition(1, 7))
    yield beside
    beside.progress.close()


def test_a_lane_shows_nothing_before_the_interval_and_then_what_moved(coordinator, beside):
    beside.now = PROGRESS_SECONDS - 0.1
    beside.step()
    assert coordinator.asked == []
    beside.interval()
    assert coordinator.stored == ORDERS
    beside.interval()
    assert coordinator.commits == 1, "nothing has moved"
    beside.states[0].committed = 6
    beside.interval()
    assert (coordinator.commits, coordinator.stored["orders", 0]) == (2, 6)


def test_a_coordinator_that_says_nothing_holds_up_no_step_and_is_asked_once(coordinator, beside):
    coordinator.free.clear()
    began = time.monotonic()
    for _ in range(5):
        beside.now += PROGRESS_SECONDS
        beside.step()
    assert time.monotonic() - began < 1
    wait_until(lambda: coordinator.commits, timeout_seconds=20, describe="the request")
    assert coordinator.commits == 1
    coordinator.free.set()
    beside.answered()
    assert coordinator.stored == ORDERS


def test_what_was_not_taken_is_shown_again(coordinator, beside, monkeypatch):
    monkeypatch.setattr(progress_beside, "ANSWER_SECONDS", 0.2)
    coordinator.says.extend([NOT_COORDINATOR] * 20)
    beside.interval()
    assert (coordinator.stored, beside.problems.progress) == ({}, ""), "it passes by itself"
    coordinator.says.clear()
    beside.interval()
    assert coordinator.stored == ORDERS


def test_a_coordinator_that_takes_nothing_for_a_minute_is_told_until_it_does(
    coordinator, beside, monkeypatch
):
    monkeypatch.setattr(progress_beside, "ANSWER_SECONDS", 0.1)
    coordinator.says.extend([NOT_COORDINATOR] * 100)
    for _ in range(int(TOLD_SECONDS / PROGRESS_SECONDS)):
        beside.interval()
        assert beside.problems.progress == ""
    beside.interval()
    said = beside.problems.progress
    assert said.startswith("UNREACHABLE the group that shows progress")
    assert GROUP in said
    assert said.partition("\n")[2]
    beside.problems.on_failure(UnreachableError("no broker answers", subject="cluster:east"))
    assert beside.problems.progress == "", "that says it all"
    beside.problems.note("source", None)
    assert beside.problems.progress == said
    coordinator.says.clear()
    beside.interval()
    assert (beside.problems.progress, coordinator.stored) == ("", ORDERS)


@pytest.mark.parametrize(
    ("code", "told"), [(GROUP_REFUSED, "NOT_AUTHORIZED"), (UNKNOWN_MEMBER, "GROUP_REFUSED")]
)
def test_a_refusal_is_told_until_the_group_takes_positions(coordinator, beside, code, told):
    coordinator.says.append(code)
    beside.interval()
    said = beside.problems.progress
    assert said.startswith(f"{told} cannot show progress in group {GROUP}")
    assert said.partition("\n")[2]
    beside.interval()
    assert (beside.problems.progress, coordinator.stored) == ("", ORDERS)


def test_a_topic_that_is_refused_is_told_and_one_that_is_gone_is_not(coordinator, beside):
    coordinator.says.append({("orders", 0): UNKNOWN_TOPIC})
    beside.interval()
    assert beside.problems.progress == ""
    coordinator.says.append({("orders", 0): TOPIC_REFUSED})
    beside.interval()
    assert "orders/0" in beside.problems.progress
    assert coordinator.stored == {("orders", 1): 7}
    beside.interval()
    assert (beside.problems.progress, coordinator.stored) == ("", ORDERS)


def test_positions_of_very_many_partitions_go_in_several_requests(coordinator, beside):
    beside.states = [partition(number, number) for number in range(2500)]
    beside.interval()
    assert len(coordinator.stored) == 2500
    assert coordinator.commits == 3


def test_a_lane_that_ends_in_order_shows_its_last_positions(coordinator, beside):
    beside.progress.show_end(lambda: beside.states)
    assert coordinator.stored == ORDERS
    beside.progress.show_end(lambda: beside.states)
    assert coordinator.commits == 1, "they are shown"


def test_a_lane_ends_within_a_second_whatever_the_coordinator_does(coordinator, beside):
    coordinator.free.clear()
    beside.now = PROGRESS_SECONDS
    beside.step()
    began = time.monotonic()
    beside.progress.show_end(lambda: beside.states)
    beside.progress.close()
    assert time.monotonic() - began < 1


def test_a_lane_whose_last_positions_were_not_taken_ends_at_once(coordinator, beside, monkeypatch):
    monkeypatch.setattr(progress_beside, "ANSWER_SECONDS", 0.1)
    coordinator.free.clear()
    beside.interval()
    began = time.monotonic()
    beside.progress.show_end(lambda: beside.states)
    assert time.monotonic() - began < 0.5


def test_connections_are_closed_though_an_answer_is_on_its_way(coordinator, group, beside):
    coordinator.free.clear()
    beside.now = PROGRESS_SECONDS
    beside.step()
    showing = beside.progress._showing
    wait_until(lambda: coordinator.commits, timeout_seconds=20, describe="the request")
    beside.progress.close()
    assert group._coordinators._connections, "it is the thread's until its answer has come"
    coordinator.free.set()
    showing.wait(20)
    assert not group._coordinators._connections
