"""Which checkpoint of a source partition holds, for every reader of the checkpoints topic and every way of reading it."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.control.lanes.checkpoint_moves import plan_moves
from replicator.control.records.pair_records import Layout
from replicator.formats.checkpoint import Checkpoint, merge_checkpoints
from replicator.offsets.index.stored import StoredPartitions

LANES = 3
KEY = ("t", 0)

written = st.lists(
    st.tuples(st.integers(0, LANES - 1), st.integers(0, 5), st.integers(0, 9)), max_size=12
)
"""In the order of time: a lane, the wall clock of its owner, and the offset it came to."""


def logs(records):
    found: dict[int, list[Checkpoint]] = {lane: [] for lane in range(LANES)}
    for lane, at_ms, offset in records:
        found[lane].append(Checkpoint(*KEY, offset, at_ms=at_ms))
    return found


def compacted(found):
    return {lane: {one.key(): one.value() for one in log} for lane, log in found.items()}


@given(written, st.permutations(range(LANES)), st.randoms(use_true_random=False))
def test_reading_at_once_and_following_agree_for_any_order_of_answers(records, order, chance):
    found = logs(records)
    stored = compacted(found)
    expected = merge_checkpoints(stored).get(KEY)

    assert merge_checkpoints({lane: stored[lane] for lane in order}).get(KEY) == expected
    followed, left = StoredPartitions(), {lane: list(log) for lane, log in found.items() if log}
    while left:
        lane = chance.choice(sorted(left))
        one = left[lane].pop(0)
        followed.fold(lane, [(one.key(), one.value())])
        left = {number: log for number, log in left.items() if log}
    assert followed.of(*KEY).checkpoint == expected


@given(written)
def test_the_last_record_of_its_lane_holds_and_no_lane_has_a_later_one(records):
    found = logs(records)
    held = merge_checkpoints(compacted(found)).get(KEY)

    last = [log[-1] for log in found.values() if log]
    assert (held is None) == (not last)
    if held is not None:
        assert held in last
        assert (held.at_ms, held.offset) == max((one.at_ms, one.offset) for one in last)


@given(written)
def test_a_lane_change_keeps_the_checkpoint_that_holds(records):
    stored = compacted(logs(records))
    layout = Layout.model_validate(
        {
            "source": "east", "state": "stable", "epoch": 1, "total": LANES,
            "blocks": [{"link": "l", "first": 0, "count": LANES}],
        }
    )  # fmt: skip
    held = merge_checkpoints(stored)
    for move in plan_moves(stored, layout, {"t": "l"}):
        if move.value is None:
            stored[move.partition].pop(move.key)
        else:
            stored[move.partition][move.key] = move.value

    assert merge_checkpoints(stored) == held
    assert sum(len(records) for records in stored.values()) == len(held)
