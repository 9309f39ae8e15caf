"""Copies told by counting, against a naive model of both logs."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.batches.codec.stretch import Stretch, clipped, cut_out
from replicator.dataplane.whole_batches.counted_copies import nth
from replicator.offsets.index.aligned import aligned

GAPS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), max_size=12)
"""How many records stand in a row, and how many offsets behind them hold markers or nothing."""


def log(gaps, start):
    """Stretches, and the offset of every record."""
    stretches, offsets, at = [], [], start
    for count, behind in gaps:
        stretches.append(Stretch(at, count))
        offsets += range(at, at + count)
        at += count + behind
    return stretches, offsets, at


@given(GAPS, GAPS, st.integers(0, 50), st.integers(0, 50))
def test_each_copy_is_its_record_or_nothing_is_concluded(source, target, here, there):
    records, offsets, _ = log(source, here)
    copies, places, end = log(target, there)
    window = aligned(records, copies, start=there, end=end)
    if len(offsets) != len(places):
        assert window is None
        return
    assert window is not None
    assert (window.start, window.end) == (there, end)
    found = [(run.source + at, run.target + at) for run in window.runs for at in range(run.count)]
    assert found == list(zip(offsets, places, strict=True))


@given(GAPS, st.integers(0, 40), st.integers(0, 40))
def test_what_is_clipped_is_what_lies_between_the_bounds(gaps, start, length):
    stretches, offsets, _ = log(gaps, 0)
    found = [
        each.first + at
        for each in clipped(stretches, start, start + length)
        for at in range(each.count)
    ]
    assert found == [each for each in offsets if start <= each < start + length]


SOME = st.sets(st.integers(0, 40), max_size=4)


@given(GAPS, st.lists(st.integers(0, 2), max_size=60), SOME, SOME, st.integers(0, 80))
def test_a_record_without_a_copy_shifts_no_other_one(source, markers, left_out, gone, reached):
    records, offsets, _ = log(source, 0)
    copied = [each for each in offsets if each not in left_out]
    places, end = [], 0
    for number in range(len(copied)):
        places.append(end)
        end += 1 + (markers[number] if number < len(markers) else 0)

    there = cut_out(cut_out(records, left_out), gone)  # the source's log was compacted since
    window = aligned(there, [Stretch(each, 1) for each in places], start=0, end=end)
    if gone.isdisjoint(copied):
        runs = window.runs
        found = [(run.source + at, run.target + at) for run in runs for at in range(run.count)]
        assert found == list(zip(copied, places, strict=True))
    else:
        assert window is None
    last = nth(cut_out(records, left_out), reached)
    assert last == (copied[:reached] or [None])[-1]
