"""What a stream has copied: within a micro-batch too, and no record twice."""

from replicator.formats.checkpoint import Checkpoint
from replicator.spark.stream.moved_counts import MovedCounts

KEY = ("orders", 0)
LINKS = {KEY: "link"}


def running(start, records):
    """A checkpoint in the middle of a range of records of 10 bytes."""
    totals = {"start": start, "end": 1_000, "records": records, "bytes": 10 * records}
    return {KEY: Checkpoint(*KEY, start + records, extra={"seed": totals})}


def test_records_of_a_micro_batch_count_while_it_runs_and_once():
    moved = MovedCounts()
    moved.look(running(0, 200), LINKS)
    assert moved.total == (200, 2_000)
    assert moved.take() == {"link": (200, 2_000)}
    moved.look(running(0, 700), LINKS)
    assert moved.take() == {"link": (500, 5_000)}
    # The range has ended, and its micro-batch has not: nothing is forgotten.
    moved.look({KEY: Checkpoint(*KEY, 1_000)}, LINKS)
    assert moved.total == (700, 7_000)
    moved.finish("link", KEY, 1_000, (1_000, 10_000))
    moved.look(running(0, 700), LINKS)  # read before that, and late
    assert moved.total == (1_000, 10_000)
    assert moved.take() == {"link": (300, 3_000)}
    moved.look(running(1_000, 50), LINKS)
    assert moved.total == (1_050, 10_500)


def test_what_others_left_unfinished_does_not_count():
    moved = MovedCounts()
    moved.begin(running(0, 300))
    moved.look(running(0, 300), LINKS)
    assert moved.total == (0, 0)
    moved.look(running(0, 350), LINKS)
    assert moved.total == (50, 500)
    moved.look(running(0, 350), {})  # of a partition that is not ours (any more)
    assert moved.total == (50, 500)
