"""A session of whole batches is judged like one of records: whether it is free to read, and what it leaves."""

from dataclasses import replace

import pytest
import session_lab
from far_broker import Far

from replicator.batches.codec.found_batches import DamagedBatchError
from replicator.batches.copy.marker_wait import FIRST_SECONDS
from replicator.batches.copy.outgoing import Outgoing
from replicator.batches.copy.source_reader import COMMITTED_FETCH_PACE_SECONDS, FETCH_PACE_SECONDS
from replicator.batches.network.leaders import LeadersSeen
from replicator.dataplane.progress.pacing import MIN_COMMIT_SECONDS
from replicator.dataplane.progress.partition_state import PartitionState, partition_table
from replicator.dataplane.transport.spec import PartitionWork
from replicator.dataplane.whole_batches.batch_clients import BatchClients
from replicator.dataplane.whole_batches.batch_pacing import PATIENCE_SECONDS
from replicator.errors import NotMovingError
from replicator.policy.values import Throttle
from replicator.topology.plan import ClusterPlan

NOBODY = ("127.0.0.1:1",)


@pytest.fixture
def lab():
    return session_lab.SessionLab()


@pytest.fixture
def clients(lab):
    clients = clients_of(lab)
    yield clients
    clients.close()


def clients_of(lab):
    """Where no broker is; nothing connects before the session is opened."""
    spec = replace(lab.spec, source=ClusterPlan("east", NOBODY), target=ClusterPlan("west", NOBODY))
    return BatchClients(spec, lab._context)


def test_a_step_that_finds_nothing_counts_as_free_to_read(lab, clients):
    clients.session.step()
    clients.session.step()
    assert lab.counters.empty_polls == 2, "else no partition is ever said to stand still"


def test_a_stuck_partition_is_not_read_until_it_is_tried_again(lab, clients):
    state = PartitionState(
        PartitionWork("orders", 0, "orders", ""), source_alias="east", provenance="path"
    )
    state.position = 0
    clients.session.table.update(partition_table([state]))
    clients.read_from([state])
    clients.session.events.suspend(state, NotMovingError("stands still"))
    clients.session.step()
    assert clients._reader.readings.get(state.key) is None
    assert state.needs_check
    assert [each[0] for each in lab.failures] == [state]


def test_a_damaged_batch_is_the_same_problem_in_both_engines():
    error = DamagedBatchError("wrong checksum", place="orders/3", offset=3)
    assert error.code == "SOURCE_DAMAGED"


def on_its_way(clients):
    clients.session.unit.begin()
    clients._writer.write(("orders", 0), Outgoing(memoryview(bytearray(70)), 1))


def test_a_lane_that_is_behind_waits_for_acknowledgements_before_a_commit_that_is_due(lab, clients):
    pacing, now = clients.session._pacing, lab.clock.monotonic()
    later = now + 0.1
    clients.session.unit.begin()
    assert pacing.patience(later) == 0, "everything is acknowledged: the commit is due"
    reading(clients)
    pacing.took(("orders", 0), behind=True)
    on_its_way(clients)
    assert pacing.patience(later) > 0.05, "else it would turn around without rest"
    assert pacing.patience(now + 0.2) == 0, "the commit interval is over"


def test_a_lane_that_has_caught_up_commits_though_something_is_always_on_its_way(lab, clients):
    pacing, now = clients.session._pacing, lab.clock.monotonic()
    clients.session.unit.last_commit_at = now
    reading(clients)
    pacing.took(("orders", 0), behind=True)
    pacing.took(("orders", 0), behind=False)
    on_its_way(clients)
    soon = now + MIN_COMMIT_SECONDS
    assert 0 < pacing.patience(soon) <= PATIENCE_SECONDS, "a moment in which nothing is may come"
    assert pacing.patience(soon + PATIENCE_SECONDS + 0.001) == 0


def test_partitions_that_are_not_read_any_more_keep_no_lane_from_committing(lab, clients):
    pacing, now = clients.session._pacing, lab.clock.monotonic()
    reading(clients)
    pacing.took(("orders", 0), behind=True)
    on_its_way(clients)
    assert pacing.patience(now + 0.1) > 0
    clients.stop_reading([partition()])
    assert pacing.patience(now + 0.1) == 0


def partition():
    state = PartitionState(
        PartitionWork("orders", 0, "orders", ""), source_alias="east", provenance="path"
    )
    state.position = 0
    return state


def reading(clients):
    clients.read_from([partition()])


def test_a_lane_wakes_up_for_what_was_kept_back_behind_a_transaction(lab, clients):
    now = lab.clock.monotonic()
    clients._writer.hold(now)
    on_its_way(clients)
    assert 0 < clients.session._pacing.patience(now) <= FIRST_SECONDS


@pytest.mark.parametrize(
    ("delivery", "pace"),
    [("exactly-once", COMMITTED_FETCH_PACE_SECONDS), ("at-least-once", FETCH_PACE_SECONDS)],
)
def test_records_that_wait_for_a_commit_too_are_asked_for_sooner(delivery, pace):
    clients = clients_of(session_lab.SessionLab(delivery=delivery))
    reader = clients._reader
    reader.brokers.leaders.seen = LeadersSeen({("orders", 0): (7, 1)}, {7: ("h", 1)})
    far = Far(reader)
    try:
        reading(clients)
        reader.pump(5.0, fetch_bytes=1000, partition_bytes=1000)
        far.answer(far.asked())
        reader.take_arrived(5.0)
        assert reader.seconds_to_ask(5.0) == pytest.approx(pace)
    finally:
        far.socket.close()
        clients.close()


def test_what_was_asked_for_is_received_while_the_lane_waits_for_its_rate(lab, clients):
    """Not received for 12 s, it would count as an answer that never came, and be fetched again."""
    reader, session = clients._reader, clients.session
    reader.brokers.leaders.seen = LeadersSeen({("orders", 0): (7, 1)}, {7: ("h", 1)})
    far = Far(reader)
    reading(clients)
    session.step()
    asked = far.asked()
    assert asked
    session._throttle.set(Throttle(bytes_per_second=1), now=lab.clock.monotonic())
    session._throttle.spent(1, 1_000, lab.clock.monotonic())
    far.answer(asked, topics=far.part("orders", b"r", end=40), served=False)
    session.step()
    assert reader.waiting, "received"
    assert lab.counters.outcome.read == 0, "and not taken in"
    far.socket.close()
