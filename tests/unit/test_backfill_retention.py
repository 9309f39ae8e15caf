"""Finished seeds go once nobody needs them, and not before; no broker."""

import pytest

from replicator.control.backfill.retention import CLOCKS_MS, KEEP_MS, expired
from replicator.control.records.pair_records import BackfillRecord, TopicRecord
from replicator.control.store.state import EMPTY
from replicator.formats.checkpoint import Checkpoint

TOPIC = TopicRecord(
    source="east", link="link", topic="orders", target="orders", topic_id="a", partitions=3,
    target_partitions=3, state="active", activated=True,
)  # fmt: skip
SEED = BackfillRecord(
    source="east", link="link", topic="orders", partition=0, state="seeding", run="job.1",
    start=5, end=50,
)  # fmt: skip
DONE = SEED.model_copy(update={"state": "done", "position": 50, "at_ms": 1_000})
LATER = 1_000 + KEEP_MS
MOVED = Checkpoint("orders", 0, 60, at_ms=1_000 + CLOCKS_MS)


def left(*records, now_ms=LATER, checkpoint=MOVED):
    checkpoints = {} if checkpoint is None else {("orders", 0): checkpoint}
    state = EMPTY.fold([record.encode() for record in (TOPIC, *records)])
    return expired(state, "east", checkpoints, now_ms=now_ms)


def test_a_seed_goes_a_day_after_its_end_when_the_lane_has_moved_on():
    assert left(DONE) == (DONE,)
    assert left(DONE, now_ms=LATER - 1) == ()


@pytest.mark.parametrize(
    "checkpoint",
    [
        None,
        Checkpoint("orders", 0, 50, at_ms=1_000 + CLOCKS_MS),
        Checkpoint("orders", 0, 60, at_ms=1_000 + CLOCKS_MS - 1),
    ],
    ids=["none", "where the task left it", "of about the same time"],
)
def test_a_seed_stays_while_the_lane_may_not_have_read_the_tasks_checkpoint(checkpoint):
    assert left(DONE, checkpoint=checkpoint) == ()


def test_a_seed_stays_while_its_job_or_its_range_is_unfinished():
    other = SEED.model_copy(update={"partition": 1, "run": "job.2"})
    assert left(DONE, other) == ()
    assert left(DONE, other.model_copy(update={"run": "another.1"})) == (DONE,)
    assert left(SEED.model_copy(update={"at_ms": 0})) == ()


def test_a_seed_of_a_topic_that_is_copied_no_more_goes():
    state = EMPTY.fold([DONE.encode()])
    assert expired(state, "east", {}, now_ms=LATER) == (DONE,)
    assert state.fold([DONE.tombstone()]).seeds("east") == ()
