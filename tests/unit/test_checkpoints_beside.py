"""Whole batches without transactions: checkpoints are stored while the lane copies on, and never too early."""

from dataclasses import replace

import pytest
import session_lab

from replicator.batches.codec.produce_codec import Produced
from replicator.batches.copy.outgoing import Outgoing
from replicator.batches.copy.transactions import ProducerIdentity
from replicator.dataplane.copy.engine_protocol import Run
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.spec import PartitionWork
from replicator.dataplane.whole_batches.batch_clients import BatchClients
from replicator.errors import TargetRegressedError
from replicator.formats.checkpoint import decode_checkpoints
from replicator.identifiers import checkpoints_topic
from replicator.topology.plan import ClusterPlan
from replicator.wire.records.record_batch import RawRecord, decode_batch, encode_batch

NOBODY = ("127.0.0.1:1",)
CHECKPOINTS = checkpoints_topic("lab", "east")
IDENTITY = ProducerIdentity(7, 0)


class Lane:
    """A session whose target is played by the test: it acknowledges what it is told to."""

    def __init__(self) -> None:
        self.lab = session_lab.SessionLab(delivery="at-least-once")
        spec = replace(
            self.lab.spec, source=ClusterPlan("east", NOBODY), target=ClusterPlan("west", NOBODY)
        )
        self.clients = BatchClients(spec, self.lab._context)
        self.unit, self.writer = self.clients.session.unit, self.clients._writer
        self.state = PartitionState(
            PartitionWork("orders", 0, "orders", ""), source_alias="east", provenance="path"
        )
        self.state.position = self.state.committed = 0
        self.stored: list[int] = []

    def copy(self, count: int, *, joins: int = 0) -> None:
        """Reads a batch and queues it, as the session does."""
        records = [RawRecord(at, 5, "CreateTime", None, b"v") for at in range(count)]
        self.unit.begin()
        told = self.unit.note_for(self.state, self.state.position, count)
        data = memoryview(bytearray(encode_batch(records)))
        self.writer.write(("orders", 0), Outgoing(data, count, on_written=told, joins=joins))
        self.state.position += count
        self.unit.copied(Run(self.state, count, count, 10 * count, 5))

    def send(self, topic: str = "orders") -> None:
        """Everything that waits goes out."""
        for partition in self._partitions(topic):
            while partition.pending:
                if partition.pending[0].joins:
                    self.writer.outstanding_bytes += partition.join_first()
                partition.sent(partition.pending[0], IDENTITY, transactional=False)

    def acknowledge(self, topic: str = "orders", *, base_offset: int = 100, most: int = 99) -> None:
        """The target takes what was sent."""
        for partition in self._partitions(topic):
            for batch in list(partition.unacknowledged)[:most]:
                partition.in_flight -= 1
                part = Produced(*partition.key, 0, base_offset, "")
                self.writer._answered(partition, batch, part, 0.0)
                if topic == CHECKPOINTS:
                    self._remember(batch.data)

    def checkpoints_wait(self) -> bool:
        """Whether checkpoints are queued."""
        return bool(self._partitions(CHECKPOINTS))

    def _partitions(self, topic: str) -> list:
        return [each for key, each in self.writer._active.items() if key[0] == topic]

    def _remember(self, data: memoryview) -> None:
        records = {each.key: each.value for each in decode_batch(bytes(data))}
        self.stored += [each.offset for each in decode_checkpoints(records).values()]


@pytest.fixture
def lane():
    lane = Lane()
    yield lane
    lane.clients.close()


def test_checkpoints_are_written_behind_what_they_cover_while_the_lane_copies_on(lane):
    lane.copy(3)
    lane.send()
    lane.unit.commit_beside()
    lane.copy(4)
    lane.send()
    lane.unit.go_on()
    assert not lane.checkpoints_wait(), "the first batch is not acknowledged"
    lane.acknowledge(most=1)
    lane.unit.go_on()
    assert lane.checkpoints_wait(), "the second one is not waited for"
    assert lane.state.committed == 0
    lane.send(CHECKPOINTS)
    lane.acknowledge(CHECKPOINTS)
    lane.unit.go_on()
    assert lane.stored == [3]
    assert lane.state.committed == 3
    assert not lane.unit.storing


def test_batches_joined_with_later_ones_hold_the_checkpoint_until_they_are_acknowledged(lane):
    lane.copy(1, joins=1000)
    lane.copy(1, joins=1000)
    lane.unit.commit_beside()
    lane.copy(1, joins=1000)
    lane.send()
    lane.unit.go_on()
    assert not lane.checkpoints_wait()
    lane.acknowledge()
    lane.unit.go_on()
    assert lane.checkpoints_wait()


def test_a_stop_waits_for_checkpoints_on_their_way_and_for_those_of_what_came_later(lane):
    lane.copy(3)
    lane.send()
    lane.unit.commit_beside()
    lane.copy(4)

    def target_answers(_seconds: float) -> None:
        for topic in ("orders", CHECKPOINTS):
            lane.send(topic)
            lane.acknowledge(topic)

    lane.unit._turn = target_answers
    lane.unit.commit()
    assert lane.stored == [3, 7], "in order: the last one counts"
    assert lane.state.committed == 7


def test_a_failure_takes_back_what_was_counted_since_the_stored_checkpoint(lane):
    counters = lane.lab.counters
    lane.copy(3)
    lane.send()
    lane.unit.commit_beside()
    lane.copy(4)
    assert counters.outcome.copied == 7
    lane.acknowledge(most=0)
    counters.roll_back()
    assert counters.outcome.copied == 0, "nothing is stored yet"


def test_what_was_stored_is_not_reverted(lane):
    counters = lane.lab.counters
    lane.copy(3)
    lane.send()
    lane.unit.commit_beside()
    lane.copy(4)
    lane.acknowledge()
    lane.unit.go_on()
    counters.roll_back()
    assert counters.outcome.copied == 3
    assert counters.commits == 1


def test_a_target_that_lost_its_log_gets_no_checkpoint(lane):
    lane.state.target.end = 500
    lane.copy(3)
    lane.send()
    lane.unit.commit_beside()
    lane.acknowledge(base_offset=10)
    with pytest.raises(TargetRegressedError):
        lane.unit.go_on()
    assert not lane.checkpoints_wait()


def test_while_checkpoints_are_on_their_way_no_others_are_made(lane):
    lane.copy(3)
    lane.unit.commit_beside()
    lane.copy(4)
    lane.unit.commit_beside()
    assert lane.unit.opened_at is not None, "they are due again once the first ones are stored"
    pacing, later = lane.clients.session._pacing, lane.lab.clock.monotonic() + 1.0
    assert pacing.patience(later) > 0, "else the lane would turn around without rest"
