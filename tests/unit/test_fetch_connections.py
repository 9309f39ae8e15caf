"""Partitions are shared out among a broker's connections, and stay where they are."""

import struct
from collections import Counter

import pytest
from far_broker import Far
from hypothesis import example, given
from hypothesis import strategies as st

from replicator.batches.copy.readings import FAILING_SECONDS, Readings
from replicator.batches.copy.source_reader import (
    ANSWER_SECONDS,
    FETCH_PACE_SECONDS,
    FETCH_WAIT_SECONDS,
    SLOW_SECONDS,
    SMALL_ANSWER_BYTES,
    SourceReader,
)
from replicator.batches.network.brokers import broker_of, connection_to
from replicator.batches.network.buffers import Buffer
from replicator.batches.network.channel import Frame
from replicator.batches.network.io_loop import IoLoop
from replicator.batches.network.leaders import Leaders, LeadersSeen
from replicator.clock import SystemClock
from replicator.errors import UnreachableError
from replicator.policy.capacity.broker_quota import BrokerQuota
from replicator.policy.capacity.line_settings import LEAST_FETCH_BYTES, fetch_bytes_at
from replicator.topology.plan import ClusterPlan


def reader(connections, *, partitions):
    made = SourceReader(
        ClusterPlan("east", ("127.0.0.1:1",)),
        IoLoop(SystemClock()),
        client_id="test",
        rack="",
        quota=BrokerQuota("east"),
        connections=connections,
    )
    made.brokers.leaders.seen = LeadersSeen(
        {("t", n): (7, 1) for n in range(partitions)}, {7: ("h", 1)}
    )
    for partition in range(partitions):
        made.read_from(("t", partition), 0, -1)
    return made


def shared_out(made):
    return {
        node: sorted(each.key[1] for each in found)
        for node, found in made.readings.by_node(0.0).items()
    }


def test_one_connection_is_the_broker_itself():
    assert shared_out(reader(1, partitions=5)) == {7: [0, 1, 2, 3, 4]}


def test_several_connections_share_partitions_evenly():
    found = shared_out(reader(4, partitions=10))
    assert {broker_of(node) for node in found} == {7}
    assert Counter(map(len, found.values())) == {3: 2, 2: 2}
    assert found[connection_to(7, 1)] == [1, 5, 9]


def test_a_partition_that_is_read_again_keeps_its_connection():
    made = reader(3, partitions=4)
    before = shared_out(made)
    made.read_from(("t", 2), 100, 1)
    assert shared_out(made) == before


def test_a_replica_near_by_is_read_over_as_many_connections_and_given_up_with_its_own():
    made = reader(2, partitions=2)
    for partition in (0, 1):
        made.readings.prefer(made.readings.get(("t", partition)), 9, 0.0)
    assert shared_out(made) == {9: [0], connection_to(9, 1): [1]}
    made.on_lost(connection_to(9, 1))
    assert shared_out(made) == {9: [0], connection_to(7, 1): [1]}


def answer(correlation, body=b""):
    data = bytearray(struct.pack(">i", correlation) + body)
    return Frame(Buffer(data, None), len(data))


def test_what_a_broker_of_the_source_answers_wrongly_is_no_fault_of_the_target():
    made = reader(1, partitions=1)
    with pytest.raises(UnreachableError, match="what was not asked") as raised:
        made.on_frame(7, answer(1))
    assert raised.value.subject == "cluster:east"


@pytest.fixture
def far():
    made = reader(1, partitions=2)
    end = Far(made)
    yield end
    end.socket.close()
    made.brokers.close()


def test_nothing_is_asked_before_the_last_answer_was_taken_in(far):
    far.reader.pump(0.0, fetch_bytes=1000, partition_bytes=1000)
    first = far.asked()
    assert struct.pack(">ii", 0, 0) in first
    far.answer(first)
    far.reader.pump(0.0, fetch_bytes=1000, partition_bytes=1000)
    assert far.asked() == b"", "it would have the epoch that the broker has seen already"
    far.reader.take_arrived(0.0)
    far.reader.pump(1.0, fetch_bytes=1000, partition_bytes=1000)
    assert struct.pack(">ii", 77, 1) in far.asked()


def test_fetches_are_as_large_as_a_connection_carries_in_a_second(far):
    far.reader.pump(0.0, fetch_bytes=8_000_000, partition_bytes=8_000_000)
    first = far.asked()
    assert struct.pack(">i", 8_000_000) in first
    far.reader._fetches[7].most_bytes = 100_000
    far.answer(first, filler=90_000)
    far.reader.take_arrived(0.25)
    far.reader.pump(1.0, fetch_bytes=8_000_000, partition_bytes=8_000_000)
    assert far.reader._fetches[7].most_bytes == fetch_bytes_at(90_000 + 13, 0.25)


def test_a_fetch_whose_answer_did_not_come_in_time_asks_for_less_the_next_time(far):
    """What a narrow line has brought of it is lost, so as much would never come."""
    late, sizes = FETCH_WAIT_SECONDS + ANSWER_SECONDS + 1, []
    for attempt in range(5):
        began = attempt * (late + 60)
        far.reader.pump(began, fetch_bytes=1_000_000, partition_bytes=1_000_000)
        sizes.append(far.reader._fetches[7].most_bytes)
        far.reader.look(began + late - 2)
        assert far.reader._fetches, "it may still come"
        far.reader.look(began + late)
        far.socket.close()
        far.connect()
    assert sizes == [1_000_000, 250_000, 62_500, LEAST_FETCH_BYTES, LEAST_FETCH_BYTES]


def test_an_answer_is_waited_for_as_long_as_some_of_it_comes(far):
    """A batch of 1 MB over a line of 200 KB/s that sixteen connections share takes 80 s, and cannot be asked for in part."""
    far.reader.pump(0.0, fetch_bytes=1_000_000, partition_bytes=1_000_000)
    request = far.asked()
    due = FETCH_WAIT_SECONDS + ANSWER_SECONDS
    body = request[8:12] + b"\x00" + struct.pack(">ihi", 0, 0, 77) + b"\x01\x00" + bytes(900)
    pieces = [struct.pack(">i", len(body)) + body[:100], body[100:500]]
    far.reader.look(due - 1)
    assert far.reader.arriving(due - 1) == frozenset(), "nothing has come"
    for at, piece in zip((due - 1, 2 * due - 2), pieces, strict=True):
        far.send(piece)
        far.reader.look(at)
        assert far.reader.arriving(at) == {("t", 0), ("t", 1)}
    far.reader.look(2 * due - 2 + ANSWER_SECONDS)
    assert far.reader._fetches, "some of it came within that time"
    far.send(body[500:])
    assert not far.reader._fetches
    assert far.reader.arriving(3 * due) == frozenset()
    assert len(far.reader._frames) == 1


def test_an_answer_of_which_nothing_more_comes_is_given_up(far):
    far.reader.pump(0.0, fetch_bytes=1_000_000, partition_bytes=1_000_000)
    far.asked()
    far.send(struct.pack(">i", 1000) + bytes(100))
    far.reader.look(10.0)
    far.reader.look(10.0 + ANSWER_SECONDS)
    assert far.reader._fetches
    far.reader.look(10.1 + ANSWER_SECONDS)
    assert not far.reader._fetches
    assert far.reader._size(7) == 250_000


def test_a_partition_is_not_called_without_a_leader_while_one_owes_an_answer(far):
    """Its leader was not known at first, and the line is slow."""
    made = far.reader
    made.readings.retry_later(made.readings.get(("t", 0)), 0.0)
    late = FAILING_SECONDS + 1
    assert made.failing(late) == [("t", 0)]
    made.pump(1.0, fetch_bytes=1_000_000, partition_bytes=1_000_000)
    assert made.failing(late) == []
    made.on_lost(7)
    assert made.failing(late) == [("t", 0)]


def test_an_answer_in_time_is_not_called_slow(far):
    far.reader.pump(0.0, fetch_bytes=1_000_000, partition_bytes=1_000_000)
    far.asked()
    far.send(struct.pack(">i", 1000) + bytes(100))
    far.reader.look(SLOW_SECONDS)
    assert far.reader.arriving(SLOW_SECONDS) == frozenset()


def test_a_fetch_is_never_too_small_for_a_few_batches():
    assert fetch_bytes_at(6_000_000, 4.0) == 3_000_000
    assert fetch_bytes_at(6_000_000, 0.1) == 120_000_000
    assert fetch_bytes_at(10_000, 9.0) == LEAST_FETCH_BYTES


def test_a_partition_that_is_tried_again_ends_the_wait():
    made = reader(1, partitions=1)
    assert made.readings.seconds_to_retry(5.0) == float("inf")
    made.readings.retry_later(made.readings.get(("t", 0)), 5.0)
    assert 0 < made.readings.seconds_to_retry(5.0) <= 0.1
    assert made.readings.seconds_to_retry(6.0) == float("inf")


def answered(far, *, asked_at=0.0, filler=0):
    """One fetch and its answer, taken in."""
    far.reader.pump(asked_at, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    far.answer(far.asked(), filler=filler)
    far.reader.take_arrived(asked_at)


def test_small_answers_are_asked_for_in_paces(far):
    answered(far, asked_at=5.0)
    soon = 5.0 + FETCH_PACE_SECONDS / 2
    far.reader.pump(soon, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    assert far.asked() == b"", (
        "a topic written to all the time would have a request for every record"
    )
    assert far.reader.seconds_to_ask(soon) == pytest.approx(FETCH_PACE_SECONDS / 2)
    then = 5.0 + FETCH_PACE_SECONDS
    assert far.reader.seconds_to_ask(then) == float("inf")
    far.reader.pump(then, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    assert far.asked()


def test_a_fetch_that_waited_for_records_is_followed_by_the_next_one_at_once(far):
    far.reader.pump(5.0, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    far.answer(far.asked())
    far.reader.take_arrived(5.3)
    assert far.reader.seconds_to_ask(5.3) == float("inf")
    far.reader.pump(5.3, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    assert far.asked()


def test_a_backlog_is_read_without_paces(far):
    answered(far, asked_at=5.0, filler=SMALL_ANSWER_BYTES)
    far.reader.pump(5.0001, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    assert far.asked()


def test_a_new_connection_is_asked_at_once(far):
    answered(far, asked_at=5.0)
    far.reader.on_lost(7)
    assert far.reader.seconds_to_ask(5.0001) == float("inf")


def test_a_connection_that_rests_is_asked_the_same_again_and_one_that_moved_is_not(far):
    answered(far, asked_at=5.0)
    first = far.reader._questions[7]
    answered(far, asked_at=6.0)
    assert far.reader._questions[7] is first
    far.reader.pump(7.0, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    assert struct.pack(">ii", 77, 2) + b"\x01\x01" in far.asked(), "nothing is wanted or forgotten"


def test_what_moved_on_is_asked_for_from_there(far):
    far.reader.pump(5.0, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    far.answer(far.asked(), topics=far.part("t", b"r", end=40))
    (arrived,) = far.reader.take_arrived(5.0)
    arrived.reading.offset, arrived.reading.last_epoch = 40, 1
    arrived.buffer.release()
    far.reader.pump(6.0, fetch_bytes=1 << 20, partition_bytes=1 << 20)
    assert struct.pack(">iiqi", 0, 1, 40, 1) in far.asked()


def learned(leaders, key):
    """A newer leader epoch, as a response tells it."""
    leaders.learn(*key, (7, leaders.seen.leaders.get(key, (0, 0))[1] + 1))


def without(leaders, key):
    """An answer about leaders in which a partition has none."""
    left = {each: leader for each, leader in leaders.seen.leaders.items() if each != key}
    leaders.seen = LeadersSeen(left, leaders.seen.addresses)


STEPS = {
    "put": lambda readings, leaders, key, now: readings.put(key, 7, 1),
    "remove": lambda readings, leaders, key, now: readings.remove([key]),
    "pause": lambda readings, leaders, key, now: readings.pause([key], paused=True),
    "resume": lambda readings, leaders, key, now: readings.pause([key], paused=False),
    "lost": lambda readings, leaders, key, now: readings.lost(connection_to(9, key[1] % 2)),
    "learn": lambda readings, leaders, key, now: learned(leaders, key),
    "without": lambda readings, leaders, key, now: without(leaders, key),
    "prefer": lambda readings, leaders, key, now: readings.prefer(readings.get(key), 9, now),
    "retry": lambda readings, leaders, key, now: readings.retry_later(readings.get(key), now),
    "answered": lambda readings, leaders, key, now: readings.answered([readings.get(key)]),
}
OF_READINGS = ("prefer", "retry", "answered")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(STEPS)), st.integers(0, 3), st.sampled_from([0, 0.2, 6.0, 400.0])
        ),
        max_size=30,
    )
)
@example([("prefer", 0, 0), ("lost", 0, 0)])
def test_where_partitions_are_read_from_is_known_as_if_it_were_worked_out_each_time(steps):
    leaders = Leaders(ClusterPlan("east", ("127.0.0.1:1",)), client_id="test")
    leaders.seen = LeadersSeen({("t", n): (7, 1) for n in range(4)}, {7: ("h", 1)})
    readings, now = Readings(leaders, connections=2), 0.0
    for number in range(4):
        readings.put(("t", number), 0, -1)
    for step, number, seconds in steps:
        now += seconds
        if step not in OF_READINGS or readings.get(("t", number)) is not None:
            STEPS[step](readings, leaders, ("t", number), now)
        assert readings.by_node(now) == readings._worked_out(now)
        assert set(readings.failing(now)) == {
            each for each in readings if now - readings.get(each).failed_since > FAILING_SECONDS
        }
