"""Lanes on virtual time lose, repeat and reorder nothing, whatever happens when; planted bugs are found.

The model is ``tests/support/simulated_kafka.py``, the schedules are ``simulated_lane.py``. A seed that has
found something once stays in ``failing_seeds.json``.
"""

import json
from dataclasses import replace
from pathlib import Path

import fake_kafka
import pytest
import session_lab
import simulated_kafka
import simulated_schedule
from changing_consumers import ChangingWorld
from simulated_lane import World
from simulated_schedule import run_schedule

from replicator.dataplane.copy import progress_unit, refused_record_search, rewrite
from replicator.dataplane.copy.delivery_errors import DeliveryErrors
from replicator.dataplane.copy.progress_unit import ProgressUnit
from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.lane.lane_failures import LaneFailures
from replicator.dataplane.lane.retry_range import RetryRange
from replicator.dataplane.progress import commit
from replicator.dataplane.progress.first_writes import FirstWrites
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.session import paced_consumer, source_events
from replicator.dataplane.session.paced_consumer import PacedConsumer
from replicator.dataplane.takeover import takeover
from replicator.dataplane.takeover.seek import read_from
from replicator.kafka.clients.client import ClientPartition
from replicator.kafka.logs import coordinator_watch
from replicator.policy.copies.provenance import Arrivals

SEEDS = 250
FOUND_WITHIN = 600
KEPT = json.loads(
    (Path(simulated_schedule.__file__).parent / "failing_seeds.json").read_text(encoding="utf-8")
)
DELIVERIES = ("exactly-once", "at-least-once")


def broken(seeds, delivery, world_of=World):
    """The first schedule that breaks something; None where all hold."""
    for seed in seeds:
        found = run_schedule(seed, delivery=delivery, world_of=world_of)
        if found:
            return seed, found
    return None


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_each_record_arrives_as_promised_in_any_schedule(delivery):
    assert broken(range(SEEDS), delivery) is None


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_lanes_that_change_their_consumer_hold_too(delivery, monkeypatch):
    takes_over, changes = PacedConsumer._take_over, []

    def counted(consumer, client):
        takes_over(consumer, client)
        changes.append(consumer.paced)

    monkeypatch.setattr(PacedConsumer, "_take_over", counted)
    assert broken(range(SEEDS), delivery, ChangingWorld) is None
    assert min(changes.count(True), changes.count(False)) > SEEDS // 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_ten_thousand_other_schedules_of_changing_consumers_hold_too(delivery):
    assert broken(range(SEEDS, SEEDS + 10_000), delivery, ChangingWorld) is None


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_consumer_that_begins_behind_the_next_record_is_found(delivery, monkeypatch):
    def too_far(consumer, states):
        read_from(consumer, states)
        for state in states:
            consumer.seek(ClientPartition(*state.key, state.position + 1))

    monkeypatch.setattr(paced_consumer, "read_from", too_far)
    assert broken(range(FOUND_WITHIN), delivery, ChangingWorld) is not None


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_twenty_thousand_other_schedules_hold_too(delivery):
    assert broken(range(SEEDS, SEEDS + 20_000), delivery) is None


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: f"{kept['seed']}-{kept['delivery']}")
def test_a_schedule_that_once_found_something_holds_now(kept):
    assert run_schedule(kept["seed"], delivery=kept["delivery"]) == []


# -- planted bugs: one decision each is wrong -------------------------------------------------------


def late_ends_are_ignored(patch):
    patch.setattr(coordinator_watch, "end_in_doubt", lambda **_: False)


def checkpoints_are_read_from_a_follower(patch):
    true = World.stored

    def stale(world):
        newest = true(world)
        world.last_read, before = newest, getattr(world, "last_read", {})
        return before

    patch.setattr(World, "stored", stale)


def uncommitted_checkpoints_are_believed(patch):
    def every(world):
        log = world.target.logs[session_lab.CHECKPOINTS, 0]
        return {each.record["key"]: each.record["value"] for each in log if each.record}

    patch.setattr(World, "stored", every)


def checkpoints_are_read_before_the_last_owner_is_fenced(patch):
    take_over = simulated_kafka.SimulatedProducer.init_transactions

    def read_first(producer, timeout=0):
        early = producer._weather.newest()
        take_over(producer, timeout)
        producer._weather.early = early

    patch.setattr(simulated_kafka.SimulatedProducer, "init_transactions", read_first)
    patch.setattr(World, "stored", lambda world: world.early)


def decided(patch, change):
    true = takeover.decide_start
    patch.setattr(
        takeover,
        "decide_start",
        lambda checkpoint, *a, **k: change(true, checkpoint, *a, **k),
    )


def a_record_is_skipped_at_a_take_over(patch):
    def change(true, checkpoint, *a, **k):
        found = true(checkpoint, *a, **k)
        return replace(found, offset=found.offset + (checkpoint is not None))

    decided(patch, change)


def a_record_is_read_again_at_a_take_over(patch):
    def change(true, checkpoint, *a, **k):
        found = true(checkpoint, *a, **k)
        return replace(found, offset=max(0, found.offset - (checkpoint is not None)))

    decided(patch, change)


def stored_positions_are_forgotten(patch):
    decided(patch, lambda true, _checkpoint, *a, **k: true(None, *a, **k))


def the_end_of_a_partition_is_one_too_far(patch):
    true = source_events._at_end
    patch.setattr(source_events, "_at_end", lambda state, end: true(state, end + 1))


def an_aborted_unit_keeps_its_positions(patch):
    patch.setattr(refused_record_search, "_restore", lambda *_: None)


def quarantine_writes_nothing(patch):
    patch.setattr(QuarantineWriter, "_produce", lambda *_: None)


def the_range_of_a_refused_record_is_never_copied_carefully(patch):
    patch.setattr(RetryRange, "extend", lambda *_: None)


def aborted_source_records_are_read(patch):
    true = fake_kafka._state

    def read(consumer, key, most, found):
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(
                fake_kafka, "_state", lambda e: "open" if true(e) == "open" else "committed"
            )
            unpatched(consumer, key, most, found)

    unpatched = fake_kafka.FakeConsumer._read
    patch.setattr(fake_kafka.FakeConsumer, "_read", read)


def records_and_checkpoints_are_two_transactions(patch):
    true = commit.TransactionalCommitter.commit

    def split(committer, states, notes=()):
        true(committer, ())
        true(committer, states, notes)

    patch.setattr(commit.TransactionalCommitter, "commit", split)


def a_replaced_lane_takes_over_again(patch):
    patch.setattr(LaneFailures, "is_fenced", lambda *_: False)


def first_writes_are_not_confirmed(patch):
    patch.setattr(FirstWrites, "confirm", lambda _: None)


def failed_deliveries_are_not_noticed(patch):
    patch.setattr(DeliveryErrors, "report", lambda *_: None)


def forwarded_headers_are_taken_for_our_own(patch):
    patch.setattr(Arrivals, "wrote", lambda *_: True)


def records_that_come_back_are_copied(patch):
    patch.setattr(rewrite, "aliases_of", lambda _: ())


def a_partition_is_left_out_of_its_unit(patch):
    true = ProgressUnit.copied

    def forget(unit, run):
        true(unit, run)
        if run.state.partition == 1:
            unit._uncommitted.discard(run.state)

    patch.setattr(progress_unit.ProgressUnit, "copied", forget)


def only_one_checkpoint_of_a_unit_is_written(patch):
    true = commit.CheckpointWriter.write
    patch.setattr(
        commit.CheckpointWriter, "write", lambda w, states, notes: true(w, list(states)[:1], notes)
    )


def counters_of_a_checkpoint_are_its_position(patch):
    true = PartitionState.restore

    def restore(state, checkpoint):
        true(state, checkpoint)
        state.committed = state.position = checkpoint.records

    patch.setattr(PartitionState, "restore", restore)
    decided(
        patch,
        lambda found, checkpoint, *a, **k: replace(
            found(checkpoint, *a, **k),
            **({} if checkpoint is None else {"offset": checkpoint.records}),
        ),
    )


PLANTED = [
    (late_ends_are_ignored, "exactly-once"),
    (checkpoints_are_read_from_a_follower, "exactly-once"),
    (uncommitted_checkpoints_are_believed, "exactly-once"),
    (checkpoints_are_read_before_the_last_owner_is_fenced, "exactly-once"),
    (a_record_is_skipped_at_a_take_over, "exactly-once"),
    (a_record_is_skipped_at_a_take_over, "at-least-once"),
    (a_record_is_read_again_at_a_take_over, "exactly-once"),
    (stored_positions_are_forgotten, "exactly-once"),
    (the_end_of_a_partition_is_one_too_far, "exactly-once"),
    (an_aborted_unit_keeps_its_positions, "exactly-once"),
    (quarantine_writes_nothing, "exactly-once"),
    (the_range_of_a_refused_record_is_never_copied_carefully, "exactly-once"),
    (aborted_source_records_are_read, "exactly-once"),
    (records_and_checkpoints_are_two_transactions, "exactly-once"),
    (a_replaced_lane_takes_over_again, "exactly-once"),
    (first_writes_are_not_confirmed, "exactly-once"),
    (failed_deliveries_are_not_noticed, "at-least-once"),
    (forwarded_headers_are_taken_for_our_own, "exactly-once"),
    (records_that_come_back_are_copied, "exactly-once"),
    (a_partition_is_left_out_of_its_unit, "exactly-once"),
    (only_one_checkpoint_of_a_unit_is_written, "exactly-once"),
    (counters_of_a_checkpoint_are_its_position, "exactly-once"),
]


@pytest.mark.parametrize(
    ("plant", "delivery"), PLANTED, ids=[f"{plant.__name__}-{how}" for plant, how in PLANTED]
)
def test_a_planted_bug_is_found(plant, delivery, monkeypatch):
    plant(monkeypatch)
    assert broken(range(FOUND_WITHIN), delivery) is not None
