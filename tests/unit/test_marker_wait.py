"""The first batches of a transaction are sent when the markers of the last one are likely to be written."""

import contextlib
import selectors
import socket

import pytest

from replicator.batches.codec.produce_codec import Produced
from replicator.batches.copy.marker_wait import (
    BACKED_OFF_SECONDS,
    FIRST_SECONDS,
    LEAST_SECONDS,
    LONGER_SECONDS,
    MOST_SECONDS,
    MarkerWait,
)
from replicator.batches.copy.outgoing import Outgoing
from replicator.batches.copy.target_writer import TargetWriter
from replicator.batches.copy.transaction_members import TransactionMembers
from replicator.batches.copy.transactions import ProducerIdentity
from replicator.batches.network.buffers import BufferPool
from replicator.batches.network.channel import Channel
from replicator.batches.network.io_loop import IoLoop
from replicator.batches.network.leaders import LeadersSeen
from replicator.clock import SystemClock
from replicator.policy.capacity.broker_quota import BrokerQuota
from replicator.topology.plan import ClusterPlan
from replicator.wire.records.record_batch import RawRecord, encode_batch


def transaction(wait, *, answer_seconds, ends_at=100.0):
    """One transaction whose first answer takes so long; returns how long the next one is kept back."""
    wait.ended(ends_at)
    wait.sent(wait.until)
    wait.sent(wait.until + 0.001)
    wait.look(wait.until + 0.001)
    wait.answered()
    wait.look(wait.until + answer_seconds)
    wait.look(wait.until + 99.0)  # of one transaction only the first answer counts
    return wait.seconds


def test_a_first_answer_that_took_the_brokers_pause_came_too_early():
    wait = MarkerWait()
    assert transaction(wait, answer_seconds=BACKED_OFF_SECONDS + 0.001) == pytest.approx(
        FIRST_SECONDS + LONGER_SECONDS
    )
    for _ in range(20):
        transaction(wait, answer_seconds=0.05)
    assert wait.seconds == MOST_SECONDS


def test_it_comes_earlier_again_and_rarely_too_early():
    wait = MarkerWait()
    early = 0
    for _ in range(5000):
        markers_take = 0.0025
        came_early = wait.seconds < markers_take
        early += came_early
        transaction(wait, answer_seconds=0.022 if came_early else 0.002)
    assert 0 < early <= 5000 / 190
    for _ in range(5000):
        transaction(wait, answer_seconds=0.002)
    assert wait.seconds == LEAST_SECONDS


class Far:
    """A writer, and the broker's end of its connection."""

    def __init__(self):
        self.writer = TargetWriter(
            ClusterPlan("west", ("127.0.0.1:1",)),
            IoLoop(SystemClock()),
            client_id="test",
            transactional_id="lane",
            members=TransactionMembers(lambda *_: True, ahead=True, always=("c", 0)),
            quota=BrokerQuota("west"),
        )
        brokers = self.writer.brokers
        brokers.leaders.seen = LeadersSeen({("t", 0): (7, 1)}, {7: ("h", 1)})
        near, self.socket = socket.socketpair()
        self.socket.setblocking(False)
        brokers.versions[7] = {0: (0, 12)}
        brokers._channels[7] = Channel(near, pool=BufferPool(), where="here")
        brokers._selector.register(near, selectors.EVENT_READ, (brokers, 7))
        self.writer.begin(ProducerIdentity(5, 1), joins_by_itself=True)

    def write(self):
        """Queues a batch."""
        packed = encode_batch([RawRecord(0, 5, "CreateTime", None, b"v")])
        self.writer.write(("t", 0), Outgoing(memoryview(bytearray(packed)), 1))

    def got(self):
        """What has come to the broker."""
        with contextlib.suppress(BlockingIOError):
            return self.socket.recv(1 << 16)
        return b""

    def acknowledge(self, *, sent_at):
        """The broker takes the batch."""
        partition = self.writer._partitions["t", 0]
        partition.in_flight -= 1
        self.writer._answered(
            partition, partition.unacknowledged[0], Produced("t", 0, 0, 9, ""), sent_at
        )


@pytest.fixture
def far():
    made = Far()
    yield made
    made.socket.close()
    made.writer.brokers.close()


def test_what_is_queued_right_behind_a_transaction_waits_a_moment(far):
    far.writer.hold(50.0)
    far.write()
    far.writer.pump(50.0)
    assert far.got() == b""
    assert far.writer.seconds_held(50.0) == pytest.approx(FIRST_SECONDS)
    far.writer.pump(50.0 + FIRST_SECONDS)
    assert far.got()
    assert far.writer.seconds_held(50.0 + FIRST_SECONDS) == float("inf")


def test_an_answer_that_came_late_makes_the_next_wait_longer(far):
    far.writer.hold(50.0)
    far.write()
    far.writer.pump(50.01)
    far.acknowledge(sent_at=50.01)
    far.writer.look(50.04)
    far.writer.hold(51.0)
    assert far.writer.seconds_held(51.0) == pytest.approx(FIRST_SECONDS + LONGER_SECONDS)


def test_without_transactions_nothing_is_kept_back(far):
    far.write()
    far.writer.pump(50.0)
    assert far.got()
