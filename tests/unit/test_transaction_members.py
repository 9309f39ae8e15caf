"""A coordinator hears of one broker at a time: where several are written to, it is told of all partitions at once."""

import selectors
import socket
import struct

import pytest
from tiny_broker import API_VERSIONS, FIND_COORDINATOR, LoopbackBroker

from replicator.batches.copy.marker_wait import (
    FIRST_SECONDS,
    LONGER_SECONDS,
    REFUSED_AGAIN,
    SHORTER_SECONDS,
)
from replicator.batches.copy.outgoing import Outgoing
from replicator.batches.copy.target_writer import TargetWriter
from replicator.batches.copy.transaction_members import (
    AHEAD_SECONDS,
    PATIENCE_SECONDS,
    TransactionMembers,
)
from replicator.batches.copy.transactions import ProducerIdentity, Transactions
from replicator.batches.network.buffers import BufferPool
from replicator.batches.network.channel import Channel
from replicator.batches.network.io_loop import IoLoop
from replicator.batches.network.leaders import LeadersSeen
from replicator.clock import SystemClock
from replicator.errors import TransientBrokerError
from replicator.policy.capacity.broker_quota import BrokerQuota
from replicator.topology.plan import ClusterPlan
from replicator.wire.records.record_batch import RawRecord, encode_batch

CHECKPOINTS = ("checkpoints", 3)


class Lab:
    """A writer with connections to two brokers, and what its coordinator is told."""

    def __init__(self, *, ahead=True, second=True):
        self.told, self.refuses, self.epoch = [], 0, 1
        self.second = second
        self.writer = TargetWriter(
            ClusterPlan("west", ("127.0.0.1:1",)),
            IoLoop(SystemClock()),
            client_id="test",
            transactional_id="lane",
            members=TransactionMembers(self.tell, ahead=ahead, always=CHECKPOINTS),
            quota=BrokerQuota("west"),
        )
        brokers = self.writer.brokers
        led = {("t", 0): (1, 0), ("t", 1): (1, 0), ("t", 2): (2, 0), ("t", 3): (2, 0)}
        brokers.leaders.seen = LeadersSeen(led, {1: ("h", 1), 2: ("h", 2)})
        self.sockets = {}
        for node in (1, 2):
            near, self.sockets[node] = socket.socketpair()
            self.sockets[node].setblocking(False)
            brokers.versions[node] = {0: (0, 12)}
            brokers._channels[node] = Channel(near, pool=BufferPool(), where="here")
            brokers._selector.register(near, selectors.EVENT_READ, (brokers, node))
        self.begin()

    def tell(self, keys, patient):
        sent = [node for node in self.sockets if self.is_sent(node)]
        self.told.append(sorted(keys))
        assert not sent, "something was sent before the coordinator was told"
        if not self.refuses:
            return True
        self.refuses -= 1
        if not patient:
            raise TransientBrokerError("markers are missing")
        return False

    def pump_until_sent(self, now):
        """Pumps as the lane does, when it may; returns the pauses."""
        pauses = []
        while not self.is_sent(1):
            pauses.append(self.writer.seconds_held(now))
            now += pauses[-1]
            self.writer.pump(now)
        return pauses

    def is_sent(self, node):
        try:
            return bool(self.sockets[node].recv(1 << 16, socket.MSG_PEEK))
        except BlockingIOError:
            return False

    def begin(self):
        """The last transaction is over."""
        self.epoch += 1
        self.writer.release_all()
        self.writer.begin(ProducerIdentity(5, self.epoch), joins_by_itself=self.second)

    def write(self, *partitions, now=50.0):
        """Queues a batch for each, and sends what may be sent."""
        for node in self.sockets:
            while self.is_sent(node):
                self.sockets[node].recv(1 << 16)
        packed = encode_batch([RawRecord(0, 5, "CreateTime", None, b"v")])
        for partition in partitions:
            self.writer.write(("t", partition), Outgoing(memoryview(bytearray(packed)), 1))
        self.writer.pump(now)


@pytest.fixture
def made():
    labs = []

    def make(**how):
        labs.append(Lab(**how))
        return labs[-1]

    yield make
    for lab in labs:
        for end in lab.sockets.values():
            end.close()
        lab.writer.brokers.close()


def test_two_brokers_are_written_to_once_the_coordinator_knows_all_of_it(made):
    lab = made()
    lab.write(0, 2)
    assert lab.told == [[CHECKPOINTS, ("t", 0), ("t", 2)]]
    assert lab.is_sent(1)
    assert lab.is_sent(2)


def test_it_is_told_of_each_partition_once_in_a_transaction(made):
    lab = made()
    lab.write(0, 2)
    lab.write(0, 1)
    assert lab.told[1:] == [[("t", 1)]]
    lab.begin()
    lab.write(3)
    assert lab.told[2:] == [[CHECKPOINTS, ("t", 3)]]


def test_one_broker_says_so_by_itself(made):
    lab = made()
    lab.write(0, 1)
    assert lab.told == []
    assert lab.is_sent(1)


def test_far_away_brokers_say_so_by_themselves(made):
    lab = made(ahead=False)
    lab.write(0, 2)
    assert lab.told == []


def test_below_transaction_version_2_it_is_always_told(made):
    lab = made(ahead=False, second=False)
    lab.write(0)
    assert lab.told == [[CHECKPOINTS, ("t", 0)]]


@pytest.mark.parametrize(("refuses", "change"), [(2, LONGER_SECONDS), (0, -SHORTER_SECONDS)])
def test_what_it_says_at_first_tells_whether_the_last_markers_were_missing(made, refuses, change):
    lab = made()
    lab.refuses = refuses
    lab.writer.hold(50.0)
    lab.write(0, 2, now=50.0)
    assert lab.told == []
    pauses = lab.pump_until_sent(50.0)
    again = [REFUSED_AGAIN.seconds(times + 1) for times in range(refuses)]
    assert pauses == pytest.approx([FIRST_SECONDS, *again])
    lab.refuses = 1
    lab.write(1, now=50.1)  # of one transaction only the first answer counts
    lab.writer.hold(60.0)
    assert lab.writer.seconds_held(60.0) == pytest.approx(FIRST_SECONDS + change)


def test_markers_that_wait_for_a_broker_that_is_gone_do_not_hold_up_the_others(made):
    """The brokers that live say of each partition what it can do."""
    lab = made()
    lab.refuses = 999
    lab.write(0, 2)
    assert sum(lab.pump_until_sent(50.0)) == pytest.approx(AHEAD_SECONDS, abs=0.03)
    asked = len(lab.told)
    lab.write(0, 2, now=52.0)
    assert len(lab.told) == asked
    lab.begin()
    lab.write(0, 2, now=53.0)
    assert len(lab.told) == asked + 1


def test_below_transaction_version_2_nothing_is_sent_before_and_the_lane_hears_of_it(made):
    lab = made(second=False)
    lab.refuses = 9999
    lab.write(0)
    with pytest.raises(TransientBrokerError):
        lab.pump_until_sent(50.0)
    assert not lab.is_sent(1)
    assert len(lab.told) == pytest.approx(PATIENCE_SECONDS / REFUSED_AGAIN.most_seconds, abs=10)


ADD_PARTITIONS = 24
LOADING, CONCURRENT = 14, 51


class Refuses(LoopbackBroker):
    """Answers requests to add a partition with one code after the other."""

    versions = ((API_VERSIONS, 0, 0), (FIND_COORDINATOR, 1, 1), (ADD_PARTITIONS, 0, 0))

    def __init__(self, *codes):
        self.codes = iter(codes)
        super().__init__()

    def answer(self, key):
        if key == API_VERSIONS:
            return super().answer(key)
        if key == ADD_PARTITIONS:
            return struct.pack(">iih1siih", 0, 1, 1, b"t", 1, 0, next(self.codes))
        return struct.pack(">ihhih9si", 0, 0, -1, 1, 9, b"127.0.0.1", self.address[1])


@pytest.fixture
def joined():
    """Asks a broker to add one partition, and ends both."""

    def ask(*codes, seconds=20.0, **how):
        broker = Refuses(*codes)
        west = ClusterPlan("west", (f"127.0.0.1:{broker.address[1]}",))
        asked = Transactions(west, client_id="c", transactional_id="id", timeout_seconds=60.0)
        asked.identity = ProducerIdentity(7, 0)
        try:
            return asked.join([("t", 0)], seconds, **how), len(list(broker.codes))
        finally:
            asked.close()
            broker.stop()

    return ask


def test_a_coordinator_that_waits_for_markers_is_asked_again_or_not_waited_for(joined):
    assert joined(CONCURRENT, CONCURRENT, 0) == (True, 0)
    assert joined(CONCURRENT, 0, patient=True) == (False, 1)
    assert joined(LOADING, 0, patient=True) == (True, 0)
    with pytest.raises(TransientBrokerError):
        joined(*[CONCURRENT] * 1000, seconds=2.5)


def test_a_coordinator_is_not_asked_again_when_its_answer_may_come_too_late(joined):
    with pytest.raises(TransientBrokerError):
        joined(CONCURRENT, seconds=2.0)
