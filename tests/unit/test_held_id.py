"""A lane that waits for its transactional id says so within seconds, also where nobody says why."""

import pytest
from session_lab import CHECKPOINTS, SessionLab

from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.health.held_id import TOLD_SECONDS, HeldId
from replicator.dataplane.health.stuck_writes import StuckWrites
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.spec import PartitionWork
from replicator.errors import NotFoundError, PartitionsRefusedError, TransientBrokerError
from replicator.identifiers import quarantine_topic
from replicator.testing import ManualClock
from replicator.topology.plan import ClusterPlan

QUARANTINE = (quarantine_topic("lab", "east"), 0)


class Waiting:
    """A take-over that waits, and what a target says that is asked about partitions."""

    def __init__(self, patch, answer="asked", target="west:9092") -> None:
        self.clock, self.said = ManualClock(), []
        spec = SessionLab().spec
        if answer != "asked":
            # What the target answers; a question to one is no part of this.
            patch.setattr(StuckWrites, "refusals", lambda _, places: answer)
        writes = StuckWrites(
            target=ClusterPlan("west", (target,)), client_id="test",
            checkpoints=(CHECKPOINTS, 0), clock=self.clock, counters=LaneCounters(), states=list,
            quarantine=QuarantineWriter(spec, clock=self.clock),
        )  # fmt: skip
        self.writes = writes
        self.held = HeldId(
            writes, target="west", places=lambda: [("orders", 0)], on_held=self.said.append,
            clock=self.clock,
        )  # fmt: skip
        self.held.takeover_begins()

    def after(self, seconds: float):
        self.clock.advance(seconds)
        self.held.waits()
        return self.said


@pytest.mark.parametrize("answer", [None, {}, {QUARANTINE: NotFoundError("gone")}])
def test_a_wait_for_which_the_target_gives_no_reason_is_told_after_seconds(monkeypatch, answer):
    waiting = Waiting(monkeypatch, answer)
    assert waiting.after(0) == waiting.after(2) == [], "an id is often free within a second"
    (error,) = waiting.after(TOLD_SECONDS)
    assert (error.code, error.subject) == ("UNREACHABLE", "cluster:west")
    assert "transactional id is not free" in error.message
    assert "__transaction_state" in error.remedy


def test_a_quarantine_topic_that_takes_no_writes_is_named_where_it_may_hold_the_id(monkeypatch):
    few = TransientBrokerError("cannot write to quarantine/0: 1 of its replicas are in sync")
    (error,) = Waiting(monkeypatch, {QUARANTINE: few}).after(2)
    assert isinstance(error, PartitionsRefusedError)
    assert error.message == few.message


def test_a_target_of_which_no_broker_answers_is_told_as_that_and_no_partition_is_blamed(
    monkeypatch,
):
    monkeypatch.setattr("replicator.dataplane.health.stuck_writes._ASK_SECONDS", 0.5)
    waiting = Waiting(monkeypatch, target="127.0.0.1:1")
    assert waiting.after(2) == []
    (error,) = waiting.after(TOLD_SECONDS)
    assert (error.code, error.subject) == ("UNREACHABLE", "cluster:west")
    assert "no broker answers" in error.message
    assert "bootstrapServers" in error.remedy


def test_no_record_is_put_into_a_quarantine_topic_while_nobody_says_that_it_takes_writes(
    monkeypatch,
):
    monkeypatch.setattr("replicator.dataplane.health.stuck_writes._ASK_SECONDS", 0.5)
    work = PartitionWork("orders", 0, "copies", "")
    state = PartitionState(work, source_alias="east", provenance="full")
    with pytest.raises(PartitionsRefusedError) as told:
        Waiting(monkeypatch, target="127.0.0.1:1").writes.ask_quarantine(state)
    (refused,) = told.value.refusals.items()
    assert refused[0] == ("copies", 0)
    assert (refused[1].code, refused[1].subject) == ("UNREACHABLE", "cluster:west")
    assert "orders/0 has a record for the quarantine topic" in refused[1].message
    Waiting(monkeypatch, {}).writes.ask_quarantine(state)
