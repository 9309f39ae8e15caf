"""Translation against a naive model: random logs with markers, holes, foreign records, restarts."""

from hypothesis import given, settings
from hypothesis import strategies as st
from modelled_logs import FOREIGN, STEPS, Logs, logs_of, true_source, true_target

from replicator.offsets.index.index import OffsetIndex, decode_index, index_pairs
from replicator.offsets.index.runs import Known, Pair, Window, joined
from replicator.offsets.translation.translate import Limits, translate
from replicator.offsets.translation.translation import PartitionFacts, combine


@given(STEPS, st.data(), st.booleans())
def test_a_position_translates_to_the_first_record_at_or_above_it(steps, data, indexed):
    logs = logs_of(steps, repeats=False)
    wanted = data.draw(st.integers(0, logs.source_end))
    known = logs.known() if indexed else Known()
    answer = translate("forward", wanted, known=known, facts=logs.facts(), look=logs.look)
    assert answer.grade == "exact"
    truth = true_target(logs, wanted)
    # The index may name a copy that compaction took since: a reader there goes on at the same one.
    assert answer.offset <= truth
    assert all(not answer.offset <= at < truth for at, _ in logs.own())
    assert indexed or answer.offset == truth
    assert answer.probes == logs.looks <= 3


@given(STEPS, st.data(), st.booleans())
def test_a_target_position_translates_back_to_the_first_unread_record(steps, data, indexed):
    logs = logs_of(steps, repeats=False)
    position = data.draw(st.integers(0, logs.target_end))
    known = logs.known() if indexed else Known()
    answer = translate("backward", position, known=known, facts=logs.facts(), look=logs.look)
    assert answer.grade == "exact"
    truth = true_source(logs, position)
    assert answer.offset <= truth
    assert all(not answer.offset <= value < truth for _, value in logs.own())
    assert indexed or answer.offset == truth


@given(STEPS, st.data())
def test_translation_never_goes_back_as_the_position_goes_on(steps, data):
    logs = logs_of(steps, repeats=False)
    low = data.draw(st.integers(0, logs.source_end))
    high = data.draw(st.integers(low, logs.source_end))
    known = logs.known()
    first, second = (
        translate("forward", wanted, known=known, facts=logs.facts(), look=logs.look)
        for wanted in (low, high)
    )
    assert first.offset <= second.offset


@given(STEPS, st.data())
def test_there_and_back_is_the_same_record(steps, data):
    logs = logs_of(steps, repeats=False)
    own = logs.own()
    if not own:
        return
    at, value = data.draw(st.sampled_from(own))
    known = logs.known()
    there = translate("forward", value, known=known, facts=logs.facts(), look=logs.look)
    back = translate("backward", there.offset, known=known, facts=logs.facts(), look=logs.look)
    assert (there.offset, back.offset) == (at, value)


@given(STEPS, st.data(), st.booleans(), st.integers(0, 3))
def test_nothing_is_skipped_with_any_repeats_of_the_lane_and_any_number_of_looks(
    steps, data, tight, probes
):
    logs = logs_of(steps, repeats=True)
    wanted = data.draw(st.integers(0, logs.source_end))
    answer = translate(
        "forward", wanted, known=logs.known(), facts=logs.facts(), look=logs.look, tight=tight,
        limits=Limits(probes=probes),
    )  # fmt: skip
    unread = {value for _, value in logs.own() if value >= wanted}
    if answer.offset is not None:
        assert unread <= {value for at, value in logs.own() if at >= answer.offset}
        assert answer.low <= answer.offset


@given(STEPS, st.data(), st.integers(0, 2))
def test_a_bounded_answer_counts_at_least_what_is_read_again(steps, data, probes):
    logs = logs_of(steps, repeats=False)
    wanted = data.draw(st.integers(0, logs.source_end))
    facts, known, limits = logs.facts(), logs.known(), Limits(probes=probes)
    answer = translate("forward", wanted, known=known, facts=facts, look=logs.look, limits=limits)
    if answer.offset is not None:
        again = [value for at, value in logs.own() if at >= answer.offset and value < wanted]
        assert len(again) <= answer.records_reread
        assert answer.offset <= true_target(logs, wanted) or answer.grade == "exact"
    position = data.draw(st.integers(0, logs.target_end))
    answer = translate(
        "backward", position, known=logs.known(), facts=facts, look=logs.look, limits=limits
    )
    if answer.offset is not None:
        assert answer.offset <= true_source(logs, position)
        again = [value for at, value in logs.own() if at < position and value >= answer.offset]
        assert len(again) <= answer.records_reread


@given(STEPS, st.data())
def test_a_trimmed_target_is_never_translated_past_what_it_lost(steps, data):
    logs = logs_of(steps, repeats=False)
    wanted = data.draw(st.integers(0, logs.source_end))
    before = logs.own()
    logs.target_start = data.draw(st.integers(0, logs.target_end))
    known = logs.known()
    logs.target = {at: value for at, value in logs.target.items() if at >= logs.target_start}
    answer = translate("forward", wanted, known=known, facts=logs.facts(), look=logs.look)
    lost = [value for at, value in before if at < logs.target_start and value >= wanted]
    if lost:
        assert answer.grade == "unavailable"
    elif answer.offset is not None:
        unread = {value for _, value in logs.own() if value >= wanted}
        assert unread <= {value for at, value in logs.own() if at >= answer.offset}


@given(
    st.lists(st.tuples(st.integers(1, 30_000), st.integers(0, 3)), min_size=20, max_size=60),
    st.data(),
)
@settings(max_examples=30)
def test_straight_lines_of_a_million_records_need_three_looks_at_most(chunks, data):
    """Chunks are transactions: that many records, then markers; no step is far from the others."""
    starts, source, target = [], 0, 0
    for count, markers in chunks:
        starts.append((source, target, count))
        source, target = source + count, target + count + 1 + markers
    index, stored = OffsetIndex("orders", 0), {}
    for number, (first, at, count) in enumerate(starts):
        entries = index.note(first + count - 1, at + count - 1, now=float(number), at_ms=0)
        stored.update(entries)

    def look(read):
        pairs, end = [], read.until
        for first, at, count in starts:
            for one in range(max(at, read.start), min(at + count, read.until)):
                pairs.append(Pair(first + one - at, one))
                if len(pairs) >= read.records or pairs[-1].source >= read.stop_at:
                    return Window(read.start, one + 1, joined(pairs))
        return Window(read.start, end, joined(pairs))

    wanted = data.draw(st.integers(0, source))
    facts = PartitionFacts(target_start=0, target_end=target, source_start=0, copied_to=source)
    known = Known.of(index_pairs(decode_index(stored)[("orders", 0)]))
    answer = translate("forward", wanted, known=known, facts=facts, look=look)
    truth = next(
        (at + wanted - first for first, at, count in starts if wanted < first + count), target
    )
    assert (answer.grade, answer.offset) == ("exact", truth)
    assert answer.probes <= 3


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5)), max_size=30), st.data())
def test_two_clusters_that_write_the_same_topic_never_skip_for_a_reader_that_moves(writes, data):
    """Each side holds its own records and copies of the other's, in an order of its own."""
    east: list[tuple[str, int]] = []
    west: list[tuple[str, int]] = []
    for at_east, count in writes:
        for _ in range(count):
            here = east if at_east else west
            here.append(("own", len(here)))
        if data.draw(st.booleans()):
            _copy_over(east, west)
        if data.draw(st.booleans()):
            _copy_over(west, east)
    _copy_over(east, west)
    _copy_over(west, east)
    there, back = _logs(east, west), _logs(west, east)
    wanted = data.draw(st.integers(0, len(east)))
    own = translate(
        "forward", wanted, known=Known(), facts=there.facts(), look=there.look, tight=True
    )
    theirs = translate(
        "backward", wanted, known=Known(), facts=back.facts(), look=back.look, tight=True
    )
    answer = combine([("east", own), ("west", theirs)])
    read = {_identity(entry, at, "east", "west") for at, entry in enumerate(east) if at < wanted}
    left = {
        _identity(entry, at, "west", "east") for at, entry in enumerate(west) if at >= answer.offset
    }
    everything = {_identity(entry, at, "west", "east") for at, entry in enumerate(west)}
    assert read | left == everything
    assert len(read & left) <= answer.records_reread


def _copy_over(source, target):
    copied = {value for kind, value in target if kind == "copy"}
    for at, (kind, _) in enumerate(list(source)):
        if kind == "own" and at not in copied:
            target.append(("copy", at))


def _logs(source, target):
    logs = Logs(source_end=len(source), target_end=len(target), copied_to=len(source))
    logs.target = {
        at: value if kind == "copy" else FOREIGN for at, (kind, value) in enumerate(target)
    }
    return logs


def _identity(entry, at, here, other):
    kind, value = entry
    return (here, at) if kind == "own" else (other, value)
