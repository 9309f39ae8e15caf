"""Copies told by counting, against a naive model of both logs."""

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from replicator.batches.codec.stretch import Stretch, clipped, cut_out
from replicator.batches.registry.batch_bounds import StretchesOfLog
from replicator.batches.registry.own_copies import OwnCopies
from replicator.dataplane.takeover.counted_copies import last_of, nth
from replicator.dataplane.takeover.last_known import LastKnown, last_known
from replicator.formats.checkpoint import Checkpoint
from replicator.formats.left_out import LeftOut
from replicator.offsets.index.aligned import aligned
from replicator.offsets.index.runs import Known, Pair
from replicator.offsets.index.sections import first_step, with_known

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


RECORDS, BATCHES, OTHERS = "records", "batches", "others"
TURNS = st.lists(
    st.tuples(st.sampled_from([RECORDS, BATCHES, OTHERS]), st.integers(1, 5), st.integers(0, 2)),
    max_size=12,
)
"""Who wrote, how many records, and how many markers stand behind them in both logs."""


class BothEngines:
    """A target's log that both engines wrote in turns, and what its source holds."""

    def __init__(self, turns):
        self.source, self.marked, self.counted, self.silent = [], [], [], []
        self.truth = {}
        wrote, at = 0, 0
        for who, count, markers in turns:
            for _ in range(count):
                if who == OTHERS:
                    self.silent.append(at)
                else:
                    self.truth[at] = wrote
                    self.source.append(wrote)
                    (self.marked if who == RECORDS else self.counted).append(at)
                    wrote += 1
                at += 1
            wrote, at = wrote + markers, at + markers
        self.copied_to, self.end = wrote, at

    def pairs(self, places):
        return [Pair(self.truth[at], at) for at in places]

    def step(self, below, above):
        """What the product makes of a gap, read from the copy below it on."""
        end = self.end if above is None else above.target + 1
        read = [at for at in sorted(self.truth) if below.target <= at < end]
        return first_step(
            below, above,
            self.pairs(at for at in read if at in self.marked),
            [Stretch(at, 1) for at in read if at in self.counted],
            end=end,
        )  # fmt: skip

    def count(self, section):
        """The section as it is counted."""
        until = self.copied_to if section.above is None else section.above.source + 1
        own = [Stretch(at, 1) for at in self.counted]
        counted = clipped(own, section.start, section.end)
        copies, _ = with_known(counted, section, own)
        records = [Stretch(at, 1) for at in self.source if section.below.source <= at < until]
        return aligned(records, copies, start=section.start, end=section.end)


@given(TURNS, st.data())
def test_in_a_log_that_both_engines_wrote_every_copy_is_told_in_two_steps(turns, data):
    logs = BothEngines(turns)
    places = sorted(logs.truth)
    if not places:
        return
    below = data.draw(st.integers(0, len(places) - 1))
    above = data.draw(st.one_of(st.none(), st.integers(below + 1, len(places))))
    ends = [
        logs.pairs([places[at]])[0] if at is not None and at < len(places) else None
        for at in (below, above)
    ]
    pending, windows = [tuple(ends)], []
    steps = 0
    while pending:
        steps += 1
        found, section = logs.step(*pending.pop())
        windows += found
        if section is not None:
            windows.append(logs.count(section))
        else:
            pending += _gaps(found, *ends) if steps == 1 else []
    known = Known(windows)
    end = logs.end if ends[1] is None else ends[1].target + 1
    (window,) = known.windows
    assert (window.start, window.end) == (ends[0].target, end)
    told = {
        run.target + at: run.source + at for run in window.runs for at in range(run.count)
    }  # fmt: skip
    assert told == {at: logs.truth[at] for at in places if ends[0].target <= at < end}


def _gaps(windows, _, above):
    """The gaps that are left between windows, with the known copies beside them."""
    for before, after in itertools.pairwise(windows):
        yield before.runs[-1].last, after.runs[0].first
    if (
        above is None
        and windows[-1].runs
        and windows[-1].end == windows[-1].runs[-1].last.target + 1
    ):
        yield windows[-1].runs[-1].last, None


@given(TURNS, st.data(), st.sampled_from([0, 3]))
def test_the_last_copy_is_told_wherever_a_log_that_both_engines_wrote_is_cut(turns, data, dropped):
    logs = BothEngines(turns)
    if not logs.truth:
        return
    places = sorted(logs.truth)
    end = data.draw(st.integers(0, logs.end))
    entry = data.draw(st.sampled_from(places))
    known = (logs.truth[entry], entry) if entry < end else None
    held = Checkpoint("orders", 0, logs.copied_to, start=0, dropped=dropped)
    start = entry if known else 0
    seen = OwnCopies(
        StretchesOfLog([Stretch(at, 1) for at in logs.counted if start <= at < end], True),
        False,
        tuple((logs.truth[at], at) for at in logs.marked if start <= at < end),
        tuple(Stretch(at, 1) for at in logs.silent if start <= at < end),
    )
    told = last_known(known, seen, held, end=end)
    if told is None:
        return
    records = [Stretch(at, 1) for at in logs.source if at >= told.source]
    last = last_of(told, StretchesOfLog(records, True), held)
    stands = max(logs.truth[at] for at in places if at < end)
    assert last == (held.offset - 1 if stands == logs.source[-1] else stands)


def test_a_mark_that_is_out_of_order_is_never_counted_from():
    held = Checkpoint("orders", 0, 200, left_out=LeftOut((95,), 0))
    copies = StretchesOfLog([Stretch(90, 30)], True)
    seen = OwnCopies(copies, False, ((95, 130),), ())
    # The record was left out where it stood, and stands behind newer ones since.
    assert last_known((90, 90), seen, held, end=140) == LastKnown(90, 30)
    # Nobody knows that it was left out: as many copies as stand before it cannot.
    assert last_known((90, 90), seen, replace(held, left_out=LeftOut()), end=140) is None
    assert last_known((90, 90), seen, replace(held, left_out=LeftOut((), 96)), end=140) == (
        LastKnown(90, 30)
    )


def test_between_marks_and_whole_batches_nothing_may_stand_that_has_no_mark():
    held = Checkpoint("orders", 0, 200)
    copies = StretchesOfLog([Stretch(20, 5)], True)
    seen = OwnCopies(copies, False, ((10, 10),), ())
    assert last_known((10, 10), seen, held, end=30) == LastKnown(10, 6)
    assert last_known((10, 10), seen, replace(held, dropped=1), end=30) is None
    silent = replace(seen, silent=(Stretch(12, 1),))
    assert last_known((10, 10), silent, held, end=30) is None
    cut = replace(seen, copies=StretchesOfLog([], True))
    assert last_known((10, 10), cut, held, end=12) == LastKnown(10, 1, marked=True)
