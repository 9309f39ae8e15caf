"""A lane that waits for its transactional id says so within seconds, also where nobody says why."""

import socket

from session_lab import CHECKPOINTS, SessionLab

from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.health.held_id import TOLD_SECONDS, HeldId
from replicator.dataplane.health.stuck_writes import StuckWrites
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.testing import ManualClock
from replicator.topology.plan import ClusterPlan


def test_a_wait_for_which_the_target_gives_no_reason_is_told_after_seconds():
    clock, said = ManualClock(), []
    spec = SessionLab().spec
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        target = ClusterPlan("west", (f"127.0.0.1:{nobody.getsockname()[1]}",))
        writes = StuckWrites(
            target=target, client_id="test", checkpoints=(CHECKPOINTS, 0),
            quarantine=QuarantineWriter(spec, clock=clock), clock=clock, counters=LaneCounters(),
            states=list,
        )  # fmt: skip
        held = HeldId(
            writes, target="west", places=lambda: [("orders", 0)], on_held=said.append, clock=clock
        )
        held.takeover_begins()
        held.waits()
        assert said == [], "an id is often free within a second"
        clock.advance(TOLD_SECONDS + 1)
        held.waits()
        held.waits()
    (error,) = said
    assert (error.code, error.subject) == ("UNREACHABLE", "cluster:west")
    assert "transactional id is not free" in error.message
    assert "__transaction_state" in error.remedy
